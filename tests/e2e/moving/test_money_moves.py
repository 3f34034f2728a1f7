"""The whole way of money on a real node: paid, collected, paid out, refunded, withdrawn; told and accounted for.

Every step is checked by somebody else's client, address by address: the customer, the one-time address, the main
wallet and the gas station, to the last unit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest
from msgspec import Struct

from cambist.db.engine import Database
from tests.support.gateway import ADMIN_KEY, GatewayProcess, Merchant, recurs, until
from tests.support.networks import Coin, Customer, Network
from tests.support.receiver import Receiver
from tests.support.valkey import MortalValkey


class Story(Struct, frozen=True):
    """A merchant nobody has paid yet, the shop's server, and who looks on."""

    coin: Coin
    merchant: Merchant
    receiver: Receiver
    wallet: str
    station: str
    db: Database

    @property
    def network(self) -> Network:
        return self.coin.network

    async def check(self, **holders: tuple[str, int]) -> None:
        """Compare what addresses hold with what they should: whole coins, and beside them only the platform's gas."""
        onlooker, native = self.network.onlooker, self.network.native
        for name, (address, amount) in holders.items():
            gas = await onlooker.gas(address, self.station) if self.coin == native else 0
            assert await onlooker.units(address, self.coin) == self.coin.units(amount) + gas, name
        left = native.units(self.network.station_float) + await onlooker.gas(self.station, self.station)
        assert await onlooker.units(self.station, native) == left, "the gas station"

    async def ledger(self) -> dict[str, int]:
        """Return the merchant's balances by purpose, in smallest units and as they are meant: none below zero."""
        async with self.db.transaction() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT a.purpose, CASE WHEN a.debit_normal THEN -a.balance ELSE a.balance END AS units"
                " FROM ledger_accounts a JOIN projects p ON p.merchant_pk = a.merchant_pk"
                " WHERE p.project_id = $1 AND a.asset = $2 AND a.mode = 'live'",
                (self.merchant.project["projectId"], self.coin.asset),
            )
            return {row.purpose: int(row.units) for row in rows if row.units and "float" not in row.purpose}


@pytest.fixture(params=["usdx", "native"])
async def story(request, gateway, session, station, network, blocks, story_db) -> AsyncIterator[Story]:
    """Begin a story with a token, and one with the native coin."""
    async with Receiver() as receiver:
        merchant = await Merchant(gateway.url, session).open(webhook_url=receiver.url)
        receiver.secret = merchant.project["webhookSecret"]
        await merchant.enrol()
        wallet, coin = await merchant.wallet(network.family), getattr(network, request.param)
        yield Story(coin, merchant, receiver, wallet, station, story_db)
        assert receiver.rejected == []


async def test_money_is_paid_collected_paid_out_refunded_and_withdrawn(
    story: Story, gateway, customer: Customer, valkey: MortalValkey
):
    """With the native coin Redis is killed twice meanwhile and comes back empty, and what recurs goes on."""
    if story.coin != story.network.native:
        await moves_all_its_ways(story, gateway, customer)
        return
    async with valkey.dying():
        await moves_all_its_ways(story, gateway, customer)
    await recurs(story.db, "usage")


async def moves_all_its_ways(story: Story, gateway: GatewayProcess, customer: Customer) -> None:
    merchant, receiver, coin = story.merchant, story.receiver, story.coin
    payment = await merchant.pay(coin, 40)
    paid_with = await customer.pay(payment["depositAddress"], coin, 40)
    told = await receiver.wait(payment["paymentId"], "payment.paid", seconds=180)
    assert (told["receivedAmount"], told["txHash"]) == ("40", paid_with)
    deposit = payment["depositAddress"]

    await collected(story, 40)
    await story.check(customer=(customer.address, 60), deposit=(deposit, 0), wallet=(story.wallet, 40))
    assert await merchant.balance(coin) == {"available": "40"}

    friend = story.network.stranger()
    payout = await merchant.pay_out(coin, 15, friend)
    assert (payout["status"], payout["amount"], payout["toAddress"]) == ("requested", "15", friend)
    done = await merchant.completed(payout)
    told = await receiver.wait(payout["payoutId"], "payout.completed")
    assert (told["resource"], told["status"], told["txHash"]) == ("payout", "completed", done["txHash"])
    await story.check(friend=(friend, 15), deposit=(deposit, 0), wallet=(story.wallet, 25))

    refund = await merchant.refund(payment, customer.address, amount="10", reason="too large")
    done = await merchant.completed(refund)
    told = await receiver.wait(payment["paymentId"], "payment.refunded")
    assert (told["status"], told["refundedAmount"], told["txHash"]) == ("refunded", "10", done["txHash"])
    await story.check(customer=(customer.address, 70), deposit=(deposit, 0), wallet=(story.wallet, 15))

    owner = story.network.stranger()
    withdrawal = (await merchant.withdraw(coin, 5, owner))["withdrawal"]
    done = await merchant.completed(withdrawal)
    told = await receiver.wait(withdrawal["withdrawalId"], "withdrawal.completed")
    assert (told["resource"], told["amount"], told["txHash"]) == ("withdrawal", "5", done["txHash"])
    await story.check(owner=(owner, 5), friend=(friend, 15), deposit=(deposit, 0), wallet=(story.wallet, 10))

    assert await merchant.balance(coin) == {"available": "10"}
    ten = coin.units(10)
    assert await story.ledger() == {"available": ten, "custody_wallet": ten}
    assert (await merchant.payment(payment))["status"] == "refunded"
    assert await statement(merchant) == [
        ("withdrawal", "-5"), ("withdrawal", "-5"), ("refund", "-10"), ("refund", "-10"), ("payout", "-15"),
        ("payout", "-15"), ("allocation", "40"), ("deposit", "40"),
    ]  # fmt: skip
    await balanced(story.db)
    report = await gateway.reconcile()
    told = group(report, merchant, "wallet", coin)["onChain"]
    assert coin.units(told) == await story.network.onlooker.units(story.wallet, coin)
    await every_fee_is_booked(story)

    await merchant.completed(await merchant.pay_out(coin, 10, friend))
    await story.check(friend=(friend, 25), deposit=(deposit, 0), wallet=(story.wallet, 0))
    assert await story.ledger() == {}


async def test_what_is_not_worth_collecting_is_collected_when_a_payout_needs_it(
    story: Story, gateway, customer: Customer, nothing_is_worth_it
):
    merchant, coin = story.merchant, story.coin
    payment = await merchant.pay(coin, 7)
    await customer.pay(payment["depositAddress"], coin, 7)
    await merchant.until(payment, "paid", seconds=180)
    await asyncio.sleep(2)
    await story.check(deposit=(payment["depositAddress"], 7), wallet=(story.wallet, 0))
    friend = story.network.stranger()
    await merchant.completed(await merchant.pay_out(coin, 7, friend))
    await story.check(friend=(friend, 7), deposit=(payment["depositAddress"], 0), wallet=(story.wallet, 0))
    assert await merchant.balance(coin) == {}
    assert await story.ledger() == {}
    await balanced(story.db)
    await gateway.reconcile()


@pytest.fixture
async def nothing_is_worth_it(merchant) -> AsyncIterator[None]:
    """Have the operator collect nothing that is worth less than ten million dollars."""
    await collect_from(merchant, "10000000")
    yield
    await collect_from(merchant, "5")


async def collect_from(merchant: Merchant, usd: str) -> None:
    rule = {"collection": {"minValueUsd": usd}}
    await merchant.put("/api/admin/settings", rule, headers={"X-Admin-Key": ADMIN_KEY})


async def collected(story: Story, amount: int) -> None:
    """Wait until the main wallet has the coins and the books say so."""

    async def poll() -> bool:
        there = (await story.ledger()).get("custody_wallet") == story.coin.units(amount)
        return there and await story.network.onlooker.units(story.wallet, story.coin) > 0

    await until(poll)


async def statement(merchant: Merchant) -> Sequence[tuple[str, str]]:
    """Return the wallet's statement, newest first."""
    found = (await merchant.get("/api/merchant/wallet/transactions"))["transactions"]
    return [(line["type"], line["amount"]) for line in found]


async def balanced(db: Database) -> None:
    """Check that no unit was invented or lost: every asset's accounts sum up to zero, live and simulated."""
    async with db.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT asset, mode, sum(balance) AS total FROM ledger_accounts GROUP BY 1, 2"
        )
        assert {(row.asset, row.mode): row.total for row in rows if row.total} == {}


def group(report: Mapping[str, Any], merchant: Merchant, name: str, coin: Coin) -> Mapping[str, Any]:
    """Return one line of the comparison of books and chain."""
    (chain,) = [chain for chain in report["chains"] if chain["chain"] == coin.chain]
    (found,) = [
        line
        for line in chain["groups"]
        if (line["merchantId"], line["group"], line["token"]) == (merchant.merchant_id, name, coin.symbol)
    ]
    return found


async def every_fee_is_booked(story: Story) -> None:
    """Compare what the platform's books say was spent on gas with what all transactions of its addresses cost."""

    async def poll() -> bool:
        async with story.db.transaction() as conn:
            ours = await conn.exec_driver_sql("SELECT address FROM addresses WHERE mode = 'live'")
            fees = await story.network.onlooker.fees(ours.scalars())
            booked = await conn.exec_driver_sql(
                "SELECT -balance FROM ledger_accounts WHERE purpose = 'gas_spent' AND asset = $1",
                (story.network.native.asset,),
            )
            return booked.scalar_one() == fees > 0

    assert await until(poll)
