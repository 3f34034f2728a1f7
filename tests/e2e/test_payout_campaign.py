"""Workers die at any moment and the node is restarted: each of many payouts arrives exactly once."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager, suppress
from decimal import Decimal
from random import Random
from typing import Any

import aiohttp
import pytest

from tests.e2e.conftest import station_address
from tests.support.gateway import GatewayProcess, Merchant, named
from tests.support.networks import Coin

ONE = 10**6
FULL = os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full"
PAYOUTS, KILLS, WORKERS = (1_000, 100, 3) if FULL else (50, 6, 2)
SEED = int(os.environ.get("CAMBIST_TEST_SEED", "20261121"))


@pytest.fixture(scope="module")
def network_options(tmp_path_factory):
    """Have the node keep its blocks over a restart."""
    return {"folder": tmp_path_factory.mktemp("node")}


@pytest.fixture(scope="module")
def tables(network):
    return network.settings()


@pytest.fixture(scope="module")
def more_settings():
    return ["[outbound]", "rebroadcast_s = 1.0", "stuck_after_s = 20.0", "collect_interval_ms = 500"]


@asynccontextmanager
async def more_workers(gateway: GatewayProcess, count: int):
    """Run further workers beside the gateway's own; whoever is killed is started again."""
    stopping = False
    processes: list[Any] = [None] * count

    async def keep(number: int) -> None:
        while not stopping:
            process = processes[number] = await gateway.another_worker()
            await process.wait()

    tasks = [asyncio.create_task(keep(number)) for number in range(count)]
    try:
        yield processes
    finally:
        stopping = True
        for process in processes:
            if process is not None and process.returncode is None:
                process.terminate()
        await asyncio.gather(*tasks)


class Campaign:
    """What happens at once: requests, blocks, deaths; until every payout is completed."""

    def __init__(self, gateway: GatewayProcess, merchant: Merchant, coin: Coin, db) -> None:
        self.gateway, self.merchant, self.coin, self.db = gateway, merchant, coin, db
        self.node = coin.network
        self.random = Random(SEED)
        self.amounts = {self.node.stranger(f"payee {n}"): ONE + n for n in range(PAYOUTS)}
        self.done = asyncio.Event()

    async def requests(self) -> None:
        rows = list(self.amounts.items())
        self.random.shuffle(rows)
        for first in range(0, len(rows), 50):
            destinations = [{"toAddress": to, "amount": str(units / ONE)} for to, units in rows[first : first + 50]]
            body = {**named(self.coin), "destinations": destinations}
            answer = await self.merchant.post("/api/merchant/wallet/payout/batch", body, status=201)
            assert answer["batch"]["rejectedRows"] == 0
            await asyncio.sleep(self.random.uniform(0, 1))

    async def blocks(self) -> None:
        while not self.done.is_set():
            with suppress(aiohttp.ClientError):  # while the node restarts
                await self.node.mine()
            await asyncio.sleep(self.random.uniform(0.05, 0.4))

    async def killer(self, others) -> int:
        kills = 0
        while kills < KILLS:
            await asyncio.sleep(self.random.uniform(0.1, 1.2))
            alive = [process for process in others if process is not None and process.returncode is None]
            victims = [*self.gateway.workers(), *alive]
            if victims:
                self.random.choice(victims).kill()
                kills += 1
                if kills == KILLS // 2:
                    await self.node.restart()
        return kills

    async def completed(self) -> None:
        for _ in range(2_000 if FULL else 600):
            if await statuses(self.db) == {"completed": PAYOUTS}:
                break
            await asyncio.sleep(0.5)
        self.done.set()


@pytest.mark.campaign
@pytest.mark.timeout(3600)
async def test_each_payout_arrives_once_though_workers_are_killed_and_the_node_is_restarted(
    gateway, session, receiver, network, usdx, story_db
):
    merchant = await Merchant(gateway.url, session).open(webhook_url=receiver.url)
    receiver.secret = merchant.project["webhookSecret"]
    await network.native.send(await station_address(story_db, network), 20 * network.station_float)
    campaign = Campaign(gateway, merchant, usdx, story_db)
    await fund(merchant, usdx, sum(campaign.amounts.values()))
    first_block = await network.height()
    async with more_workers(gateway, WORKERS - 1) as others:
        kills, *_ = await asyncio.gather(
            campaign.killer(others), campaign.requests(), campaign.blocks(), campaign.completed()
        )
    assert kills == KILLS
    assert await statuses(story_db) == {"completed": PAYOUTS}
    await check_the_chain(usdx, campaign.amounts, first_block)
    assert (await merchant.balance(usdx)) == {}
    await network.mine(6)
    await gateway.reconcile()

    def all_told() -> bool:
        return len({e["data"]["payoutId"] for e in receiver.received if e["event"] == "payout.completed"}) == PAYOUTS

    # What a killed worker was about to deliver is another's once its claim has expired.
    await receiver.until(all_told, seconds=180)


async def fund(merchant: Merchant, coin: Coin, units: int) -> None:
    """Have customers pay what the payouts need, in a few payments."""
    for part in range(4):
        amount = Decimal(units // 4 + (units % 4 if part == 0 else 0)) / ONE
        payment = await merchant.pay(coin, amount)
        await coin.send(payment["depositAddress"], amount)
        await coin.network.mine(5)
        await merchant.until(payment, "paid", seconds=180)


async def statuses(db) -> dict[str, int]:
    async with db.transaction() as conn:
        rows = await conn.exec_driver_sql("SELECT status, count(*) FROM payouts GROUP BY status")
        return {row.status: row.count for row in rows}


async def check_the_chain(coin: Coin, amounts: dict[str, int], first_block: int) -> None:
    """Read every transfer from the node with another client: one for each address, of just its amount."""
    found = await coin.network.onlooker.received(coin, first_block)
    assert {to: units for to, units in found.items() if to in amounts} == {to: [units] for to, units in amounts.items()}
