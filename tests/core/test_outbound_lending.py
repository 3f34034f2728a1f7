"""Loans when something is in their way: each costs, so none is made in vain, and no transfer needs one to be sent."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from cambist.plugin import Staking
from cambist.services.addresses.wallets import OwnAddress
from cambist.services.sending import engine as engines
from cambist.services.sending import store
from cambist.services.sending.batches import send_waiting
from cambist.services.sending.context import EngineContext
from cambist.services.sending.failures import Failures
from cambist.services.sending.gas.loans import PATIENCE, ask_back
from cambist.services.sending.rests import Rests
from cambist.signer.protocol import SignReply
from tests.core.test_outbound_order import station_pk, waiting_of
from tests.support.dated_treasury import dated_treasury
from tests.support.plays import play

pytestmark = pytest.mark.slow

AMOUNT = 5_000_000
STAKE = 10**12


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    """Give a merchant whose wallet has sent before, and has no loan any more."""
    async with dated_treasury(db, clock, ids, tmp_path) as treasury:
        await play(treasury, lent_before)
        yield treasury
        await returned(treasury, treasury.engine())
        await treasury.check_books()


async def lent_before(treasury) -> None:
    treasury.chain.endow(treasury.station, STAKE)
    await treasury.open_paid(("USDX", 100 * AMOUNT))
    await treasury.pay_somebody()
    await returned(treasury, treasury.engine())


async def returned(treasury, engine) -> None:
    """Work until everything that was lent is back."""
    for _ in range(60):
        await engine.tick()
        if await treasury.is_idle() and not (await treasury.chain.stake(treasury.station)).lent:
            return
        await treasury.mine(seconds=20)
    raise AssertionError(await treasury.open_intents())


@contextmanager
def refusing(kind: str):
    """Have the signer refuse one kind of intents."""
    sign = EngineContext.sign

    async def judge(context, items, dead):
        if any(intent.update.kind == kind for intent, _ in items):
            return [SignReply(refusal="APPROVAL_NEEDED", reason="A person is asked.")]
        return await sign(context, items, dead)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EngineContext, "sign", judge)
        yield


async def test_what_waits_for_a_person_borrows_less_and_less_often_and_is_paid_in_the_end(treasury):
    engine, to_address = treasury.engine(), await treasury.stranger(1)
    before = len(await treasury.intents("loan"))
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    with refusing("payout"):
        loans = []
        for _ in range(4):
            for _ in range(90):
                await engine.tick()
                await treasury.mine(seconds=20)
            loans.append(len(await treasury.intents("loan")) - before)
    assert loans[0] <= 8
    assert loans[-1] <= loans[0] + 4
    treasury.clock.advance(3_600)
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"


async def test_nothing_is_planned_with_a_loan_that_is_on_its_way_back(treasury):
    """What is left of it would be gone when the next transfer is mined; a second loan would be made for that."""
    engine = treasury.engine()
    before = len(await treasury.intents("loan"))
    await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    await engine.tick()
    while (await treasury.intents("loan_return"))[-1][1] != "sending":
        await treasury.mine()
        await engine.tick()
    await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2))
    # Nor is it signed with that, had it been planned before.
    now = treasury.clock.now()
    assert await locked(treasury, engine.context, now - PATIENCE) == 0
    assert await locked(treasury, engine.context, now) == 1, "it is not waited for forever"
    await treasury.mine()
    await engine._follower.follow()
    assert await locked(treasury, engine.context, now - PATIENCE) == 1, "what it has now is what it keeps"
    await treasury.work(engine)
    assert len(await treasury.intents("loan")) - before == 2


async def locked(treasury, context, since) -> int:
    """Return how many of those that wait could be signed, where what was asked back since then counts."""
    intents = await waiting_of(treasury, context)
    async with treasury.db.transaction() as conn:
        return len(await store.lock_with_dead_slots(conn, intents, since))


async def nothing(*_) -> None:
    """Ask nothing back."""


async def asked_back_while(treasury, monkeypatch, call: str) -> str:
    """Have another engine ask back, while this call is answered, what was lent to a payout that is about to be sent."""
    engine, context = treasury.engine(), treasury.engine().context
    payout_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    station = OwnAddress(await station_pk(treasury), treasury.station)
    with refusing("payout"), monkeypatch.context() as patch:
        # It waits for a person, and so what it was lent may be asked back.
        patch.setattr(engines, "ask_back", nothing)
        while await treasury.open_intents() != [("payout", "waiting", "signer: APPROVAL_NEEDED")]:
            await engine.tick()
            await treasury.mine()
    treasury.clock.advance(60)
    answer = getattr(treasury.chain, call)

    async def asking_back(*arguments, **more):
        found = await answer(*arguments, **more)
        await ask_back(context, station)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(treasury.chain, call, asking_back)
        await send_waiting(engine.context, Failures("memory"), Rests(), station)
    return payout_id


@pytest.mark.parametrize("call", ["balances", "plan"])
async def test_nothing_is_signed_with_a_loan_that_is_asked_back_meanwhile(treasury, monkeypatch, call):
    payout_id = await asked_back_while(treasury, monkeypatch, call)
    assert (await treasury.intents("loan_return"))[-1][1] == "waiting"
    assert (await treasury.payout(payout_id)).status != "broadcast"
    await treasury.work(treasury.engine())
    assert (await treasury.payout(payout_id)).status == "completed"


async def test_a_return_that_is_not_signed_yet_is_left_when_its_loan_is_needed_again(treasury):
    engine, to_address = treasury.engine(), await treasury.stranger(1)
    await treasury.pay_out("USDX", AMOUNT, to_address)
    with refusing("loan_return"):
        while (await treasury.intents("loan_return"))[-1][1] != "waiting":
            await engine.tick()
            await treasury.mine()
        payout_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2))
        await engine.tick()
        assert (await treasury.intents("loan_return"))[-1][1] == "failed"
        await treasury.work(engine, rounds=20, until="enough")
    assert (await treasury.payout(payout_id)).status == "completed"


async def test_a_loan_that_is_not_signed_in_time_stops_no_payout(treasury):
    engine, to_address = treasury.engine(), await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    with refusing("loan"):
        for _ in range(45):
            await engine.tick()
            await treasury.mine(seconds=20)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert ("loan", "failed") in await treasury.intents("loan")


async def test_what_is_under_way_leaves_nothing_of_its_loan_to_the_next(treasury):
    engine = treasury.engine()
    before, top_ups = len(await treasury.intents("loan")), await treasury.intents("top_up")
    first_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    await engine.tick()
    while (await treasury.payout(first_id)).status != "broadcast":
        await treasury.mine()
        await engine.tick()
    second_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2))
    await engine.tick()
    assert (await treasury.payout(second_id)).status == "processing"
    await treasury.work(engine)
    assert len(await treasury.intents("loan")) - before == 2
    assert await treasury.intents("top_up") == top_ups


async def test_a_loan_stays_as_long_as_what_it_was_made_for_waits_to_be_mined(treasury):
    engine, returns = treasury.engine(), await treasury.intents("loan_return")
    payout_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    await engine.tick()
    while (await treasury.payout(payout_id)).status != "broadcast":
        await treasury.mine()
        await engine.tick()
    treasury.chain.faults.mining_paused = True
    for _ in range(treasury.info.confirmations + 3):
        await treasury.mine()
        await engine.tick()
    assert set(await treasury.intents("loan")) == {("loan", "done")}
    assert await treasury.intents("loan_return") == returns
    treasury.chain.faults.mining_paused = False
    await returned(treasury, engine)
    assert (await treasury.payout(payout_id)).status == "completed"


async def test_what_was_asked_back_behind_the_gateways_back_keeps_nothing_else_lent(treasury):
    """A database out of a backup knows nothing of returns either."""
    engine, chain = treasury.engine(), treasury.chain
    await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    while not (await chain.stake(treasury.station)).lent:
        await engine.tick()
        await treasury.mine()
    lent = (await chain.stake(treasury.station)).lent
    taken = Staking(action="reclaim", amount=lent, borrower=treasury.wallet.address)
    chain.accounts.stakes.carry_out(treasury.station, taken, chain.height, chain.seen_time())
    for _ in range(60):
        await treasury.mine(seconds=60)
        await engine.tick()
    assert len(await treasury.intents("loan")) > 2
    assert ("loan_return", "failed") in await treasury.intents("loan_return")
    assert (await chain.stake(treasury.station)).lent == 0
