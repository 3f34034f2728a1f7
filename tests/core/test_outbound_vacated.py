"""A nonce that something else had used, and that a reorg gives back: what was signed there may be mined after all."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cambist.plugin import SignedTx
from cambist.services.addresses.wallets import main_wallet
from cambist.testing.memory.blocks import Output
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

AMOUNT = 5_000_000


@pytest.fixture
async def treasury(ready_treasury):
    return ready_treasury


class Robbed:
    """A payout whose nonce somebody with the same key has used, until that is deep in the chain."""

    def __init__(self, treasury: Treasury) -> None:
        self.treasury, self.engine = treasury, treasury.engine()

    async def begin(self, *, waits: bool) -> None:
        treasury = self.treasury
        self.to_address = await treasury.stranger(1)
        self.payout_id = await treasury.pay_out("USDX", AMOUNT, self.to_address)
        await self.engine.tick()
        async with treasury.db.autocommit() as conn:
            rows = await conn.exec_driver_sql("SELECT tx_id, raw FROM outbound_txs ORDER BY id DESC LIMIT 1")
            self.signed = SignedTx(**rows.one()._mapping)
        self.height = treasury.chain.height
        self.rob()
        await treasury.mine()
        if not waits:
            await treasury.work(self.engine)
            return
        while not treasury.alerts["dead"]:
            await self._follow()

    async def _follow(self) -> None:
        await self.engine._follower.follow()
        if self.treasury.alerts["dead"]:
            await self.wait_for(3600)
        else:
            await self.treasury.mine()

    def rob(self) -> None:
        chain, wallet = self.treasury.chain, self.treasury.wallet.address
        nothing = Output(contract=None, recipient=wallet, amount=0)
        chain.submit([nothing], sender=wallet, sequence=chain.accounts.sequence(wallet))

    async def wait_for(self, seconds: float) -> None:
        """Have the payout wait so long, as for gas."""
        due_at = self.treasury.clock.now() + timedelta(seconds=seconds)
        async with self.treasury.db.autocommit() as conn:
            await conn.exec_driver_sql("UPDATE outbound_intents SET due_at = $1 WHERE state = 'waiting'", (due_at,))

    async def restore(self) -> None:
        """Have a reorg take away all since the payout was signed."""
        self.treasury.chain.reorg(self.treasury.chain.height - self.height)
        await self.treasury.poll()

    async def resurface(self) -> None:
        """Have somebody tell nodes again of what was signed first, and have it be mined."""
        await self.treasury.chain.broadcast([self.signed])
        await self.treasury.mine()

    async def paid(self) -> int:
        return await self.treasury.on_chain(self.to_address, "USDX")

    async def go_on(self) -> None:
        for _ in range(6):
            await self.treasury.work(self.engine, rounds=4, until="enough")
            self.treasury.clock.advance(40)


@pytest.fixture
async def robbed(treasury):
    return Robbed(treasury)


@pytest.mark.parametrize("resurfaces", [True, False])
async def test_what_waits_is_paid_once_at_its_old_nonce(treasury, robbed, resurfaces):
    await robbed.begin(waits=True)
    await robbed.restore()
    if resurfaces:
        await robbed.resurface()
    await robbed.wait_for(0)
    await robbed.go_on()
    assert await robbed.paid() == AMOUNT
    payout = await treasury.payout(robbed.payout_id)
    assert (payout.status, payout.tx_id) == ("completed", robbed.signed.tx_id)
    assert await treasury.is_idle()
    await treasury.check_books()


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_what_is_mined_after_all_is_known_where_nobody_finds_it_by_its_id(treasury, robbed, is_cancelled):
    await robbed.begin(waits=True)
    await robbed.restore()
    treasury.chain.faults.hidden.add(robbed.signed.tx_id)
    await robbed.resurface()
    if is_cancelled:
        await treasury.cancel(robbed.payout_id)
    await robbed.wait_for(0)
    await robbed.go_on()
    assert (await robbed.paid(), (await treasury.balance("USDX")).pending) == (AMOUNT, AMOUNT)
    treasury.chain.faults.hidden.clear()
    await robbed.go_on()
    assert (await robbed.paid(), (await treasury.payout(robbed.payout_id)).status) == (AMOUNT, "completed")
    await treasury.check_books()


async def test_what_waits_is_not_left_behind_by_what_goes_behind_it(treasury, robbed):
    """Another payout waits for the free nonce: the first takes it again, and no repair does."""
    await robbed.begin(waits=True)
    await robbed.restore()
    second, follower = None, await treasury.stranger(2)
    second = await treasury.pay_out("USDX", AMOUNT, follower)
    await robbed.go_on()
    assert [(await treasury.payout(one)).status for one in (robbed.payout_id, second)] == ["completed"] * 2
    assert (await robbed.paid(), await treasury.on_chain(follower, "USDX")) == (AMOUNT, AMOUNT)
    assert treasury.alerts["gap"] == 0
    await treasury.check_books()


async def test_it_is_paid_though_its_nonce_is_taken_a_second_time(treasury, robbed):
    await robbed.begin(waits=True)
    await robbed.restore()
    robbed.rob()
    await treasury.mine()
    await robbed.wait_for(0)
    await robbed.go_on()
    assert (await treasury.payout(robbed.payout_id)).status == "completed"
    assert await robbed.paid() == AMOUNT
    assert await treasury.is_idle()


async def test_what_is_cancelled_gives_no_money_back_while_it_may_be_mined(treasury, robbed):
    await robbed.begin(waits=True)
    await robbed.restore()
    await treasury.cancel(robbed.payout_id)
    await robbed.wait_for(0)
    await robbed.engine.tick()
    assert (await treasury.balance("USDX")).pending == AMOUNT
    await robbed.resurface()
    await robbed.go_on()
    assert await robbed.paid() == AMOUNT
    assert (await treasury.payout(robbed.payout_id)).status == "completed"
    await treasury.check_books()


async def test_what_is_cancelled_gives_its_money_back_once_a_repair_has_its_nonce(treasury, robbed):
    await robbed.begin(waits=True)
    await robbed.restore()
    await treasury.cancel(robbed.payout_id)
    await robbed.wait_for(0)
    await robbed.go_on()
    assert (await treasury.payout(robbed.payout_id)).status == "cancelled"
    assert ((await treasury.balance("USDX")).pending, await robbed.paid()) == (0, 0)
    assert await treasury.is_idle()
    await treasury.check_books()


async def test_the_operator_is_told_of_what_is_paid_twice(treasury, robbed):
    """It was signed for another nonce by then: both are out, and nobody can keep both from being mined."""
    await robbed.begin(waits=False)
    assert await robbed.paid() == AMOUNT
    await robbed.restore()
    await robbed.resurface()
    await robbed.go_on()
    assert await robbed.paid() == 2 * AMOUNT
    assert treasury.alerts["mined_again"] == 1


async def test_a_doubted_count_of_one_sender_keeps_no_money_of_others(treasury, robbed, monkeypatch):
    """Both have lost a nonce, and are cancelled; an endpoint counts far too many transactions of the first."""
    first = treasury.merchant, treasury.project, treasury.wallet
    treasury.merchant, treasury.project = await treasury.new_merchant("mer_2")
    async with treasury.db.transaction() as conn:
        treasury.wallet = await main_wallet(conn, treasury.keys, treasury.family, treasury.merchant, "live")
    await treasury.receive("USDX", 10 * AMOUNT)
    await treasury.pay_somebody()
    other = Robbed(treasury)
    await other.begin(waits=True)
    treasury.merchant, treasury.project, treasury.wallet = first
    treasury.alerts.clear()
    await robbed.begin(waits=True)
    count, doubted = treasury.chain.next_sequence, treasury.wallet.address

    async def next_sequence(sender: str) -> int:
        return await count(sender) + (1_000_000 if sender == doubted else 0)

    monkeypatch.setattr(treasury.chain, "next_sequence", next_sequence)
    for payout_id in (robbed.payout_id, other.payout_id):
        await treasury.cancel(payout_id)
    await other.wait_for(0)
    await other.engine.tick()
    statuses = [(await treasury.payout(one.payout_id)).status for one in (robbed, other)]
    assert statuses == ["cancelling", "cancelled"]
    monkeypatch.undo()
    await other.wait_for(0)
    await other.engine.tick()
    assert (await treasury.payout(robbed.payout_id)).status == "cancelled"
    await treasury.check_books()


@pytest.mark.parametrize("goes_on", [True, False])
async def test_the_operator_is_told_of_what_is_paid_though_its_money_was_given_back(treasury, robbed, goes_on):
    """Its nonce was used by something else, deep in the chain, when it was cancelled."""
    await robbed.begin(waits=True)
    await treasury.cancel(robbed.payout_id)
    await robbed.wait_for(0)
    await robbed.go_on()
    assert (await treasury.payout(robbed.payout_id)).status == "cancelled"
    await robbed.restore()
    await robbed.resurface()
    assert await robbed.paid() == AMOUNT
    if goes_on:
        await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2))
    await robbed.go_on()
    assert treasury.alerts["mined_again"] == 1
    await robbed.go_on()
    assert treasury.alerts["mined_again"] == 1


async def suspend(treasury, suspended_at) -> None:
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql(
            "UPDATE merchants SET suspended_at = $2, suspension_reason = $3 WHERE id = $1",
            (treasury.merchant, suspended_at, suspended_at and "looked into"),
        )


@pytest.fixture
async def left_to_a_repair(treasury, robbed):
    """Its merchant was suspended, and something waited behind the free nonce. Nodes know nothing of the repair now."""
    await robbed.begin(waits=True)
    await robbed.restore()
    await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2))
    await robbed.engine.tick()
    await suspend(treasury, treasury.clock.now())
    await robbed.wait_for(0)
    while not treasury.alerts["gap"]:
        treasury.clock.advance(5)
        await robbed.engine.tick()
    await robbed.engine.tick()
    treasury.chain.forget()
    return robbed


async def reinstate(treasury, robbed) -> None:
    await suspend(treasury, None)
    await robbed.wait_for(0)


async def test_what_was_held_back_while_its_nonce_was_left_to_a_repair_is_found_mined(treasury, left_to_a_repair):
    robbed = left_to_a_repair
    await robbed.resurface()
    assert await robbed.paid() == AMOUNT
    await robbed.go_on()
    await reinstate(treasury, robbed)
    await robbed.go_on()
    assert await robbed.paid() == AMOUNT
    payout = await treasury.payout(robbed.payout_id)
    assert (payout.status, payout.waits_for, payout.tx_id) == ("completed", None, robbed.signed.tx_id)
    assert await treasury.is_idle()
    await treasury.check_books()


async def test_what_was_found_mined_and_gives_way_to_the_repair_after_all_is_sent_anew(treasury, left_to_a_repair):
    """Another reorg takes away what was found, and the repair is mined there."""
    robbed = left_to_a_repair
    await robbed.resurface()
    await reinstate(treasury, robbed)
    await robbed.engine.tick()
    assert (await treasury.payout(robbed.payout_id)).tx_id == robbed.signed.tx_id
    treasury.chain.reorg(1)
    await treasury.poll()
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT t.tx_id, t.raw FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
            " JOIN outbound_intents i ON i.id = s.intent_pk WHERE i.kind = 'repair'"
        )
        await treasury.chain.broadcast([SignedTx(**row._mapping) for row in rows])
    await treasury.mine()
    await robbed.go_on()
    await robbed.go_on()
    assert ((await treasury.payout(robbed.payout_id)).status, await robbed.paid()) == ("completed", AMOUNT)
    assert await treasury.is_idle()
    await treasury.check_books()
