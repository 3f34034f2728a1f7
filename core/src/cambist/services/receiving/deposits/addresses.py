"""The filter of all watched addresses of one family, kept in step with what is committed."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import structlog
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.plugin import AddressFamily, Watch
from cambist.ports import RandomBytes, system_ids

from . import filter_snapshots
from .address_filter import SEED_BYTES, AddressFilter
from .filter_snapshots import Header, Origin, SnapshotError, Witness
from .new_addresses import BESIDE_MAX, NEW_ROWS_MAX, SOURCES, News, news_columns

log = structlog.get_logger(__name__)

PREFETCH_ROWS = 5_000
ROOM_TO_SPARE = 20
"""A filter that is built gets room for a twentieth more than there is."""
PROBES = 100
"""So many of the newest addresses must be in a filter that was loaded: its keys are still made as they were."""
XIDS_OLD_MAX = 2_000_000_000
"""A snapshot that so many transactions came after is not worth reading on from."""

NO_TIMEOUT = "SET LOCAL statement_timeout = 0"

SERVERS_MAX = 3
"""So many servers may answer one after the other before a poll is given up."""

_EVERY = " UNION ALL ".join(f"SELECT address, xid FROM {table} WHERE mode = $1 AND family = $2" for table in SOURCES)  # noqa: S608
_COUNT = f"SELECT count(*) FROM ({_EVERY}) AS every"  # noqa: S608
_SINCE = (
    f"SELECT address FROM ({_EVERY}) AS every WHERE xid >= $3::text::xid8"  # noqa: S608
    " AND ($3 = '0' OR xid < pg_snapshot_xmax(pg_current_snapshot()))"
)
# The newest of each table come from its index; an older transaction than the oldest open one is over.
_NEWEST = " UNION ALL ".join(
    f"(SELECT address, xid::text::bigint AS xid FROM {table} WHERE mode = $1 AND family = $2 AND xid {{bound}}"  # noqa: S608
    f" ORDER BY {table}.xid DESC LIMIT {PROBES})"
    for table in SOURCES
)
_NEW = f"SELECT {news_columns(mode='$1', family='$2', xid='$3', limit=NEW_ROWS_MAX)}"
_OLDEST = """
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin, pg_postmaster_start_time() AS server
"""
_ORIGIN = """
SELECT (SELECT system_identifier FROM pg_control_system())::text AS system_identifier,
       left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS timeline,
       (SELECT oid FROM pg_database WHERE datname = current_database())::bigint AS database,
       ARRAY[pg_relation_filenode('addresses'), pg_relation_filenode('tracked_addresses')]::bigint[] AS files,
       pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next_xid
"""


class Known(NamedTuple):
    """Who is watched. What transactions from ``xid`` on added may not be known; None where all there ever is is."""

    watch: Watch
    xid: int | None


class AddressCache:
    """Knows every address of a family and mode that was committed before ``refresh``: ours, and those of trackers.

    One per family and process, shared by all chains of the family. It only grows: money may come to an address
    at any time. It may take a strange address for one of them, about one in a thousand, and never misses one; who
    is really meant is asked of the tables. Memory is at most 24 bits an address, and as much again while the filter
    is built anew.

    With a ``folder`` it is saved there and loaded from there; any doubt about what is found has it read the tables.
    """

    def __init__(
        self,
        db: Database,
        family: AddressFamily,
        mode: str,
        *,
        folder: Path | None = None,
        random_bytes: RandomBytes | None = None,
    ) -> None:
        self._db = db
        self._family = family
        self._mode = mode
        self._path = None if folder is None else folder / f"{mode}-{family.name}.filter"
        self._random_bytes = system_ids().random_bytes if random_bytes is None else random_bytes
        self._filter = AddressFilter(0)
        self._loading: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()
        # Rows of transactions from here on may not have been visible when they were last looked for.
        self._from_xid = 0
        self._server: datetime | None = None
        self._saved_count = 0

    def __contains__(self, key: object, /) -> bool:
        return key in self._filter

    def __len__(self) -> int:
        return len(self._filter)

    @property
    def size_bytes(self) -> int:
        return self._filter.size_bytes

    @property
    def known_xid(self) -> int | None:
        """From which transaction on the watch may not know what was added; None where it knows all there ever is."""
        return self._from_xid

    def since(self) -> int | None:
        """Return from which transaction on to ask for news, to ``learn`` from them; None while that is not known."""
        return self._from_xid if self._loading is not None and _succeeded(self._loading) else None

    def learn(self, since: int, news: News) -> Known | None:
        """Return a watch that has every address which was committed when this was answered, None where it may not.

        Other chains may have read on, or learnt, while it was asked. As long as the server is the same, and the filter
        knows no less than when it was asked, all that is older than ``since`` is known, and the rest is told here.
        """
        if len(news.addresses) >= BESIDE_MAX or news.server != self._server:
            return None
        if since > min(news.xmin, self._from_xid):
            return None
        self._filter.update(map(self._family.address_key, news.addresses))
        self._from_xid = max(self._from_xid, news.xmin)
        return Known(self._filter, self._from_xid)

    async def refresh(self) -> Watch:
        """Return a watch that has every address which is committed by now.

        Ids do not tell what is new, since rows commit in another order than they are numbered. The oldest
        transaction that was still open at the last refresh does: it, and all that came after it, are read
        again. It is asked for before the rows are, so that a commit in between is read twice, not missed.

        A dump brings along numbers from another server, which may be far ahead of this one's. Those rows cannot
        be new here, and are only read the first time.
        """
        for _ in range(SERVERS_MAX):
            await self._loaded()
            async with self._one_at_a_time:
                known, from_xid = self._filter, self._from_xid
                next_from_xid, server = await self._read(known, from_xid)
                if known is not self._filter:
                    # It was loaded anew meanwhile, for who met another server before: that one was not told.
                    continue
                if server == self._server and next_from_xid >= from_xid:
                    self._from_xid = next_from_xid
                    return known
                # Another server answers, or one that was turned back: numbers that were read may be others' there.
                log.warning("addresses_of_another_server", family=self._family.name)
                self._loading = None
        raise RuntimeError("the database is another server each time that it is asked")

    async def tend(self) -> None:
        """Build a filter that has grown crowded anew, in one layer. Scans go on with the old one meanwhile."""
        if not self._filter.crowded:
            return
        made, from_xid = await self._built()
        async with self._one_at_a_time:
            # What came while it was built; not even a watch that is asked now may know less than one from before.
            self._from_xid, server = await self._read(made, from_xid)
            if server != self._server:
                self._loading = None
            self._filter, self._saved_count = made, 0

    async def save(self) -> bool:
        """Write a snapshot if anything is new since it was loaded; return whether one was written.

        Addresses may be added meanwhile: a snapshot that knows more than it says is as good.
        Raises OSError, and SnapshotError where the server does not tell what a snapshot has to say.
        """
        if self._path is None or self._loading is None or not _succeeded(self._loading):
            return False
        origin, _ = await self._origin()
        await self.refresh()
        async with self._one_at_a_time:
            content, horizon = self._filter, self._from_xid
            count, layers = len(content), content.layers
        if count == self._saved_count:
            return False
        newest = await self._newest(f"< '{horizon}'::xid8")
        if not newest or origin != (await self._origin())[0]:
            return False
        header = Header(
            mode=self._mode,
            family=self._family.name,
            origin=origin,
            witness=max(newest, key=lambda one: one.xid),
            seed=content.seed,
            count=count,
            layers=layers,
        )
        written = await asyncio.to_thread(filter_snapshots.write, self._path, header, content)
        if written:
            self._saved_count = count
        return written

    async def aclose(self) -> None:
        """Give up loading, if that is what it does."""
        if self._loading is not None and not self._loading.done():
            self._loading.cancel()
            await asyncio.wait([self._loading])

    async def _loaded(self) -> None:
        """Wait for the first filter. A poll that is given up does not end it: it may take longer than any poll may."""
        if self._loading is not None and self._loading.done() and not _succeeded(self._loading):
            self._loading = None
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())
        if not self._loading.done():
            await asyncio.shield(self._loading)

    async def _load(self) -> None:
        started = time.perf_counter()
        found = await self._from_snapshot()
        if found is None:
            made, from_xid = await self._built()
        else:
            made, from_xid = found
        saved_count = 0 if found is None else len(made)
        # What came since is read here: a poll that waits for it may be given up, this not.
        self._from_xid, self._server = await self._read(made, from_xid, is_old=found is not None)
        self._filter, self._saved_count = made, saved_count
        log.info(
            "addresses_loaded",
            family=self._family.name,
            addresses=len(self._filter),
            of="tables" if found is None else "snapshot",
            seconds=round(time.perf_counter() - started, 1),
        )

    async def _from_snapshot(self) -> tuple[AddressFilter, int] | None:
        """Return the saved filter and the transaction to read on from; None where there is the least doubt."""
        if self._path is None:
            return None
        try:
            origin, next_xid = await self._origin()
            header, content = await asyncio.to_thread(
                filter_snapshots.read, self._path, mode=self._mode, family=self._family.name, origin=origin
            )
            await self._check(header.witness, content, next_xid)
        except SnapshotError as error:
            log.info("address_snapshot_refused", family=self._family.name, path=str(self._path), reason=str(error))
            return None
        # What its transaction committed was all seen with it.
        return content, header.witness.xid + 1

    async def _check(self, witness: Witness, content: AddressFilter, next_xid: int) -> None:
        """Raise SnapshotError unless the database still has what the filter was made of."""
        if witness.xid >= next_xid:
            raise SnapshotError("it is from a time that this database has not seen")
        if next_xid - witness.xid > XIDS_OLD_MAX:
            raise SnapshotError("it is too old")
        newest = await self._newest(f"<= '{witness.xid}'::xid8")
        if witness not in await self._at(witness):
            raise SnapshotError("the database was turned back since")
        if not all(self._family.address_key(one.address) in content for one in newest):
            raise SnapshotError("it does not know what it should")

    async def _origin(self) -> tuple[Origin, int]:
        """Return what a snapshot must be of, and the number that the next transaction gets at the earliest."""
        try:
            async with self._db.autocommit() as conn:
                row = (await conn.exec_driver_sql(_ORIGIN)).one()
        except ProgrammingError as error:
            # A server that does not say which one it is, as some hosted ones do not.
            raise SnapshotError(f"the server does not tell its history: {error.orig}") from None
        origin = Origin(
            system_identifier=row.system_identifier, timeline=row.timeline, database=row.database, files=row.files
        )
        return origin, row.next_xid

    async def _newest(self, bound: str) -> list[Witness]:
        async with self._db.autocommit() as conn:
            rows = await conn.exec_driver_sql(_NEWEST.format(bound=bound), (self._mode, self._family.name))
            return [Witness(address=row.address, xid=row.xid) for row in rows]

    async def _at(self, witness: Witness) -> list[Witness]:
        """Return what has the address and the transaction of the witness."""
        async with self._db.autocommit() as conn:
            rows = await conn.exec_driver_sql(
                f"SELECT address, xid::text::bigint AS xid FROM ({_EVERY}) AS every"  # noqa: S608
                " WHERE address = $3 AND xid = $4::text::xid8",
                (self._mode, self._family.name, witness.address, str(witness.xid)),
            )
            return [Witness(address=row.address, xid=row.xid) for row in rows]

    async def _built(self) -> tuple[AddressFilter, int]:
        """Return a filter of all that is in the tables, in one layer, and the transaction to read on from."""
        async with self._db.transaction() as conn:
            await conn.exec_driver_sql(NO_TIMEOUT)
            count: int = (await conn.exec_driver_sql(_COUNT, (self._mode, self._family.name))).scalar_one()
            seed = int.from_bytes(self._random_bytes(SEED_BYTES))
            made = AddressFilter(seed, room=count + count // ROOM_TO_SPARE)
            return made, (await self._read_parts(conn, made, 0))[0]

    async def _read(self, into: AddressFilter, from_xid: int, *, is_old: bool = False) -> tuple[int, datetime]:
        """Add what transactions from this one on have committed, which may be much where that one is old.

        Return from which one to read the next time, and since when the server runs that answered.
        """
        if from_xid and not is_old:
            # One statement has one view of the table: whatever it does not see is of a transaction from xmin on.
            async with self._db.autocommit() as conn:
                row = (await conn.exec_driver_sql(_NEW, (self._mode, self._family.name, str(from_xid)))).one()
            if len(row.new_addresses) < NEW_ROWS_MAX:
                into.update(map(self._family.address_key, row.new_addresses))
                return row.xmin, row.server
        async with self._db.transaction() as conn:
            if from_xid == 0 or is_old:
                # The first rows of a small family may lie behind those of a large one.
                await conn.exec_driver_sql(NO_TIMEOUT)
            return await self._read_parts(conn, into, from_xid)

    async def _read_parts(self, conn: AsyncConnection, into: AddressFilter, from_xid: int) -> tuple[int, datetime]:
        key_of = self._family.address_key
        oldest = (await conn.exec_driver_sql(_OLDEST)).one()
        raw = (await conn.get_raw_connection()).driver_connection
        if raw is None:
            raise AssertionError("a checked-out connection has a driver connection")
        rows = await raw.cursor(_SINCE, self._mode, self._family.name, str(from_xid))
        while page := await rows.fetch(PREFETCH_ROWS):
            into.update([key_of(row["address"]) for row in page])
        return oldest.xmin, oldest.server


def _succeeded(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None
