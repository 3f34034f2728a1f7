"""What each worker process does for itself."""

from __future__ import annotations

import asyncio

from cambist.services.recovery.restore import read_manifest
from tests.tasks.test_worker import gateway_of, settings, working


async def test_the_worker_keeps_the_recovery_manifest_in_its_data_directory(db, database_url, redis_url, ids, tmp_path):
    folder = tmp_path / "data"
    async with gateway_of(settings(database_url, redis_url, folder), ids) as gateway, working(gateway):
        async with asyncio.timeout(60):
            while not (folder / "recovery.json").exists():  # noqa: ASYNC110  another task writes it
                await asyncio.sleep(0.05)
        manifest = read_manifest(folder / "recovery.json")
    assert [family.family for family in manifest.families] == ["memory"]
    assert (folder / "recovery.json").stat().st_mode & 0o777 == 0o600
