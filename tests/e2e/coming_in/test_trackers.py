"""What moves from and to watched addresses on a real node is told: first seen, and confirmed.

What a reorg takes back is told in test_accounts.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from decimal import Decimal
from random import Random

from tests.support.gateway import until
from tests.support.watched import watched

CONFIRMED = ("detected", "confirmed")


async def account_of(merchant, network, name):
    body = {"externalId": name, "chains": [network.native.chain]}
    account = (await merchant.post("/api/account", body, status=201))["account"]
    return account["accountId"], account["addresses"][0]["address"]


async def balance_of(merchant, account_id, coin):
    found = (await merchant.get(f"/api/account/{account_id}/balances"))["balances"]
    return {one["token"]: one["balance"] for one in found if one["pending"] == "0"}.get(coin.symbol, "0")


async def until_balance(merchant, account_id, coin, amount):
    async def reached():
        return await balance_of(merchant, account_id, coin) == amount

    await until(reached)


async def test_what_moves_in_and_out_is_told_and_listed_as_another_client_reads_it(
    merchant, network, usdx, native, onlooker, books
):
    customer, stranger = network.customer(), network.stranger()
    _, ours = await account_of(merchant, network, "watched-1")
    since = await network.height()
    addresses = [customer.address, stranger, ours]
    async with watched(merchant, network.chain, *addresses) as tracker:
        for coin in (native, usdx):
            await coin.send(customer.address, 100)
        await network.mine()
        paid = await customer.pay(ours, usdx, 5)
        await network.pay_many(usdx, [(stranger, "1.5"), (ours, "2"), (stranger, "0.25")])
        await network.pay_many(native, [(stranger, "0.5"), (ours, "0.75")])
        await network.mine(4)
        for address in (customer.address, ours):
            await tracker.told(paid, address, *CONFIRMED)
        await tracker.receiver.until(lambda: len(tracker.receiver.events_by_id()) == 2 * 9, lambda: "some are missing")
        told = list(tracker.receiver.events_by_id().values())
        assert Counter(one["event"] for one in told) == {f"transaction.{stage}": 9 for stage in CONFIRMED}
        listed = await tracker.listed()
        assert {one["transactionId"] for one in listed} == {one["data"]["transactionId"] for one in told}
        assert len(listed) == 9
        assert {one["status"] for one in listed} == {"confirmed"}
    received = await onlooker.received(usdx, since)
    for address in addresses:
        mine = [one for one in listed if one["address"] == address]
        came = [one for one in mine if one["direction"] == "in"]
        units = [usdx.units(one["amount"]) for one in came if one["token"] == "USDX"]
        assert sorted(units) == sorted(received[address])
        assert sum(units) - spent(mine, usdx) == await onlooker.units(address, usdx)
        if address != customer.address:  # who sends pays fees
            units = [native.units(one["amount"]) for one in came if one["token"] == native.symbol]
            assert sum(units) == await onlooker.units(address, native)


def spent(rows, coin):
    out = [Decimal(one["amount"]) for one in rows if (one["direction"], one["token"]) == ("out", coin.symbol)]
    return coin.units(sum(out, Decimal(0)))


async def test_what_was_taken_off_the_list_or_switched_off_tells_nothing_more(merchant, network, usdx, books):
    kept, removed = network.stranger(), network.stranger()
    async with (
        watched(merchant, network.chain, kept, removed) as tracker,
        watched(merchant, network.chain, kept, removed) as witness,
    ):
        first = await usdx.send(removed, 1)
        await network.mine()
        await tracker.told(first, removed, "detected")
        await tracker.post("address/remove", {"address": removed})
        second = await usdx.send(removed, 2)
        third = await usdx.send(kept, 3)
        await network.mine(4)
        await tracker.told(third, kept, *CONFIRMED)
        await tracker.post("deactivate")
        fourth = await usdx.send(kept, 4)
        await network.mine(4)
        for tx_id, address in ((first, removed), (second, removed), (third, kept), (fourth, kept)):
            await witness.told(tx_id, address, *CONFIRMED)
        assert [one["txHash"] for one in await tracker.listed()] == [third, first]
        assert len(await witness.listed()) == 4
        assert [len(tracker.stages(*one)) for one in ((first, removed), (second, removed), (fourth, kept))] == [1, 0, 0]


async def test_workers_that_are_killed_tell_each_movement_and_credit_each_deposit_once(
    merchant, receiver, gateway, network, usdx, books, valkey
):
    """Two workers at once; the receiver refuses now and then, so that there is always something to be sent again.

    Redis is away when the first worker dies, and comes back empty.
    """
    random = Random(7)
    account, ours = await account_of(merchant, network, "watched-3")
    stranger, sent = network.stranger(), []
    async with (
        watched(merchant, network.chain, ours, stranger) as tracker,
        gateway.second_worker() as second,
        AsyncExitStack() as redis,
    ):
        for number in range(1, 13):
            address = random.choice([ours, stranger])
            sent.append((await usdx.send(address, number), address, number))
            await network.mine()
            tracker.receiver.answer = 500 if number in {3, 7} else 200
            await asyncio.sleep(random.uniform(0.05, 0.4))
            if number == 4:
                await redis.enter_async_context(valkey.gone())
            if number == 5:
                await gateway.kill_worker()
            if number == 8:
                await redis.aclose()
            if number == 10:
                second.kill()
        await network.mine(4)
        for tx_id, address, _ in sent:
            await tracker.told(tx_id, address, *CONFIRMED)
        assert {one["txHash"] for one in await tracker.listed()} == {tx_id for tx_id, _, _ in sent}
    came = [number for _, address, number in sent if address == ours]
    await until_balance(merchant, account, usdx, str(sum(came)))
    deposits = (await merchant.get(f"/api/account/{account}/deposits"))["deposits"]
    assert sorted(int(one["amount"]) for one in deposits) == came
    for one in deposits:
        for event in ("account.deposit.received", "account.deposit.confirmed"):
            await receiver.wait(one["depositId"], event, seconds=180)
    told = [one for one in receiver.events_by_id().values() if one["data"].get("accountId") == account]
    assert len(told) == 2 * len(came)
