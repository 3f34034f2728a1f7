"""An operator mends a chain over the API while web and worker run: on a real node, behind endpoints that die."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from cambist.bootstrap import Parts, open_gateway
from cambist.db.engine import Database
from cambist.ports import Ids, SystemClock
from cambist.registry import Registry
from cambist.signer.keystore import new_keystore
from cambist_evm.testing import Anvil, Fault, FaultyProxy
from tests.support.web import ADMIN_KEY, Merchant, web_client, web_settings
from tests.tasks.test_worker import working

HEADERS = {"X-Admin-Key": ADMIN_KEY}
CHAINS = "/api/admin/chains/local"


class RunningGateway:
    """A gateway of web and worker on one node, which only an endpoint that can die leads to, and its merchant."""

    def __init__(self, client: Any, node: Anvil, first: FaultyProxy, merchant: Merchant) -> None:
        self.client, self.node, self.first, self.merchant = client, node, first, merchant

    async def admin(self, method: str, path: str, **body: Any) -> Any:
        answer = await self.client.request(method, path, json=body or None, headers=HEADERS)
        assert answer.is_success, answer.text
        return answer.json()

    async def until(self, path: str, name: str, told: Callable[[Any], bool]) -> Any:
        """Read it until it is as it should be."""
        async with asyncio.timeout(180):
            while True:
                found = (await self.admin("GET", path))[name]
                if told(found):
                    return found
                await asyncio.sleep(0.1)

    async def add(self, url: str, **others: Any) -> Any:
        """Add an endpoint, and return what became of it."""
        made = (await self.admin("POST", f"{CHAINS}/endpoints", url=url, **others))["endpoint"]
        path = f"{CHAINS}/endpoints/{made['endpointId']}"
        return await self.until(path, "endpoint", lambda one: one["state"] != "checking")

    async def payment(self, token: str, amount: str) -> Any:
        body = {"chain": "local", "token": token, "pricingMode": "direct_crypto", "amount": amount}
        answer = await self.client.post("/api/payment", json=body, headers=self.merchant.key)
        assert answer.status_code == 201, answer.text
        return answer.json()["payment"]

    async def paid(self, payment: Any) -> None:
        """Mine until the payment is paid."""
        async with asyncio.timeout(180):
            while True:
                answer = await self.client.get(f"/api/payment/{payment['paymentId']}", headers=self.merchant.key)
                if answer.json()["payment"]["status"] == "paid":
                    return
                await self.node.mine()
                await asyncio.sleep(0.1)


@pytest.fixture
async def running(
    db: Database, database_url: str, redis_url: str, ids: Ids, tmp_path: Path
) -> AsyncIterator[RunningGateway]:
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(Anvil(chain_id=1337))
        first = await stack.enter_async_context(FaultyProxy(node.url))
        local = {
            "rpc_urls": [first.url], "chain_id": 1337, "native_symbol": "TST", "confirmations": 1,
            "poll_interval_ms": 50, "request_timeout_ms": 20_000,
        }  # fmt: skip
        plugins = {"evm": {"chains": {"local": local}}}
        settings = web_settings(database_url, redis_url)
        keys = structs.replace(settings.keys, stock=3)
        settings = structs.replace(settings, plugins=plugins, data_dir=tmp_path, keys=keys)
        keystore = new_keystore(ids.random_bytes)
        gateways = [
            await stack.enter_async_context(
                open_gateway(
                    settings,
                    role=role,
                    parts=Parts(
                        clock=SystemClock(), ids=ids, registry=Registry(plugins),
                        keystore=keystore if role == "worker" else None,
                    ),
                )
            )
            for role in ("web", "worker")
        ]  # fmt: skip
        await stack.enter_async_context(working(gateways[1]))
        client = await stack.enter_async_context(web_client(gateways[0]))
        running = RunningGateway(client, node, first, Merchant(client))
        await running.until(CHAINS, "chain", lambda chain: chain["height"] is not None and chain["endpoints"] != [])
        await _stocked(db)
        await running.merchant.open()
        yield running


async def _stocked(db: Database) -> None:
    """Wait for the worker's first account keys."""

    async def count() -> int:
        async with db.autocommit() as conn:
            found: int = (await conn.exec_driver_sql("SELECT count(*) FROM account_keys")).scalar_one()
            return found

    await _soon(count)


async def _soon(ask: Callable[[], Awaitable[Any]]) -> None:
    async with asyncio.timeout(180):
        while not await ask():  # noqa: ASYNC110  another process knows
            await asyncio.sleep(0.1)


async def test_a_dead_endpoint_is_replaced_and_a_token_added_without_a_restart(running: RunningGateway) -> None:
    node = running.node
    usdx = await node.deploy("TestToken", "USDX", 6)
    await usdx.send("mint", node.accounts[0], 10**12)
    (own,) = (await running.admin("GET", CHAINS))["chain"]["endpoints"]
    assert (own["origin"], own["state"], own["healthy"]) == ("file", "in_use", True)

    # A token by its contract: received at once, and not sent before the signer's own file has it.
    added = (await running.admin("POST", "/api/admin/tokens", chain="local", contract=usdx.address))["token"]
    path = f"/api/admin/tokens/{added['tokenId']}"
    token = await running.until(path, "token", lambda one: one["state"] != "checking")
    assert (token["state"], token["symbol"], token["decimals"]) == ("enabled", "USDX", 6)
    token = await running.until(path, "token", lambda one: one["sendableReasonCode"] == "NOT_IN_SIGNERS_FILE")
    assert token["sendable"] is False

    async def listed() -> bool:
        tokens = (await running.client.get("/api/public/tokens?chain=local")).json()["tokens"]
        return "USDX" in [one["symbol"] for one in tokens]

    await _soon(listed)
    payment = await running.payment("USDX", "2.5")
    await usdx.send("transfer", payment["depositAddress"], 2_500_000)
    await running.paid(payment)

    # A node of another chain, and one that serves this one's id and other blocks, are refused.
    async with Anvil(chain_id=1338) as other, Anvil(chain_id=1337) as twin:
        refused = await running.add(other.url)
        assert (refused["state"], "chain id 1338" in refused["reason"]) == ("refused", True)
        await twin.mine(await node.height() + 5)
        refused = await running.add(twin.url)
        assert (refused["state"], "is another than the one that was read" in refused["reason"]) == ("refused", True)

    # The provider dies, and is told; another one leads to the same chain.
    running.first.faults.add(Fault.RESET)
    await running.until(CHAINS, "chain", lambda one: one["error"] is not None and not one["endpoints"][0]["healthy"])
    payment = await running.payment("TST", "1")
    await node.send_native(payment["depositAddress"], 10**18)
    async with FaultyProxy(node.url) as second:
        taken = await running.add(second.url, replaces=own["endpointId"], label="second provider")
        assert (taken["state"], taken["reason"]) == ("in_use", None)
        await running.paid(payment)
        chain = await running.until(CHAINS, "chain", lambda one: one["error"] is None)
        states = {one["name"]: one["state"] for one in chain["endpoints"] if one["state"] in {"in_use", "removed"}}
        assert states == {own["name"]: "removed", "second provider": "in_use"}
        asked = running.first.requests
        payment = await running.payment("USDX", "1")
        await usdx.send("transfer", payment["depositAddress"], 1_000_000)
        await running.paid(payment)
        assert running.first.requests == asked
    log = (await running.admin("GET", CHAINS))["chain"]
    assert log["tokens"] == ["TST", "USDX"]
