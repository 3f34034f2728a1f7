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
from cambist.services.sending.rests import PAUSE_MAX, SUSPECT_PAUSE_MAX
from tests.core.test_outbound_apart import AMOUNT, Unplannable, merchants, pay_outs, statuses, wallet_of
from tests.core.test_outbound_review import bring_back, steal
from tests.support.fragile import Fragile, Life

pytestmark = pytest.mark.slow

BACK_OFF_S = 30
"""What a worker waits at most after a tick that failed."""


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
    for _ in range(40):
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
    found = await merchants(treasury, 4)
    monkeypatch.setattr(batches, "SILENT_SENDERS_MAX", 2)
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
    async with treasury.db.autocommit() as conn:
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


async def test_several_payouts_that_nobody_can_plan_keep_none_of_the_others_from_being_judged(treasury):
    found = await merchants(treasury, 2)
    (merchant, project), to_address = found[0], await treasury.stranger(500)
    context = treasury.engine().context
    chain = Poisoned(context.chain, ChainUnavailableError, rests=True)
    chain.amounts = frozenset(range(101, 107))
    engine = Engine(structs.replace(context, chain=chain), treasury.keys)
    wanted = [(to_address, units) for number in range(101, 107) for units in (7, number, 8)]
    asked = list(await treasury.pay_out_many("USDX", wanted, merchant=merchant, project=project))
    poison, late = asked[1::3], 0
    good = [one for one in asked if one not in poison]
    for _ in range(20):
        (payout,) = await pay_outs(treasury, found[1:])
        await drive(treasury, engine, chain, 1)
        late += await statuses(treasury, [payout]) == ["requested"]
    assert await statuses(treasury, good) == ["completed"] * 12, "within ten minutes"
    assert await statuses(treasury, poison) == ["requested"] * 6
    assert late <= 2, "nobody else waits, once it is known"
    # Each is known by itself, and what is new waits for none of them.
    new = await treasury.pay_out("USDX", 9, to_address, merchant=merchant, project=project)
    await drive(treasury, engine, chain, 2)
    assert await statuses(treasury, [new]) != ["requested"]
    failed, late = 0, 0
    for _ in range(25):
        (payout,) = await pay_outs(treasury, found[1:])
        failed += await drive(treasury, engine, chain, 1)
        late += await statuses(treasury, [payout]) == ["requested"]
    assert failed <= 15, "of 25 ticks, for all six of them"
    assert late == 0
    chain.amounts, chain.rests = frozenset(), False
    dues = await dues_of(treasury, poison)
    assert dues[0] < dues[-1] <= treasury.clock.now() + SUSPECT_PAUSE_MAX
    await treasury.mine(seconds=max(0, (dues[0] - treasury.clock.now()).total_seconds()))
    for _ in range(3):
        await engine.tick()
    assert "requested" not in await statuses(treasury, poison), "the others wait no longer once one is planned"
    assert treasury.clock.now() < dues[-1]
    await treasury.work(engine)
    assert await statuses(treasury, asked) == ["completed"] * 18


async def test_wallets_with_payouts_that_nobody_can_plan_blame_none_of_each_others(treasury):
    found = await merchants(treasury, 2)
    context, to_address = treasury.engine().context, await treasury.stranger(500)
    chain = Poisoned(context.chain, ChainUnavailableError, rests=True)
    chain.amounts = frozenset(range(101, 105))
    engine, poison = Engine(structs.replace(context, chain=chain), treasury.keys), list[str]()
    for merchant, project in found:
        wanted = [(to_address, units) for units in sorted(chain.amounts)]
        poison += await treasury.pay_out_many("USDX", wanted, merchant=merchant, project=project)
    for _ in range(40):
        await pay_outs(treasury, found)
        await drive(treasury, engine, chain, 1)
    failed, late, before = 0, 0, list[str]()
    for _ in range(20):
        asked = await pay_outs(treasury, found)
        failed += await drive(treasury, engine, chain, 1)
        late += (await statuses(treasury, before)).count("requested")
        before = asked
    assert failed >= 4, "they are tried again"
    assert late == 0, "what met the outage that another's looked like goes out with the next tick"
    blamed = {pk for sender in engine._rests._failing.values() for pk in sender.failed}
    assert blamed <= await intents_of(treasury, poison)
    chain.amounts, chain.rests = frozenset(), False
    await treasury.mine(seconds=SUSPECT_PAUSE_MAX.total_seconds())
    await treasury.work(engine)
    assert await statuses(treasury, poison) == ["completed"] * 8


async def intents_of(treasury, payouts):
    async with treasury.db.autocommit() as conn:
        query = "SELECT intent_pk FROM payouts WHERE payout_id = ANY($1::text[])"
        return set((await conn.exec_driver_sql(query, (payouts,))).scalars())


async def test_a_payout_that_failed_in_an_outage_does_not_wait_for_one_that_nobody_can_plan(treasury):
    # It is the only wallet, so that nobody else is served, and nothing of it gives way.
    ((merchant, project),), to_address = await merchants(treasury, 1), await treasury.stranger(500)
    context = treasury.engine().context
    chain = Poisoned(context.chain, ChainUnavailableError, rests=True)
    chain.amounts = frozenset([13, 7, 8])
    engine = Engine(structs.replace(context, chain=chain), treasury.keys)
    wanted = [(to_address, units) for units in (13, 7, 8)]
    poison, *good = await treasury.pay_out_many("USDX", wanted, merchant=merchant, project=project)
    assert await drive(treasury, engine, chain, 8) == 8, "in the outage"
    chain.amounts = frozenset([13])
    await drive(treasury, engine, chain, 6)
    assert "requested" not in await statuses(treasury, good)
    assert await statuses(treasury, [poison]) == ["requested"]
    chain.amounts, chain.rests = frozenset(), False
    await treasury.mine(seconds=PAUSE_MAX.total_seconds())
    await treasury.work(engine)
    assert await statuses(treasury, [poison, *good]) == ["completed"] * 3


async def dues_of(treasury, payouts):
    query = "SELECT i.due_at FROM outbound_intents i JOIN payouts p ON p.intent_pk = i.id WHERE p.payout_id = ANY($1)"
    async with treasury.db.autocommit() as conn:
        return sorted((await conn.exec_driver_sql(query, (payouts,))).scalars())


async def test_a_wallet_whose_merchant_keeps_asking_for_what_nobody_can_plan_fails_few_ticks(treasury):
    found = await merchants(treasury, 2)
    context, to_address = treasury.engine().context, await treasury.stranger(500)
    chain = Poisoned(context.chain, ChainUnavailableError, rests=True)
    chain.amounts = frozenset([13])
    engine = Engine(structs.replace(context, chain=chain), treasury.keys)
    (merchant, project), good = found
    asked, failed, late = [], 0, 0
    for _ in range(25):
        asked.append(await treasury.pay_out("USDX", 13, to_address, merchant=merchant, project=project))
        (payout,) = await pay_outs(treasury, [good])
        failed += await drive(treasury, engine, chain, 1)
        late += await statuses(treasury, [payout]) == ["requested"]
    assert 2 <= failed <= 8, "of 25 ticks"
    assert late <= 1, "until it is known"
    chain.amounts = frozenset()
    await treasury.mine(seconds=PAUSE_MAX.total_seconds())
    await treasury.work(engine)
    assert await statuses(treasury, asked) == ["completed"] * 25


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
    assert engine._rests.failed_intents(treasury.wallet.pk)
    chain.amounts = frozenset()
    await bring_back(treasury, 15 * AMOUNT)
    await treasury.pay_out("USDX", 7, to_address, merchant=merchant, project=project)
    await engine.tick()
    assert not engine._rests.failed_intents(treasury.wallet.pk), "what failed is gone"
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
    assert not engine._rests.failed_intents(pk)
    assert engine._rests.in_order([pk, pk + 1]) == [pk + 1, pk]
    await engine.tick()
    assert await statuses(treasury, payouts) == ["broadcast"]
    assert engine._rests.in_order([pk, pk + 1]) == [pk, pk + 1]
    await treasury.work(engine)
