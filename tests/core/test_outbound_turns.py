"""Senders that cannot be planned, however many and however long, come after all others, ever less often."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from cambist.plugin import ChainUnavailableError, InconsistentChainError
from cambist.services.sending import batches
from cambist.services.sending.engine import Engine
from cambist.services.sending.giving_way import FAILING_MAX, PAUSE, PAUSE_MAX, SWEEPS, TRIED_MAX, Turns
from tests.core.test_outbound_apart import AMOUNT, Unplannable, merchants, pay_outs, statuses, wallet_of
from tests.core.test_outbound_review import bring_back, steal
from tests.support.fragile import Fragile, Life
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

BACK_OFF_S = 30
"""What a worker waits at most after a tick that failed."""


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path, stock=8) as treasury:
        await treasury.open()
        yield treasury
        await treasury.check_books()


def fail(turns, pk, now, times=1):
    for _ in range(times):
        until = turns.failed(pk, now)
        turns.served(99)
    return until - now


def test_each_failure_that_the_others_do_not_share_doubles_the_pause_up_to_ten_minutes(clock):
    turns, now = Turns(), clock.now()
    assert [fail(turns, 1, now) / PAUSE for _ in range(5)] == [1, 2, 4, 8, 16]
    assert fail(turns, 1, now, 20) == PAUSE_MAX == timedelta(minutes=10)
    turns.served(1)
    assert fail(turns, 1, now) == PAUSE


def test_the_more_senders_fail_the_longer_each_of_them_waits(clock):
    turns, now = Turns(), clock.now()
    for pk in range(1, 6):
        fail(turns, pk, now)
    assert [fail(turns, pk, now) / PAUSE for pk in range(1, 6)] == [10] * 5


def test_in_an_outage_nobodys_pause_grows(clock):
    turns, now = Turns(), clock.now()
    assert {turns.failed(pk, now) - now for _ in range(50) for pk in (1, 2, 3)} == {PAUSE}


def test_who_failed_comes_last_and_rests_until_the_pause_is_over(clock):
    turns, now = Turns(), clock.now()
    fail(turns, 2, now, 3)
    fail(turns, SWEEPS, now)
    fail(turns, 1, now)
    assert turns.in_order([1, 2, 3, 4]) == [3, 4, 1, 2]
    assert (turns.rests(SWEEPS, now), turns.rests(SWEEPS, now + PAUSE), turns.rests(3, now)) == (True, False, False)
    turns.served(2)
    assert turns.in_order([1, 2, 3, 4]) == [2, 3, 4, 1]
    for pk in range(10, FAILING_MAX + 20):
        turns.failed(pk, now)
    assert not turns.is_failing(1), "what is remembered is bounded"


def test_who_failed_long_ago_and_has_nothing_left_lengthens_nobodys_pause(clock):
    turns, now = Turns(), clock.now()
    for pk in range(10, 60):
        fail(turns, pk, now)
    later = now + PAUSE + PAUSE_MAX
    fail(turns, 1, later)
    assert fail(turns, 1, later) == 2 * PAUSE
    assert not turns.is_failing(10)
    turns.forget_past(later + 2 * PAUSE + PAUSE_MAX)
    assert not turns.is_failing(1)


def test_failures_are_forgotten_with_the_last_that_failed_and_not_when_something_else_is_planned(clock):
    turns, now = Turns(), clock.now()
    turns.failed(1, now, [5])
    turns.served(1, [6])
    assert (turns.is_failing(1), turns.rests(1, now)) == (True, False)
    assert turns.failed(1, now, [5], alone=True) - now == 2 * PAUSE
    turns.gone(1, [5])
    assert not turns.is_failing(1)
    turns.failed(1, now, [5, 6])
    turns.served(1, [6])
    assert not turns.is_failing(1), "together they failed once, and now one of them did not"


def test_a_sender_rests_where_one_after_another_of_its_intents_fails_by_itself(clock):
    turns, now = Turns(), clock.now()
    turns.failed(1, now, [1], alone=True)
    assert turns.rests(1, now)
    turns.served(1, [50])
    for new in (1, 2):
        turns.failed(1, now, [new], alone=True)
        assert not turns.rests(1, now), "another one was planned before"
    turns.failed(1, now, [3], alone=True)
    assert turns.rests(1, now)
    for new in range(4, TRIED_MAX + 20):
        turns.served(1, [50])
        turns.failed(1, now, [new], alone=True)
        assert turns.rests(1, now)
    assert len(turns.failed_intents(1)) == TRIED_MAX


async def test_senders_that_look_like_an_outage_for_hours_delay_nobody_once_they_are_known(treasury):
    found = await merchants(treasury, 6)
    payouts, context = await pay_outs(treasury, found), treasury.engine().context
    chain = Unplannable(context.chain, Life())
    stuck, good = found[:5], found[5:]
    chain.senders = frozenset([await wallet_of(treasury, merchant) for merchant, _ in stuck])
    engine = Engine(structs.replace(context, chain=chain), treasury.keys)
    failed = []

    async def tick():
        chain.rests = False
        try:
            await engine.tick()
        except ChainUnavailableError:
            failed.append(treasury.clock.now())
        await treasury.mine(seconds=BACK_OFF_S)

    for _ in range(8):
        await tick()
    for _ in range(60):
        (payout,) = await pay_outs(treasury, good)
        await tick()
        # It may lack gas, for which the station is asked at once: it was looked at.
        assert await statuses(treasury, [payout]) != ["requested"]
    # At first each has to be found out; by now most ticks meet none of them.
    lately = [at for at in failed if at > treasury.clock.now() - timedelta(minutes=15)]
    assert 1 <= len(lately) <= 15, "of 30 ticks"
    assert await statuses(treasury, payouts[:5]) == ["requested"] * 5
    chain.senders = frozenset()
    await treasury.mine(seconds=PAUSE_MAX.total_seconds())
    await treasury.work(engine)
    assert await statuses(treasury, payouts) == ["completed"] * 6


class Hangs(Fragile):
    """Never says how what some senders ask for is to be sent."""

    senders: frozenset[str] = frozenset()

    async def plan(self, requests, **more):
        if any(one.source in self.senders for one in requests):
            await asyncio.Event().wait()
        return await self._thing.plan(requests, **more)


async def test_a_sender_that_hangs_gives_way_and_the_others_send_in_the_same_tick(treasury, monkeypatch):
    found = await merchants(treasury, 3)
    payouts, context = await pay_outs(treasury, found), treasury.engine().context
    chain = Hangs(context.chain, Life())
    chain.senders = frozenset([await wallet_of(treasury, found[0][0])])
    engine = Engine(structs.replace(context, chain=chain), treasury.keys)
    monkeypatch.setattr(batches, "SENDER_TIMEOUT_S", 2.0)
    async with asyncio.timeout(60):
        with pytest.raises(TimeoutError):
            await engine.tick()
        assert await statuses(treasury, payouts) == ["requested", "broadcast", "broadcast"]
        await engine.tick()  # it is not due, and so hangs nobody
    chain.senders = frozenset()
    await treasury.work(engine)
    assert await statuses(treasury, payouts) == ["completed"] * 3


async def test_senders_that_the_signer_fails_to_answer_come_after_the_others(treasury, monkeypatch):
    monkeypatch.setattr(batches, "SILENT_SENDERS_MAX", 2)
    found = await merchants(treasury, 4)
    payouts, engine = await pay_outs(treasury, found), treasury.engine()
    sign, failing = batches.EngineContext.sign, {await wallet_of(treasury, merchant) for merchant, _ in found[:3]}

    async def fail_some(context, items, dead):
        if items[0][0].source.address in failing:
            raise batches.SignerUnavailableError("its store is locked")
        return await sign(context, items, dead)

    with monkeypatch.context() as patch:
        patch.setattr(batches.EngineContext, "sign", fail_some)
        for _ in range(2):
            with pytest.raises(batches.SignerUnavailableError):
                await engine.tick()
    assert await statuses(treasury, payouts) == ["requested"] * 3 + ["broadcast"]
    await treasury.work(engine)
    assert await statuses(treasury, payouts) == ["completed"] * 4


class Poisoned(Fragile):
    """Cannot say how these amounts are to be sent, nor what is asked together with them."""

    def __init__(self, thing, error: type[Exception], *, rests: bool) -> None:
        super().__init__(thing, Life())
        self.error, self.is_silenced = error, rests
        self.amounts = frozenset[int]()
        self.rests = False
        self.asked = 0

    async def plan(self, requests, **more):
        self.asked += 1
        if self.rests or any(one.amount in self.amounts for one in requests):
            self.rests = self.is_silenced
            raise self.error("it cannot be told now")
        return await self._thing.plan(requests, **more)


async def drive(treasury, engine, chain, ticks):
    """Have an engine tick as a worker does, which waits after one that failed; return how many failed."""
    failed = 0
    for _ in range(ticks):
        chain.rests = False
        try:
            await engine.tick()
        except (ChainUnavailableError, InconsistentChainError):
            failed += 1
        await treasury.mine(seconds=BACK_OFF_S)
    return failed


async def reference_of(treasury, payout):
    query = "SELECT i.reference FROM outbound_intents i JOIN payouts p ON p.intent_pk = i.id WHERE p.payout_id = $1"
    async with treasury.db.transaction() as conn:
        return (await conn.exec_driver_sql(query, (payout,))).scalar_one()


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize(
    "error, rests", [(ChainUnavailableError, True), (ChainUnavailableError, False), (InconsistentChainError, False)]
)
async def test_one_payout_that_nobody_can_plan_keeps_the_wallets_others_no_longer_than_it_takes_to_find_it(
    treasury, error, rests, others
):
    found = await merchants(treasury, 1 + others)
    (merchant, project), to_address = found[0], await treasury.stranger(500)
    context = treasury.engine().context
    chain = Poisoned(context.chain, error, rests=rests)
    chain.amounts = frozenset([13])
    engine = Engine(structs.replace(context, chain=chain), treasury.keys)
    wanted = [(to_address, units) for units in (7, 13, *[8] * 12)]
    good = list(await treasury.pay_out_many("USDX", wanted, merchant=merchant, project=project))
    poison = good.pop(1)
    with capture_logs() as logs:
        for _ in range(12):
            await pay_outs(treasury, found[1:])
            await drive(treasury, engine, chain, 1)
    assert await statuses(treasury, good) == ["completed"] * 13
    assert await statuses(treasury, [poison]) == ["requested"]
    named = [one["references"] for one in logs if one["event"] == "sending_failed"]
    assert named[-1] == [await reference_of(treasury, poison)], "what is to be cancelled is named by itself"
    # What is new does not wait for it.
    new = await treasury.pay_out("USDX", 9, to_address, merchant=merchant, project=project)
    await drive(treasury, engine, chain, 2)
    assert await statuses(treasury, [new]) != ["requested"]
    # It is found once, and no other is taken for it when it is gone.
    await treasury.cancel(poison)
    chain.rests, chain.amounts = False, frozenset()
    await treasury.work(engine)
    last = [await treasury.pay_out("USDX", 9, to_address, merchant=merchant, project=project) for _ in range(5)]
    chain.asked = 0
    await engine.tick()
    assert (await statuses(treasury, last), chain.asked) == (["broadcast"] * 5, 1)
    await treasury.work(engine)


async def test_a_wallet_whose_merchant_keeps_asking_for_what_nobody_can_plan_fails_few_ticks(treasury):
    found = await merchants(treasury, 2)
    context, to_address = treasury.engine().context, await treasury.stranger(500)
    chain = Poisoned(context.chain, ChainUnavailableError, rests=True)
    chain.amounts = frozenset([13])
    engine = Engine(structs.replace(context, chain=chain), treasury.keys)
    (merchant, project), good = found
    asked, failed, late = [], 0, 0
    for _ in range(40):
        asked.append(await treasury.pay_out("USDX", 13, to_address, merchant=merchant, project=project))
        (payout,) = await pay_outs(treasury, [good])
        failed += await drive(treasury, engine, chain, 1)
        late += await statuses(treasury, [payout]) == ["requested"]
    assert 2 <= failed <= 10, "of 40 ticks"
    assert late <= 1, "until it is known"
    chain.amounts = frozenset()
    await treasury.mine(seconds=PAUSE_MAX.total_seconds())
    await treasury.work(engine)
    assert await statuses(treasury, asked) == ["completed"] * 40


async def test_while_the_chain_is_asked_for_nothing_of_a_sender_its_failures_are_not_forgotten(treasury):
    found = await merchants(treasury, 2)
    context, to_address = treasury.engine().context, await treasury.stranger(500)
    chain = Poisoned(context.chain, InconsistentChainError, rests=False)
    chain.amounts = frozenset([13])
    engine = Engine(structs.replace(context, chain=chain), treasury.keys)
    (merchant, project), good = found
    await treasury.pay_out("USDX", 13, to_address, merchant=merchant, project=project)
    await pay_outs(treasury, [good])
    with pytest.raises(InconsistentChainError):
        await engine.tick()
    # More than the wallet holds: nothing is planned of what is due.
    await steal(treasury, 15 * AMOUNT)
    big = await treasury.pay_out("USDX", 10 * AMOUNT, to_address, merchant=merchant, project=project)
    await engine.tick()
    assert (await treasury.payout(big)).waits_for == "collection"
    assert engine._turns.is_failing(treasury.wallet.pk)
    chain.amounts = frozenset()
    await bring_back(treasury, 15 * AMOUNT)
    await treasury.pay_out("USDX", 7, to_address, merchant=merchant, project=project)
    await engine.tick()
    assert not engine._turns.is_failing(treasury.wallet.pk), "what failed is gone"
    await treasury.work(engine)


async def test_a_signer_that_is_away_is_no_failure_of_the_sender(treasury, monkeypatch):
    found = await merchants(treasury, 1)
    payouts, engine = await pay_outs(treasury, found), treasury.engine()

    async def away(*_):
        raise batches.SignerUnavailableError("its store is locked")

    with monkeypatch.context() as patch:
        patch.setattr(batches.EngineContext, "sign", away)
        for _ in range(3):
            with pytest.raises(batches.SignerUnavailableError):
                await engine.tick()
    pk = treasury.wallet.pk
    assert not engine._turns.is_failing(pk)
    assert engine._turns.in_order([pk, pk + 1]) == [pk + 1, pk]
    await engine.tick()
    assert await statuses(treasury, payouts) == ["broadcast"]
    assert engine._turns.in_order([pk, pk + 1]) == [pk, pk + 1]
    await treasury.work(engine)
