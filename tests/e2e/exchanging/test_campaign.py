"""Workers die at any moment between the quote and the record: each exchange is made once, and every unit is there."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from random import Random
from typing import Any, Self

import pytest

from tests.support.exchange_story import Story, units_of
from tests.support.gateway import GatewayProcess, until
from tests.support.networks import Coin

FULL = os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full"
KILLS = 60 if FULL else 6
LIFE_S = 7
"""About how long an exchange takes while nobody dies."""
SEED = int(os.environ.get("CAMBIST_TEST_SEED", "20261123"))
STARTED, READY = b"process_started", b"worker_ready"
"""What logs say of a worker."""
SENT = """
SELECT e.txn_id, count(DISTINCT t.tx_id) FILTER (WHERE t.state = 'final' AND t.succeeded AND t.role = 'main') AS calls
FROM exchanges e LEFT JOIN outbound_slots s ON s.intent_pk = e.intent_pk LEFT JOIN outbound_txs t ON t.slot_pk = s.id
GROUP BY 1
"""


class Doubled:
    """The gateway's worker and a second one beside it, either of which comes back when it is killed."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self._gateway, self._log = gateway, gateway.folder / "second.log"
        self._second: Any = None
        self._killed: set[int] = set()
        self._stopping = False

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping = True
        if self._second is not None and self._second.returncode is None:
            self._second.terminate()
        await self._running

    async def _run(self) -> None:
        while not self._stopping:
            self._log.write_bytes(b"")
            self._second = await self._gateway.another_worker(self._log)
            await self._second.wait()

    async def ready(self) -> list[int]:
        """Return the ids of those that have started to work and were not killed, as soon as there are any."""

        async def poll() -> list[int]:
            said = self._gateway.log.read_bytes()
            found = [one.pid for one in self._gateway.workers() if READY in said[said.rfind(STARTED) :]]
            if self._second is not None and READY in self._log.read_bytes():
                found.append(self._second.pid)
            return [pid for pid in found if pid not in self._killed]

        return await until(poll)

    async def kill(self, chance: Random) -> None:
        """Kill one that works: one that only starts could die a hundred times and change nothing."""
        pid = chance.choice(await self.ready())
        self._killed.add(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class Campaign:
    """Asks for exchanges of both kinds in both directions, and kills workers all the while."""

    def __init__(self, story: Story, ways: list[tuple[Coin, str, Coin]]) -> None:
        self.story, self.ways = story, ways
        self.random = Random(SEED)
        self.made: list[tuple[dict, Coin, Coin]] = []

    async def run(self, workers: Doubled) -> None:
        """Ask for an exchange and kill a worker at some moment of its life, again and again."""
        for number in range(KILLS):
            await workers.ready()
            await self._ask(f"campaign {number}", *self.ways[number % len(self.ways)])
            await asyncio.sleep(self.random.uniform(0, LIFE_S))
            await workers.kill(self.random)

    async def _ask(self, key: str, sells: Coin, amount: str, buys: Coin) -> None:
        """Ask twice with one key, as a program does that does not know whether it was heard."""
        made, again = [
            await self.story.trader.exchange(sells, amount, buys, idempotencyKey=key) for _ in range(2)
        ]  # fmt: skip
        assert (made["txnId"], made["status"]) == (again["txnId"], "pending")
        self.made.append((made, sells, buys))

    async def ends(self) -> list[tuple[dict, Coin, Coin]]:
        """Return all exchanges as they have ended: none may fail."""
        seconds = 1200 if FULL else 240
        done = await asyncio.gather(*(self.story.trader.ended(made, seconds=seconds) for made, _, _ in self.made))
        return [(ended, sells, buys) for ended, (_, sells, buys) in zip(done, self.made, strict=True)]


@pytest.mark.campaign
@pytest.mark.timeout(3600)
async def test_each_exchange_is_made_once_though_workers_are_killed(story: Story, network, other, market):
    usdx, there, eth = network.usdx, other.usdx, network.native
    ways = [(usdx, "20", market.usdt), (usdx, "15", there), (eth, "0.01", usdx), (there, "12", usdx)]
    share = 1 + KILLS // len(ways)
    await story.rich({usdx: 40 * share, there: 20 * share, eth: Decimal("0.01") * share})
    coins = [usdx, market.usdt, there, eth]
    expected = Counter({coin: await story.holds(coin) for coin in coins})
    campaign = Campaign(story, ways)
    async with Doubled(story.gateway) as workers:
        await campaign.run(workers)
        ended = await campaign.ends()
    for done, sells, buys in ended:
        expected[sells] -= units_of(sells, done["sourceAmount"])
        expected[buys] += units_of(buys, done["destAmount"])
        if buys.contract is not None:
            assert await story.received(buys, done["destTxHash"]) == units_of(buys, done["destAmount"])
    await story.check({coin: expected[coin] for coin in coins})
    for coin in coins:
        for spender in (market.oneinch.router, market.across.sides[coin.chain].pool):
            await story.no_allowance(coin, spender)
    assert await sent(story) == {done["txnId"]: 1 for done, _, _ in ended}
    await story.is_clean()


async def sent(story: Story) -> dict[str, int]:
    """Return how many final calls each exchange has: a swap that was sent twice would have swapped twice."""
    async with story.db.transaction() as conn:
        rows = await conn.exec_driver_sql(SENT)
        ours = {one["txnId"] for one in await everything(story)}
        return {row.txn_id: row.calls for row in rows if row.txn_id in ours}


async def everything(story: Story) -> list[dict]:
    """Return all exchanges of the merchant."""
    found, page = [], 1
    while more := (await story.trader.get(f"/api/merchant/swap-bridge/history?page={page}&limit=100"))["exchanges"]:
        found, page = [*found, *more], page + 1
    return found
