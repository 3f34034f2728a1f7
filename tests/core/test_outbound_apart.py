"""What fails in a tick, about one sender or in one step, keeps nothing else from being sent by that tick."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from cambist.domain.intents import IntentKind
from cambist.plugin import ChainUnavailableError, InconsistentChainError
from cambist.services.chain_pauses import ChainPauses
from cambist.services.sending import batches
from cambist.services.sending import engine as sending
from cambist.services.sending.context import EngineContext
from cambist.services.sending.engine import Engine
from cambist.services.sending.gas import loans
from cambist.signer.protocol import SignerUnavailableError
from tests.support.dated_treasury import dated_treasury
from tests.support.fragile import Fragile, Life
from tests.support.pausing import paused
from tests.support.plays import play
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

AMOUNT = 5_000_000


async def merchants(treasury: Treasury, count: int) -> list[tuple[int, int]]:
    """Return merchants and projects whose wallets hold money and gas."""
    found: list[tuple[int, int]] = await play(treasury, begun_by, count)
    return found


async def begun_by(treasury: Treasury, count: int) -> list[tuple[int, int]]:
    found = [(treasury.merchant, treasury.project)]
    found += [await treasury.new_merchant(f"mer_{number}") for number in range(2, count + 1)]
    for merchant, project in found:
        await treasury.receive("USDX", 20 * AMOUNT, merchant=merchant)
        to_address = await treasury.stranger(merchant)
        await treasury.pay_out("USDX", AMOUNT, to_address, merchant=merchant, project=project)
    await treasury.work(treasury.engine())
    return found


async def pay_outs(treasury: Treasury, found: list[tuple[int, int]]) -> list[str]:
    to_address = await treasury.stranger(500)
    return [await treasury.pay_out("USDX", 7, to_address, merchant=one, project=of) for one, of in found]


async def wallet_of(treasury: Treasury, merchant: int) -> str:
    query = "SELECT address FROM addresses WHERE merchant_pk = $1 AND purpose = 'wallet' AND mode = 'live'"
    async with treasury.db.autocommit() as conn:
        return (await conn.exec_driver_sql(query, (merchant,))).scalar_one()


async def statuses(treasury: Treasury, payouts: list[str]) -> list[str]:
    query = (
        "SELECT p.status FROM unnest($1::text[]) WITH ORDINALITY AS n (payout_id, place) JOIN payouts p"
        " USING (payout_id) ORDER BY n.place"
    )
    async with treasury.db.autocommit() as conn:
        return list((await conn.exec_driver_sql(query, (payouts,))).scalars())


async def test_a_sender_whose_transfer_nobody_can_plan_keeps_no_other_from_sending(treasury):
    found = await merchants(treasury, 3)
    treasury.chain.faults.contradicted = {await wallet_of(treasury, found[0][0])}
    payouts, engine = await pay_outs(treasury, found), treasury.engine()
    with pytest.raises(InconsistentChainError):
        await engine.tick()
    assert await statuses(treasury, payouts) == ["requested", "broadcast", "broadcast"]
    treasury.chain.faults.contradicted = set()
    await treasury.work(engine)
    assert await statuses(treasury, payouts) == ["completed"] * 3


async def test_one_question_that_the_signer_fails_to_answer_keeps_no_other_sender_from_sending(treasury, monkeypatch):
    found = await merchants(treasury, 3)
    payouts, engine = await pay_outs(treasury, found), treasury.engine()
    sign, failing = EngineContext.sign, await wallet_of(treasury, found[1][0])

    async def fail_one(context, items, dead):
        if items[0][0].source.address == failing:
            raise SignerUnavailableError("its store is locked")
        return await sign(context, items, dead)

    with monkeypatch.context() as patch:
        patch.setattr(EngineContext, "sign", fail_one)
        with pytest.raises(SignerUnavailableError):
            await engine.tick()
    assert await statuses(treasury, payouts) == ["broadcast", "requested", "broadcast"]
    await treasury.work(engine)
    assert await statuses(treasury, payouts) == ["completed"] * 3


async def test_an_outage_is_met_by_a_few_senders_and_ends_the_tick(treasury, monkeypatch):
    found = await merchants(treasury, 3)
    monkeypatch.setattr(batches, "SILENT_SENDERS_MAX", 2)
    payouts, engine = await pay_outs(treasury, found), treasury.engine()
    asked = []

    async def away(call):
        if call == "plan":
            asked.append(call)
            raise ChainUnavailableError("no node answers")

    treasury.chain.faults.before = away
    with pytest.raises(ChainUnavailableError):
        await engine.tick()
    assert (len(asked), await statuses(treasury, payouts)) == (2, ["requested"] * 3)
    treasury.chain.faults.before = None
    await treasury.work(engine)
    assert await statuses(treasury, payouts) == ["completed"] * 3


class Unplannable(Fragile):
    """What some senders ask for looks like an outage, after which every endpoint rests until the next tick."""

    senders: frozenset[str] = frozenset()
    rests = False

    async def plan(self, requests, **more):
        if self.rests or any(one.source in self.senders for one in requests):
            self.rests = True
            raise ChainUnavailableError("no endpoint can be asked now")
        return await self._thing.plan(requests, **more)


async def test_a_sender_that_looks_like_an_outage_gives_way_so_that_the_others_come_first(treasury):
    found = await merchants(treasury, 3)
    payouts, context = await pay_outs(treasury, found), treasury.engine().context
    chain = Unplannable(context.chain, Life())
    chain.senders = frozenset([await wallet_of(treasury, merchant) for merchant, _ in found[:2]])
    engine = Engine(structs.replace(context, chain=chain), treasury.keys)
    for _ in range(2):
        with pytest.raises(ChainUnavailableError):
            await engine.tick()
        chain.rests = False
        assert await statuses(treasury, payouts) == ["requested"] * 3
    await engine.tick()
    assert await statuses(treasury, payouts) == ["requested", "requested", "broadcast"]
    # They are tried again, and what waits for a moment is not told another reason for it.
    assert [(await treasury.payout(one)).waits_for for one in payouts[:2]] == [None] * 2
    chain.senders = frozenset()
    await treasury.work(engine)
    assert await statuses(treasury, payouts) == ["completed"] * 3


async def test_a_defect_is_raised_before_an_outage_of_the_same_tick_and_logged_with_its_traceback(
    treasury, monkeypatch
):
    found = await merchants(treasury, 3)
    payouts, engine = await pay_outs(treasury, found), treasury.engine()
    sign, wallets = EngineContext.sign, [await wallet_of(treasury, merchant) for merchant, _ in found]
    raised = {wallets[0]: SignerUnavailableError("it is away"), wallets[1]: AssertionError("a defect")}

    async def fail_two(context, items, dead):
        if items[0][0].source.address in raised:
            raise raised[items[0][0].source.address]
        return await sign(context, items, dead)

    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(EngineContext, "sign", fail_two)
        with pytest.raises(AssertionError, match="a defect"):
            await engine.tick()
    told = {one["address"]: one["exc_info"] for one in logs if one["event"] == "sending_failed"}
    assert told == {wallets[0]: None, wallets[1]: raised[wallets[1]]}
    assert await statuses(treasury, payouts) == ["requested", "requested", "broadcast"]
    await treasury.work(engine)
    assert await statuses(treasury, payouts) == ["completed"] * 3


@pytest.mark.parametrize("error", [ChainUnavailableError("no node"), AssertionError("a defect")])
async def test_what_cancelling_raises_is_raised_while_sending_is_paused_too(treasury, monkeypatch, error):
    ((merchant, project),) = await merchants(treasury, 1)
    engine, to_address = treasury.engine(), await treasury.stranger(1)
    waits = await treasury.pay_out("USDX", 7, to_address, merchant=merchant, project=project)
    cancelled = await treasury.pay_out("USDX", 7, to_address, merchant=merchant, project=project)
    await treasury.cancel(cancelled)

    async def fail(*_):
        raise error

    async with paused(treasury):
        with monkeypatch.context() as patch:
            patch.setattr(sending, "cancel_asked", fail)
            with pytest.raises(type(error)):
                await engine.tick()
        assert (await treasury.payout(waits)).waits_for == "paused"
        assert (engine.done.paused, engine.done.told) == (True, True)
        assert (await engine.tick()).told
    await treasury.work(engine)
    assert await statuses(treasury, [waits, cancelled]) == ["completed", "cancelled"]


async def test_a_pause_that_comes_while_a_tick_sends_keeps_all_senders_from_it_whose_turn_is_later(treasury):
    found = await merchants(treasury, 3)
    payouts, context, met = await pay_outs(treasury, found), treasury.engine().context, list[str]()
    # What this one knows of pauses nobody tells it to forget.
    engine = Engine(structs.replace(context, pauses=ChainPauses(treasury.db, treasury.clock)), treasury.keys)
    async with AsyncExitStack() as stack:

        async def pause(call):
            if call == "broadcast" and not met:
                met.append(call)
                await stack.enter_async_context(paused(treasury))

        treasury.chain.faults.before = pause
        assert (await engine.tick()).more, "those that are left are to be told"
        assert sorted(await statuses(treasury, payouts)) == ["broadcast", "requested", "requested"]
        treasury.chain.faults.before = None
        assert (await engine.tick()).paused
        waits_for = [(await treasury.payout(one)).waits_for for one in payouts]
        assert (waits_for.count("paused"), waits_for.count(None)) == (2, 1)
    await treasury.work(engine)
    assert await statuses(treasury, payouts) == ["completed"] * 3


async def test_a_signer_that_is_away_is_no_failure_of_sending_that_is_paused(treasury, monkeypatch):
    ((merchant, project),) = await merchants(treasury, 1)
    engine = treasury.engine()
    payout = await treasury.pay_out("USDX", 7, await treasury.stranger(1), merchant=merchant, project=project)
    await treasury.cancel(payout)

    async def away(*_):
        raise SignerUnavailableError("it is away")

    async with paused(treasury):
        with monkeypatch.context() as patch:
            patch.setattr(sending, "cancel_asked", away)
            assert (await engine.tick()).paused
    await treasury.work(engine)
    assert await statuses(treasury, [payout]) == ["cancelled"]


async def test_what_is_lent_and_cannot_be_asked_back_keeps_nothing_from_being_sent(
    db, clock, ids, tmp_path, monkeypatch
):
    async with dated_treasury(db, clock, ids, tmp_path) as lending:
        lending.chain.endow(lending.station, 10**12)
        await lending.open()
        await lending.receive("USDX", 100 * AMOUNT)
        engine = await lending.ready()
        other, project = await lending.new_merchant("mer_2")
        await lending.receive("USDX", 100 * AMOUNT, merchant=other)
        first = await lending.pay_out("USDX", AMOUNT, await lending.stranger(1), merchant=other, project=project)
        while (await lending.payout(first)).status != "broadcast":
            await engine.tick()
            await lending.mine()
        ask, failed = loans.ask_station, 0

        async def refuse_returns(conn, context, station, kind, *more):
            if kind is IntentKind.LOAN_RETURN:
                raise InconsistentChainError("it cannot be asked back")
            await ask(conn, context, station, kind, *more)

        later = await lending.pay_out("USDX", AMOUNT, await lending.stranger(2))
        with monkeypatch.context() as patch:
            patch.setattr(loans, "ask_station", refuse_returns)
            while (await lending.payout(later)).status != "completed":
                try:
                    await engine.tick()
                except InconsistentChainError:
                    failed += 1
                await lending.mine()
        assert failed > 1
        await lending.work(engine)
