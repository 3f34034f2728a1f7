"""What each worker process does for itself."""

from __future__ import annotations

import asyncio

from cambist.secrets import SecretsBox
from cambist.services.audit.entries import GATEWAY, Action, record
from cambist.services.audit.seals import read_lines, seal
from cambist.services.recovery.restore import read_manifest
from cambist_tasks.per_process import copy_missing_seals
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


async def test_each_worker_keeps_a_copy_of_the_audit_logs_seals(db, clock, ids, tmp_path):
    box, path = SecretsBox([bytes(32)], ids.random_bytes), tmp_path / "elsewhere" / "seals"

    async def act_and_seal():
        async with db.transaction() as conn:
            await record(conn, GATEWAY, Action.AUTO_PAYOUT_MADE, clock.now())
        async with db.transaction() as conn:
            return (await seal(conn, box, clock.now())).line

    made = [await act_and_seal() for _ in range(2)]
    for _ in range(2):
        await copy_missing_seals(db, path)
    assert list(read_lines(path)) == made
    with path.open("ab") as stream:
        stream.write(b'{"number": 3, "sealed')  # by a worker that was killed
    made.append(await act_and_seal())
    await copy_missing_seals(db, path)
    assert list(read_lines(path)) == made
    # The database is set back to an older backup, and goes on.
    async with db.transaction() as conn:
        await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        await conn.exec_driver_sql("DELETE FROM audit_seals WHERE number > 1")
        await conn.exec_driver_sql("DELETE FROM audit_entries WHERE id > 1")
    await copy_missing_seals(db, path)
    assert list(read_lines(path)) == made
    clock.advance(60)
    made.append(await act_and_seal())
    await copy_missing_seals(db, path)
    assert [line.number for line in read_lines(path)] == [1, 2, 3, 2]
    assert list(read_lines(path)) == made
