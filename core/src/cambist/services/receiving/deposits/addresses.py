"""The set of all addresses of one family, kept in step with what is committed."""

from __future__ import annotations

import asyncio

from cambist.db.engine import Database
from cambist.plugin import AddressFamily

PREFETCH_ROWS = 5_000


class AddressCache:
    """Answers ``key in cache`` for every address of a family and mode that was committed before ``refresh``.

    One per family and process, shared by all chains of the family. It only grows: money may come to an address
    at any time. Memory is about 110 bytes an address of 20 bytes.
    """

    def __init__(self, db: Database, family: AddressFamily, mode: str) -> None:
        self._db = db
        self._family = family
        self._mode = mode
        self._keys: set[bytes] = set()
        self._one_at_a_time = asyncio.Lock()
        # Rows of transactions from here on may not have been visible when they were last looked for.
        self._from_xid = 0

    def __contains__(self, key: object, /) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    async def refresh(self) -> None:
        """Add every address that is committed by now.

        Ids do not tell what is new, since rows commit in another order than they are numbered. The oldest
        transaction that was still open at the last refresh does: it, and all that came after it, are read
        again. It is asked for before the rows are, so that a commit in between is read twice, not missed.

        A dump brings along numbers from another server, which may be far ahead of this one's. Those rows cannot
        be new here, and are only read the first time.
        """
        add, key_of = self._keys.add, self._family.address_key
        async with self._one_at_a_time, self._db.transaction() as conn:
            oldest = await conn.exec_driver_sql("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
            from_xid = int(oldest.scalar_one())
            raw = (await conn.get_raw_connection()).driver_connection
            if raw is None:
                raise AssertionError("a checked-out connection has a driver connection")
            rows = raw.cursor(
                "SELECT address FROM addresses WHERE mode = $1 AND family = $2 AND xid >= $3::text::xid8"
                " AND ($3 = '0' OR xid < pg_snapshot_xmax(pg_current_snapshot()))",
                self._mode,
                self._family.name,
                str(self._from_xid),
                prefetch=PREFETCH_ROWS,
            )
            async for row in rows:
                add(key_of(row["address"]))
            self._from_xid = from_xid
