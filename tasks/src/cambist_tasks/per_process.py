"""What each worker process does for itself: its own data directory, its own signer. Needs neither Redis nor a claim."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cambist.bootstrap import Gateway
from cambist.db.engine import Database
from cambist.services.audit import seals
from cambist.services.payouts.signer_learning import ADDRESSES_MAX, Learner
from cambist.services.recovery import restore

MANIFEST_INTERVAL_S = 60.0
MANIFEST_FILE = "recovery.json"
ADDRESSES_INTERVAL_S = 5.0
SEALS_INTERVAL_S = 10.0


async def write_manifests(gateway: Gateway) -> None:
    """Leave what a restore needs in the data directory, for backups that are made of files; again every minute."""
    folder = gateway.settings.data_dir
    while True:
        async with gateway.db.transaction() as conn:
            manifest = await restore.compose(conn, gateway.registry, gateway.clock.now())
        folder.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(restore.write_manifest, folder / MANIFEST_FILE, manifest)
        await asyncio.sleep(MANIFEST_INTERVAL_S)


async def teach_signer(gateway: Gateway) -> None:
    """Tell this process's signer which addresses are coming, so that their delay runs while nobody waits for it."""
    if gateway.signer is None:
        raise RuntimeError("a worker has a signer")
    learner = Learner(gateway.signer)
    while True:
        async with gateway.db.autocommit() as conn:
            learned = await learner.learn(conn)
        await asyncio.sleep(0 if learned >= ADDRESSES_MAX else ADDRESSES_INTERVAL_S)


async def copy_seals(gateway: Gateway, path: Path) -> None:
    """Keep a copy of every seal of the audit log in a file of this machine, out of the database's reach."""
    while True:
        await copy_missing_seals(gateway.db, path)
        await asyncio.sleep(SEALS_INTERVAL_S)


async def copy_missing_seals(db: Database, path: Path) -> None:
    """Append what the file does not have yet."""
    lines = await asyncio.to_thread(seals.read_lines, path, last_bytes=seals.TAIL_BYTES)
    async with db.autocommit() as conn:
        found = [one async for one in seals.missing(conn, lines)]
    await asyncio.to_thread(seals.append_lines, path, found)
