"""4.7, 2.9 and 3.4: a permanent address for an end user, and what comes to it."""

from __future__ import annotations

from .replay import Replay, check
from .shapes import AccountDepositData


async def test_an_account_has_one_address_per_chain_and_is_credited_what_comes(shop: Replay, network, other):
    body = {"externalId": "user-4711", "chains": [network.chain, other.chain]}
    made = (await shop.ask("POST /api/account", body))["account"]
    addresses = {one["chain"]: one["address"] for one in made["addresses"]}
    assert set(addresses) == {network.chain, other.chain}
    again = await shop.ask("POST /api/account", body, status=200)
    assert again["account"]["accountId"] == made["accountId"]

    await network.usdx.send(addresses[network.chain], "2.5")
    told = await shop.receiver.wait(made["accountId"], "account.deposit.received")
    check(told, AccountDepositData)
    assert told["status"] == "detected"
    frozen = told["fiat"]
    told = await shop.receiver.wait(told["depositId"], "account.deposit.confirmed")
    check(told, AccountDepositData)
    assert (told["status"], told["fiat"] or frozen) == ("confirmed", frozen or told["fiat"])
    path = f"/api/account/{made['accountId']}/balances"
    (balance,) = (await shop.merchant.get(path))["balances"]
    assert (balance["token"], balance["balance"]) == ("USDX", "2.5")
