"""Workers die at any moment and the node is restarted: each of many payouts arrives exactly once."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random

import aiohttp
import pytest
from eth_account import Account as Keys
from web3 import Web3

from cambist_evm.testing import Anvil
from tests.e2e.conftest import chain_settings, token_on
from tests.support.gateway import GatewayProcess, Merchant, settings_text

ONE = 10**6
FULL = os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full"
PAYOUTS, KILLS, WORKERS = (1_000, 100, 3) if FULL else (80, 8, 2)
SEED = int(os.environ.get("CAMBIST_TEST_SEED", "20261121"))
TRANSFER = Web3.keccak(text="Transfer(address,address,uint256)").to_0x_hex()


@pytest.fixture(scope="module")
async def node(tmp_path_factory):
    """Run a node that keeps its blocks over a restart."""
    state = tmp_path_factory.mktemp("anvil") / "state.json"
    async with Anvil(chain_id=1, automine=False, state=state) as node:
        yield node


@pytest.fixture(scope="module")
async def usdx(node):
    return await token_on(node)


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory, story_database_url, story_redis_url, node, usdx):
    settings = settings_text(
        database_url=story_database_url,
        redis_url=story_redis_url,
        # A restarted anvil cannot trace its old blocks, and the watcher passes over none that it cannot trace.
        chains={"ethereum": {**chain_settings(node.url, usdx), "trace": "off"}},
        more=["[outbound]", "rebroadcast_s = 1.0", "stuck_after_s = 20.0", "collect_interval_ms = 500"],
    )
    async with GatewayProcess(tmp_path_factory.mktemp("gateway"), settings) as gateway:
        yield gateway


@asynccontextmanager
async def more_workers(gateway: GatewayProcess, count: int):
    """Run further workers beside the gateway's own; whoever is killed is started again."""
    stopping = False
    processes: list[asyncio.subprocess.Process | None] = [None] * count

    async def keep(number: int) -> None:
        while not stopping:
            with gateway.log.open("ab") as log:
                process = await asyncio.create_subprocess_exec(
                    str(Path(sys.executable).with_name("cambist")), "worker", "--config", str(gateway.config),
                    "--data-dir", str(gateway.folder / "data"), stdout=log, stderr=log,
                )  # fmt: skip
            processes[number] = process
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

    def __init__(self, gateway: GatewayProcess, merchant: Merchant, node: Anvil, db) -> None:
        self.gateway, self.merchant, self.node, self.db = gateway, merchant, node, db
        self.random = Random(SEED)
        self.amounts = {Keys.from_key(Web3.keccak(text=f"target {n}")).address: ONE + n for n in range(PAYOUTS)}
        self.done = asyncio.Event()

    async def requests(self) -> None:
        rows = list(self.amounts.items())
        self.random.shuffle(rows)
        for first in range(0, len(rows), 50):
            destinations = [{"toAddress": to, "amount": str(units / ONE)} for to, units in rows[first : first + 50]]
            body = {"chain": "ethereum", "token": "USDX", "destinations": destinations}
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
    gateway, session, receiver, node, usdx, story_db
):
    merchant = await Merchant(gateway.url, session).open(webhook_url=receiver.url)
    receiver.secret = merchant.project["webhookSecret"]
    async with story_db.transaction() as conn:
        row = await conn.exec_driver_sql("SELECT address FROM addresses WHERE purpose = 'gas' AND mode = 'live'")
        await node.send_native(row.scalar_one(), 100 * 10**18)
    campaign = Campaign(gateway, merchant, node, story_db)
    await fund(merchant, node, usdx, sum(campaign.amounts.values()))
    first_block = await node.height()
    async with more_workers(gateway, WORKERS - 1) as others:
        kills, *_ = await asyncio.gather(
            campaign.killer(others), campaign.requests(), campaign.blocks(), campaign.completed()
        )
    assert kills == KILLS
    assert await statuses(story_db) == {"completed": PAYOUTS}
    check_the_chain(node, usdx, campaign.amounts, first_block)
    assert (await merchant.balance("ethereum", "USDX")) == {}
    await node.mine(6)
    await gateway.reconcile()
    told = [e["data"]["payoutId"] for e in receiver.received if e["event"] == "payout.completed"]
    assert len(set(told)) == PAYOUTS


async def fund(merchant, node, usdx, units: int) -> None:
    """Have customers pay what the payouts need, in a few payments."""
    for part in range(4):
        share = units // 4 + (units % 4 if part == 0 else 0)
        payment = await merchant.pay("ethereum", "USDX", f"{share // ONE}.{share % ONE:06d}")
        await usdx.send("transfer", payment["depositAddress"], share)
        await node.mine(5)
        await merchant.until(payment, "paid", seconds=60)


async def statuses(db) -> dict[str, int]:
    async with db.transaction() as conn:
        rows = await conn.exec_driver_sql("SELECT status, count(*) FROM payouts GROUP BY status")
        return {row.status: row.count for row in rows}


def check_the_chain(node, usdx, amounts: dict[str, int], first_block: int) -> None:
    """Read every transfer from the node's logs with another client: one for each target, of just its amount."""
    client = Web3(Web3.HTTPProvider(node.url))
    topics = [TRANSFER]
    logs = client.eth.get_logs({"fromBlock": first_block, "address": usdx.address, "topics": topics})
    found: dict[str, list[int]] = {}
    for log in logs:
        to = Web3.to_checksum_address(log["topics"][2][-20:])
        if to in amounts:
            found.setdefault(to, []).append(int.from_bytes(log["data"], "big"))
    assert found == {to: [units] for to, units in amounts.items()}
