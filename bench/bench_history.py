"""How fast the past is read for trackers, beside the live watch of the same process, which must not fall behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import uvloop
from _harness import ROUNDS, Row, alternate_async, at_most, compare, report, sized
from _servers import migrated_servers
from msgspec.structs import replace

from cambist.db.engine import Database, connect
from cambist.hints import Hints
from cambist.ports import SystemClock, system_ids
from cambist.services.receiving.deposits import AddressCache, Watcher
from cambist.services.receiving.history import HistoryReader, Progress
from cambist.services.trackers import history
from cambist.services.trackers.fan_out import FanOut
from cambist.testing.memory import MemoryChain, memory_chain_info
from cambist.testing.memory.blocks import Output
from cambist.testing.memory.family import named_address

BLOCKS = sized(10_000, tiny=200)
TRANSFERS = 20
"""In each block; one of them is watched in every tenth block."""
BLOCK_S = sized(1.0, tiny=0.05)
"""How often a block is mined while the past is read."""
LAG_AIM = 1
"""The newest block, and none besides: fewer than two."""
WATCHED = named_address("watched")

_OWNER = """
WITH merchant AS (
    INSERT INTO merchants (merchant_id, email, name)
    VALUES ('mer_1', 'a@example.com', 'Shop') RETURNING id
)
INSERT INTO projects (project_id, merchant_pk, name, mode) SELECT 'prj_1', id, 'Shop', 'live' FROM merchant
"""
_TRACKER = """
WITH tracker AS (
    INSERT INTO trackers (
        webhook_id, project_pk, mode, chain, scope, url, name, start_block, max_addresses, token_hash, token_encrypted,
        secret_encrypted, reads_past
    )
    SELECT 'trk_1', id, 'live', 'memory', 0, 'https://shop.example/', 'Mine', 0, 10, '', '', '', true FROM projects
    RETURNING id
), tracked AS (
    INSERT INTO tracked_addresses (mode, family, address) VALUES ('live', $1, $2)
)
INSERT INTO tracker_addresses (tracker_pk, chain, scope, address)
SELECT id, 'memory', 0, $2 FROM tracker RETURNING tracker_pk
"""


class Bench:
    """One chain in memory, read by the live watch from its first block, and again as its past."""

    def __init__(self, db: Database) -> None:
        self._db, self._clock, self._hints = db, SystemClock(), Hints(None)
        info = replace(memory_chain_info(), confirmations=1)
        self._chain = MemoryChain(info, genesis_time=int(time.time()) - 20 * BLOCKS)
        self._token = info.tokens[1]
        self._family = self._chain.family
        self._addresses = AddressCache(db, self._family, "live")
        self._fan_out = FanOut(db, self._clock, self._hints)
        self._tracker_pk = 0
        self.lags: list[int] = []

    async def fill(self) -> None:
        for number in range(BLOCKS):
            self._mine(number)
        async with self._db.transaction() as conn:
            await conn.exec_driver_sql(_OWNER)
            found = await conn.exec_driver_sql(_TRACKER, (self._family.name, WATCHED))
            self._tracker_pk = found.scalar_one()

    def _mine(self, number: int) -> None:
        recipients = [named_address(f"nobody {one}") for one in range(TRANSFERS)]
        if number % 10 == 0:
            recipients[0] = WATCHED
        self._chain.submit([Output(contract=self._token.contract, recipient=one, amount=1_000) for one in recipients])
        self._chain.mine()

    async def _begin(self, *, height: int) -> None:
        """Forget what was read, and let the live watch begin at a block."""
        async with self._chain.view() as view:
            block = await view.block(height)
        async with self._db.transaction() as conn:
            await conn.exec_driver_sql(
                "TRUNCATE movements, movement_stages, tracker_cursors, tracker_transactions, tracker_histories,"
                " webhook_deliveries, chain_cursors, chain_blocks CASCADE"
            )
            await conn.exec_driver_sql(
                "INSERT INTO chain_cursors (chain, scope, height, hash, head, updated_at)"
                " VALUES ('memory', 0, $1, $2, $1, now())",
                (height, block.hash),
            )
            await conn.exec_driver_sql(
                "INSERT INTO chain_blocks (chain, scope, height, hash, parent_hash, mined_at, kept)"
                " VALUES ('memory', 0, $1, $2, '', now(), true)",
                (height, block.hash),
            )

    def _watcher(self) -> Watcher:
        return Watcher(
            db=self._db,
            chain=self._chain,
            family=self._family,
            address_cache=self._addresses,
            scope=0,
            mode="live",
            clock=self._clock,
            ids=system_ids(),
            hints=self._hints,
        )

    async def live(self) -> float:
        """Read the chain as the live watch does, and tell of it; return blocks per second."""
        await self._begin(height=0)
        watcher, started = self._watcher(), time.perf_counter()
        async with watcher.reading_ahead():
            while (await watcher.poll()).behind:
                pass
        await self._fan_out.drain("memory", 0)
        return self._chain.height / (time.perf_counter() - started)

    async def past(self) -> float:
        """Read it as the past, while blocks are mined and watched; return blocks per second."""
        await self._begin(height=self._chain.height)
        async with self._db.transaction() as conn:
            await history.ask(conn, self._tracker_pk)
        reader = HistoryReader(
            db=self._db,
            chain=self._chain,
            family=self._family,
            scope=0,
            mode="live",
            clock=self._clock,
            hints=self._hints,
            blocks_max=10 * BLOCKS,
            pause_s=0,
        )
        watching = asyncio.create_task(self._watch())
        progress, blocks, started = Progress(), 0, time.perf_counter()
        step = await reader.step(progress, self._saving)
        while not step.over:
            blocks += step.blocks
            step = await reader.step(step.progress, self._saving)
        elapsed = time.perf_counter() - started
        watching.cancel()
        await asyncio.wait([watching])
        if blocks < BLOCKS:
            raise AssertionError(f"{blocks} blocks were read of {BLOCKS}")
        return blocks / elapsed

    async def _watch(self) -> None:
        """Mine a block now and then, and watch as a worker does; note how far behind each poll finds itself."""
        watcher, loop = self._watcher(), asyncio.get_running_loop()
        due, number = loop.time(), 0
        async with watcher.reading_ahead():
            while True:
                if loop.time() >= due:
                    # Blocks come when they come, also while nobody had time to look.
                    for _ in range(1 + int((loop.time() - due) / BLOCK_S)):
                        self._mine(number)
                        number, due = number + 1, due + BLOCK_S
                before = await self._cursor()
                self.lags.append(self._chain.height - before)
                await watcher.poll()
                await asyncio.sleep(max(0.0, due - loop.time()))

    async def _cursor(self) -> int:
        async with self._db.autocommit() as conn:
            found = await conn.exec_driver_sql("SELECT height FROM chain_cursors WHERE chain = 'memory'")
            height: int = found.scalar_one()
        return height

    @asynccontextmanager
    async def _saving(self, _: Mapping[str, Any]) -> AsyncIterator[Any]:
        async with self._db.transaction() as conn:
            yield conn


async def measure(database_url: str) -> list[Row]:
    db = connect(database_url, application_name="cambist-bench")
    bench = Bench(db)
    await bench.fill()
    await bench.live()
    bench.lags.clear()
    found = await alternate_async({"past": bench.past, "live": bench.live}, ROUNDS)
    await db.close()
    return [
        compare(f"{BLOCKS:,} blocks of the past, beside the live scan", found["past"], found["live"], aim=0.5),
        at_most("blocks that a poll of the live watch found, at most", max(bench.lags), LAG_AIM, ""),
    ]


def main() -> None:
    with migrated_servers() as (database_url, _):
        rows = uvloop.run(measure(database_url))
    report(
        "Reading the past for trackers (blocks per second)",
        rows,
        note=f"a chain in memory with {TRANSFERS} transfers a block; one of the past in every tenth block is told of;"
        f" meanwhile a block every {BLOCK_S:g} s is watched by the same process",
    )


if __name__ == "__main__":
    main()
