"""A tracker that begins in the past hears on a real node what happened before anybody watched."""

from __future__ import annotations

from collections import Counter

from tests.support.gateway import until
from tests.support.receiver import Receiver


async def test_old_transfers_are_told_and_new_ones_as_they_come(merchant, network, usdx, native):
    stranger, other = network.stranger(), network.stranger()
    start = await network.height() + 1
    old = []
    for coin in (usdx, native):
        old.append(await coin.send(stranger, "2"))
        await network.mine(2)
    later = await usdx.send(other, "3")
    await network.mine(5)
    async with Receiver() as receiver:
        body = {"url": receiver.url, "name": "Past", "chain": network.chain, "startBlock": start}
        made = (await merchant.post("/api/webhook/create", body, status=201))["webhook"]
        receiver.secret, token = made["secretKey"], {"X-Auth-Token": made["authToken"]}

        async def told(*tx_ids):
            await network.mine()
            found = Counter((one["data"]["txHash"], one["data"]["status"]) for one in receiver.received)
            wanted = {(tx_id, stage) for tx_id in tx_ids for stage in ("detected", "confirmed")}
            return found if found.keys() >= wanted else None

        await merchant.post("/api/webhook/address/add", {"address": stranger}, headers=token)
        await until(lambda: told(*old))
        new = await usdx.send(stranger, "1")
        await until(lambda: told(*old, new))
        await merchant.post("/api/webhook/address/add", {"address": other}, headers=token)
        found = await until(lambda: told(*old, new, later))
        assert set(found.values()) == {1}
        assert len(found) == 8
        assert receiver.rejected == []

        async def done():
            await network.mine()
            history = (await merchant.get("/api/webhook/get", headers=token))["webhook"]["history"]
            return history if history["state"] == "done" else None

        history = await until(done)
        assert history["fromBlock"] == start
        assert history["readBlock"] == history["toBlock"] > start
        await merchant.post("/api/webhook/deactivate", None, headers=token)
