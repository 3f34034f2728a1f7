"""How long it takes from a block on a real node to the webhook at the merchant's server, through the whole gateway."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from random import Random
from typing import Any

from _child import Child
from _gateway import Shop, gateway, open_shop
from _harness import Row, at_most, percentile, report, sized, unjudged
from _servers import migrated_servers

from cambist_evm.testing import Anvil, Contract

PAYMENTS = sized(60, tiny=2)
ONE = 10**6
POLL_MS = 200
LATENCY_MS_MAX = 1_000
NOTIFIED_S_MAX = 30.0

CHAIN = """\
[plugins.evm.chains.ethereum]
rpc_urls = ["{url}"]
confirmations = 3
poll_interval_ms = {poll_ms}
[[plugins.evm.chains.ethereum.tokens]]
symbol = "USDX"
contract = "{contract}"
decimals = 6
"""


async def token_on(node: Anvil) -> Contract:
    token = await node.deploy("TestToken", "USDX", 6)
    await token.send("mint", node.accounts[0], PAYMENTS * ONE)
    await node.mine()
    return token


async def pay(node: Anvil, token: Contract, shop: Shop) -> dict[str, float]:
    """Pay one payment after the other, each in a block of its own; return when each block was asked for."""
    random = Random(3)
    body = {"chain": "ethereum", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1"}
    mined_at = {}
    for _ in range(PAYMENTS):
        payment = (await asyncio.to_thread(shop.post, "/api/payment", body))["payment"]
        await token.send("transfer", payment["depositAddress"], ONE)
        await asyncio.sleep(random.uniform(0.1, 0.1 + 2 * POLL_MS / 1000))
        mined_at[payment["paymentId"]] = time.time()
        await node.mine()
    return mined_at


def first_notified(received: list[tuple[float, bytes]]) -> dict[str, float]:
    """Return when ``payment.detected`` came for each payment."""
    notified_at: dict[str, float] = {}
    for at, body in received:
        event: dict[str, Any] = json.loads(body)
        if event["event"] == "payment.detected":
            notified_at.setdefault(event["data"]["paymentId"], at)
    return notified_at


async def measure(database_url: str, redis_url: str, sink: Child) -> list[float]:
    async with Anvil(chain_id=1, automine=False) as node:
        token = await token_on(node)
        chain = CHAIN.format(url=node.url, poll_ms=POLL_MS, contract=token.address)
        with gateway(database_url, redis_url, workers=1, plugins=chain) as port:
            shop = open_shop(port, mode="live", webhook_url=sink.call("addresses")[0])
            mined_at = await pay(node, token, shop)
            received: list[tuple[float, bytes]] = []
            deadline = time.monotonic() + NOTIFIED_S_MAX
            while len(notified_at := first_notified(received)) < PAYMENTS and time.monotonic() < deadline:
                await asyncio.sleep(0.2)
                received += sink.call("take")
    assert notified_at.keys() == mined_at.keys()
    return [(notified_at[payment_id] - at) * 1000 for payment_id, at in mined_at.items()]


def main() -> None:
    with migrated_servers() as (database_url, redis_url), Child("_sink:Sink", 1) as sink:
        latencies_ms = asyncio.run(measure(database_url, redis_url, sink))
    rows: list[Row] = [
        at_most("block mined to webhook received, p99", percentile(latencies_ms, 0.99), LATENCY_MS_MAX, " ms"),
        unjudged("block mined to webhook received, p50", f"{statistics.median(latencies_ms):.0f} ms"),
    ]
    report(
        "From the block to the merchant",
        rows,
        note=f"{PAYMENTS} payments on anvil, a block each; the wait for the next poll, every {POLL_MS} ms, is in it",
    )


if __name__ == "__main__":
    main()
