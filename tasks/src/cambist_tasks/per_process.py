"""What each worker process does for itself: its own data directory, its own signer. Needs neither Redis nor a claim."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

import structlog
from sqlalchemy.exc import SQLAlchemyError

from cambist.bootstrap import Gateway
from cambist.db.engine import Database
from cambist.ports import Clock
from cambist.services.audit import seals
from cambist.services.payouts.signer_learning import ADDRESSES_MAX, Learner
from cambist.services.receiving.deposits import AddressCache, SnapshotError
from cambist.services.recovery import restore
from cambist.services.signing import answers, reports

MANIFEST_INTERVAL_S = 60.0
MANIFEST_FILE = "recovery.json"
ACCOUNTS_INTERVAL_S = 3_600.0
ACCOUNTS_REST = 20
"""How much longer than writing the accounts took they are left alone."""
ADDRESSES_INTERVAL_S = 5.0
REPORT_INTERVAL_S = 5.0
SEALS_INTERVAL_S = 10.0
FILTERS_INTERVAL_S = 10.0
SNAPSHOT_INTERVAL_S = 900.0
SNAPSHOT_TIMEOUT_S = 5.0
"""How long a stopping worker writes: half a snapshot is none, and the last one is a quarter of an hour old at most."""

log = structlog.get_logger(__name__)


async def write_manifests(gateway: Gateway) -> None:
    """Leave what a restore needs in the data directory, for backups that are made of files; again every minute."""
    folder = gateway.settings.data_dir
    path = folder / MANIFEST_FILE
    accounts = AccountsFile(gateway.db, path, gateway.clock)
    writing: asyncio.Task[bool] | None = None
    are_accounts_known = False
    try:
        while True:
            before, trouble = await asyncio.to_thread(restore.read_before, path)
            async with gateway.db.transaction() as conn:
                manifest = await restore.compose(conn, gateway.registry, gateway.clock.now())
            if before is not None and restore.knows_more(before, manifest):
                trouble = "it knows merchants or addresses that are not in the database"
            if trouble and before is not None:
                # A backup that nobody told what was handed out since: what one customer pays to such an address would
                # count for the next one who is shown it. This comes first, for what is kept is not read again.
                async with gateway.db.transaction() as conn:
                    if keys := await restore.keep_indexes(conn, before):
                        hint = "restart web, and run 'cambist restore --backup' with what is kept"
                        log.error("indexes_kept", keys=keys, hint=hint)
            if not trouble and not are_accounts_known:
                # Once is enough: whoever lost a database has started its workers anew. Of a million it takes a while.
                trouble = await restore.why_kept(gateway.db, accounts.path)
            are_accounts_known = True
            if trouble:  # a lost database is restored from it
                kept = await asyncio.to_thread(restore.move_aside, path)
                log.error("recovery_manifest_kept", kept=str(kept), reason=trouble)
            folder.mkdir(parents=True, exist_ok=True)
            await asyncio.to_thread(restore.write_manifest, path, manifest)
            # Many accounts take minutes to write. The manifest, which says what is used, does not wait for them.
            if writing is not None and writing.done():
                writing.result()
                writing = None
            writing = writing or asyncio.create_task(accounts.write_if_due())
            await asyncio.sleep(MANIFEST_INTERVAL_S)
    finally:
        if writing is not None:
            writing.cancel()


class AccountsFile:
    """The accounts beside the manifest: written when there are new ones, and for what changes of them once an hour.

    Where there are millions, writing them takes its time; it is left alone for so much longer then.
    """

    def __init__(self, db: Database, manifest: Path, clock: Clock) -> None:
        self._db = db
        self.path = restore.accounts_path(manifest)
        self._clock = clock
        self._newest: int | None = None
        self._begun = self._took_s = 0.0

    async def write_if_due(self) -> bool:
        """Write them unless the file says enough, or was written so lately. Return whether that was done."""
        now = self._clock.monotonic()
        if self._newest is not None and now - self._begun < self._took_s * ACCOUNTS_REST:
            return False
        newest = await restore.newest_account(self._db)
        if newest == self._newest and now - self._begun < ACCOUNTS_INTERVAL_S:
            return False
        await restore.write_accounts(self._db, self.path)
        self._newest, self._begun, self._took_s = newest, now, self._clock.monotonic() - now
        return True


async def keep_filters(caches: Collection[AddressCache]) -> None:
    """Build filters of addresses anew that have grown crowded, and save what is new every quarter of an hour."""
    loop = asyncio.get_running_loop()
    due: dict[AddressCache, float] = {}
    while True:
        for cache in caches:
            await cache.tend()
            # What was read from the tables at the start is saved as soon as it is there.
            if len(cache) and loop.time() >= due.get(cache, 0.0):
                await _save(cache)
                due[cache] = loop.time() + SNAPSHOT_INTERVAL_S
        await asyncio.sleep(FILTERS_INTERVAL_S)


async def save_filters(caches: Collection[AddressCache]) -> None:
    """Save what is new before the process ends, for a quick start."""
    try:
        async with asyncio.timeout(SNAPSHOT_TIMEOUT_S):
            for cache in caches:
                await cache.aclose()
                await _save(cache)
    except TimeoutError:
        log.warning("address_snapshot_unfinished", seconds=SNAPSHOT_TIMEOUT_S)


async def _save(cache: AddressCache) -> None:
    """Save one; a start without a snapshot is slow, and no more than that."""
    try:
        await cache.save()
    except (OSError, SnapshotError, SQLAlchemyError) as error:
        log.warning("address_snapshot_failed", error=str(error))


async def teach_signer(gateway: Gateway) -> None:
    """Tell this process's signer which addresses are coming, so that their delay runs while nobody waits for it."""
    if gateway.signer is None:
        raise RuntimeError("a worker has a signer")
    learner = Learner(gateway.signer)
    while True:
        async with gateway.db.autocommit() as conn:
            learned = await learner.learn(conn)
        await asyncio.sleep(0 if learned >= ADDRESSES_MAX else ADDRESSES_INTERVAL_S)


async def follow_signer(gateway: Gateway) -> None:
    """Copy what this process's signer tells to where web finds it, and hand it what people answered."""
    if gateway.signer is None:
        raise RuntimeError("a worker has a signer")
    async with gateway.hints.subscribe(answers.TOPIC) as hints:
        while True:
            if await answers.hand_on(gateway.db, gateway.signer, gateway.clock):
                await gateway.hints.publish("outbound")
            report = await gateway.signer.report()
            async with gateway.db.autocommit() as conn:
                await reports.save(conn, report, gateway.clock.now())
            await hints.wait(REPORT_INTERVAL_S)


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
