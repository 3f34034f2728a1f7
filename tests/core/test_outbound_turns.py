"""Senders that cannot be planned, however many and however long, come after all others, ever less often."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from msgspec import structs

from cambist.plugin import ChainUnavailableError
from cambist.services.sending import batches
from cambist.services.sending.engine import Engine
from cambist.services.sending.giving_way import FAILING_MAX, PAUSE, PAUSE_MAX, SWEEPS, Turns
from tests.core.test_outbound_apart import Unplannable, merchants, pay_outs, statuses, wallet_of
from tests.support.fragile import Fragile, Life
from tests.support.treasury import Treasury

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
