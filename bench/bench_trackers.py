"""How long it takes from a block that was read to what trackers are told of it; and what trackers cost others."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from random import Random

import uvloop
from _harness import ROUNDS, Row, at_most, report, sized, unjudged
from _servers import migrated_servers

from cambist.db.engine import Database, connect
from cambist.hints import Hints
from cambist.plugin import Block, ChainInfo, Head, ScanResult, Token, Transfer, Units
from cambist.ports import SystemClock
from cambist.services.chain_scope import ChainScope
from cambist.services.receiving.deposits.owners import ends_of
from cambist.services.trackers import movements
from cambist.services.trackers.fan_out import FanOut
from cambist_tasks.memory import tune_memory

ADDRESSES = sized(1_000_000, tiny=2_000)
PER_TRACKER = sized(10_000, tiny=100)
TRANSFERS = sized(5_000, tiny=50)
LISTS = 2
"""On how many trackers' lists each address is."""
CONTRACT = "0x" + "ab" * 20
FAMILY = "evm"
_BEGUN, _BETWEEN_S = 1_800_000_000, 12

_OWNER = """
WITH merchant AS (
    INSERT INTO merchants (merchant_id, email, name)
    VALUES ('mer_1', 'a@example.com', 'Shop') RETURNING id
)
INSERT INTO projects (project_id, merchant_pk, name, mode) SELECT 'prj_1', id, 'Shop', 'live' FROM merchant
"""
_TRACKERS = """
INSERT INTO trackers (
    webhook_id, project_pk, mode, chain, scope, url, name, start_block, max_addresses, token_hash, token_encrypted,
    secret_encrypted
)
SELECT 'trk_' || n, p.id, 'live', 'bench', 0, 'https://shop.example/' || n, 'Mine', 0, 10000,
    convert_to(n::text, 'UTF8'), '', ''
FROM projects p, generate_series(0, $1::bigint - 1) n
"""
_TRACKED = """
INSERT INTO tracked_addresses (mode, family, address)
SELECT 'live', 'evm', '0x' || md5(n::text) || 'abcdef00' FROM generate_series(0, $1::bigint - 1) n
"""
_LISTS = """
INSERT INTO tracker_addresses (tracker_pk, chain, scope, address)
SELECT t.id, t.chain, t.scope, '0x' || md5(n::text) || 'abcdef00'
FROM generate_series(0, $1::bigint - 1) n, generate_series(0, $3::bigint - 1) list
JOIN trackers t ON true
WHERE t.webhook_id = 'trk_' || (n / $2::bigint + list * ($1::bigint / $2::bigint))
"""


def address(number: int) -> str:
    """Return an address; below ``ADDRESSES`` it is watched."""
    return f"0x{hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()}abcdef00"


class Chain:
    """Blocks that follow each other, as a poll would have read them."""

    def __init__(self) -> None:
        token = Token(symbol="USDX", contract=CONTRACT, decimals=6, label="Example dollar", least_units=Units(1))
        info = ChainInfo(id="bench", name="Bench", family=FAMILY, confirmations=1_000, tokens=(token,))
        self.scope = ChainScope(info=info, scope=0, mode="live")
        self.height = 0
        self._random = Random(7)

    def block(self, *, watched: bool) -> ScanResult:
        """Return a block in which as many transfers stand, between addresses that are all watched or all not."""
        self.height += 1
        own_hash = f"0x{self.height:064x}"
        first = 0 if watched else ADDRESSES
        transfers = [
            Transfer(
                tx_id=f"0x{self.height:032x}{number:032x}",
                position="log:0",
                height=self.height,
                block_hash=own_hash,
                sender=address(first + self._random.randrange(ADDRESSES)),
                recipient=address(first + self._random.randrange(ADDRESSES)),
                contract=CONTRACT,
                amount=Units(1_000_000 + number),
            )
            for number in range(TRANSFERS)
        ]
        block = Block(
            height=self.height,
            hash=own_hash,
            parent_hash=f"0x{self.height - 1:064x}",
            time=_BEGUN + _BETWEEN_S * self.height,
        )
        return ScanResult(blocks=(block,), transfers=transfers)


class Bench:
    """One database with trackers, and a chain that moves what they watch."""

    def __init__(self, db: Database) -> None:
        self._db, self._chain = db, Chain()
        self._fan_out = FanOut(db, SystemClock(), Hints(None))

    async def fill(self) -> None:
        async with self._db.autocommit() as conn:
            await conn.exec_driver_sql("SET statement_timeout = 0")
            await conn.exec_driver_sql(_OWNER)
            await conn.exec_driver_sql(_TRACKERS, (LISTS * ADDRESSES // PER_TRACKER,))
            await conn.exec_driver_sql(_TRACKED, (ADDRESSES,))
            await conn.exec_driver_sql(_LISTS, (ADDRESSES, PER_TRACKER, LISTS))
            # As where the lists were made before: not in the minute in which a million rows were written.
            await conn.exec_driver_sql("VACUUM (ANALYZE)")
            await conn.exec_driver_sql("CHECKPOINT")

    async def store(self, *, watched: bool) -> float:
        """Store a block as a poll does, at the head; return the seconds."""
        result = self._chain.block(watched=watched)
        head = Head(height=self._chain.height, hash=result.blocks[0].hash)
        now = datetime.now(UTC)
        started = time.perf_counter()
        async with self._db.transaction() as conn:
            ends = await ends_of(conn, self._chain.scope, result.transfers)
            await movements.save(conn, self._chain.scope, result, ends.tracked, now)
            await movements.confirm(conn, self._chain.scope, head, now)
        return time.perf_counter() - started

    async def tell(self) -> tuple[float, int]:
        """Queue what trackers are told of it; return the seconds and the deliveries."""
        started = time.perf_counter()
        deliveries = await self._fan_out.drain("bench", 0)
        return time.perf_counter() - started, deliveries


def _ms(seconds: Sequence[float]) -> float:
    return statistics.median(seconds) * 1000


async def measure(database_url: str) -> list[Row]:
    db = connect(database_url, application_name="cambist-bench")
    bench = Bench(db)
    await bench.fill()
    tune_memory()  # as the worker does, in which this runs
    stored, told, others, deliveries = [], [], [], 0
    for _ in range(ROUNDS + 1):
        stored.append(await bench.store(watched=True))
        seconds, deliveries = await bench.tell()
        told.append(seconds)
        others.append(await bench.store(watched=False))
    await db.close()
    # The first round warms up, but where it is the only one.
    stored, told, others = stored[-ROUNDS:], told[-ROUNDS:], others[-ROUNDS:]
    both = [one + two for one, two in zip(stored, told, strict=True)]
    return [
        at_most(f"block of {TRANSFERS:,} transfers, to {deliveries:,} deliveries queued", _ms(both), 1_000, " ms"),
        unjudged("of it in the transaction that credits deposits", f"{_ms(stored):,.0f} ms"),
        unjudged("of it behind a cursor of its own", f"{_ms(told):,.0f} ms"),
        unjudged(f"block of {TRANSFERS:,} transfers that nobody tracks", f"{_ms(others):,.0f} ms"),
    ]


def main() -> None:
    with migrated_servers() as (database_url, _):
        rows = uvloop.run(measure(database_url))
    trackers = LISTS * ADDRESSES // PER_TRACKER
    report(
        "Telling trackers what moved",
        rows,
        note=f"{ADDRESSES:,} watched addresses, each on {LISTS} of the lists of {trackers} trackers",
    )


if __name__ == "__main__":
    main()
