"""End users pay to permanent addresses on a real node: told, credited, taken back and credited again."""

from __future__ import annotations

from itertools import count

import pytest

from tests.support.gateway import until
from tests.support.watched import watched

RECEIVED, CONFIRMED, ORPHANED = (f"account.deposit.{one}" for one in ("received", "confirmed", "orphaned"))
_numbers = count(1)


async def account_of(merchant, *chains):
    body = {"externalId": f"user-{next(_numbers)}", "chains": [chain.native.chain for chain in chains]}
    return (await merchant.post("/api/account", body, status=201))["account"]


async def balance_of(merchant, account, coin):
    found = (await merchant.get(f"/api/account/{account['accountId']}/balances"))["balances"]
    return {one["token"]: (one["balance"], one["pending"]) for one in found}.get(coin.symbol, ("0", "0"))


async def until_balance(merchant, account, coin, expected):
    async def reached():
        return await balance_of(merchant, account, coin) == expected

    await until(reached)


async def available(merchant, coin):
    return float((await merchant.balance(coin)).get("available", 0))


async def test_one_address_is_paid_again_and_again_in_any_token(
    merchant, receiver, network, usdx, native, books, valkey
):
    """When it is paid first, Redis is away, and comes back empty."""
    account = await account_of(merchant, network)
    address = account["addresses"][0]["address"]
    before = await available(merchant, usdx)
    async with valkey.gone():
        await usdx.send(address, "10")
        await network.mine()
        told = await receiver.wait(account["accountId"], RECEIVED)
    assert (told["status"], told["amount"], told["externalId"]) == ("detected", "10", account["externalId"])
    assert await balance_of(merchant, account, usdx) == ("0", "10")
    await network.mine(3)
    told = await receiver.wait(told["depositId"], CONFIRMED)
    assert (told["status"], told["confirmations"]) == ("confirmed", told["requiredConfirmations"])
    await usdx.send(address, "2.5")
    await native.send(address, "0.25")
    await network.mine(4)
    await until_balance(merchant, account, usdx, ("12.5", "0"))
    await until_balance(merchant, account, native, ("0.25", "0"))
    assert await available(merchant, usdx) - before == pytest.approx(12.5)


async def test_what_a_reorg_takes_away_is_told_and_comes_back_once(merchant, receiver, network, usdx, books):
    """It is told of the account, and by a tracker of its address, which lists it once."""
    account = await account_of(merchant, network)
    address = account["addresses"][0]["address"]
    before = await available(merchant, usdx)
    async with watched(merchant, network.chain, address) as tracker:
        await network.mine(6)
        tx_id = await usdx.send(address, "10")
        await network.mine(5)
        deposit = (await receiver.wait(account["accountId"], CONFIRMED))["depositId"]
        await tracker.told(tx_id, address, "detected", "confirmed")
        signed = await network.signed(tx_id)
        await network.reorg(5)
        assert (await receiver.wait(deposit, ORPHANED))["incarnation"] == 1
        await tracker.told(tx_id, address, "detected", "confirmed", "orphaned")
        await until_balance(merchant, account, usdx, ("0", "0"))
        assert await available(merchant, usdx) == pytest.approx(before)
        await network.send_signed(signed)
        await network.mine(5)
        told = await tracker.told(tx_id, address, "detected", "confirmed", "orphaned", "detected", "confirmed")
        blocks = [block for _, block in told]
        assert len(set(blocks[:3])) == len(set(blocks[3:])) == 1
        assert blocks[0] != blocks[3]
        (one,) = await tracker.listed()
        assert (one["status"], one["blockHash"]) == ("confirmed", blocks[3])
        await until_balance(merchant, account, usdx, ("10", "0"))
        assert await available(merchant, usdx) - before == pytest.approx(10)
    path = f"/api/account/{account['accountId']}/deposits"
    (back,) = (await merchant.get(path))["deposits"]
    assert (back["depositId"], back["status"], back["incarnation"]) == (deposit, "confirmed", 2)


async def test_on_a_chain_of_the_family_that_was_not_asked_for_it_is_held(merchant, receiver, network, other, books):
    if network.family != other.family:
        pytest.skip("addresses of these chains are never the same")
    account = await account_of(merchant, network)
    await other.usdx.send(account["addresses"][0]["address"], 3)
    await other.mine(4)
    told = await receiver.wait(account["accountId"], "account.deposit.held")
    assert (told["chain"], told["reason"], told["heldAmount"]) == (other.native.chain, "wrong_chain", "3")
    path = f"/api/merchant/resolutions/{told['depositId']}"
    assert (await merchant.post(f"{path}/accept", None))["resolution"]["resolution"] == "accepted"
    await receiver.wait(told["depositId"], CONFIRMED)
    assert await balance_of(merchant, account, other.usdx) == ("3", "0")
