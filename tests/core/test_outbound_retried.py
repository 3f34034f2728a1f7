"""What an operator has tried again is tried although its wallet rests, and ends that rest where it can be planned."""

from __future__ import annotations

import pytest
from msgspec import structs

from cambist.domain.intents import IntentKind
from cambist.plugin import ChainUnavailableError, InconsistentChainError
from cambist.services.addresses.wallets import OwnAddress
from cambist.services.sending import giving_way, store
from cambist.services.sending.engine import Engine
from cambist.services.sending.giving_way import Failed, Tried, end_rest, give_way, note_rest, postpone
from cambist.services.sending.intents import internal_intent, submit
from cambist.services.sending.queue import acts
from cambist.services.sending.queue.listing import find_intent
from cambist.services.sending.rests import APART_MAX, PAUSE, PAUSE_MAX, SUSPECT_PAUSE_MAX, Rests
from tests.core.test_outbound_apart import Unplannable, merchants, pay_outs, statuses, wallet_of
from tests.core.test_outbound_rests import Poisoned, drive, dues_of, intents_of
from tests.support.fragile import Life
from tests.support.pausing import paused

pytestmark = pytest.mark.slow


async def test_what_an_operator_has_tried_again_ends_its_wallets_rest(treasury):
    found, chain, engine, asked = await resting(treasury)
    (merchant, project), to_address = found[0], await treasury.stranger(500)
    new = await treasury.pay_out("USDX", 6, to_address, merchant=merchant, project=project)
    chain.senders, chain.rests = frozenset(), False
    await pay_outs(treasury, found[1:])
    await engine.tick()
    assert await statuses(treasury, [*asked, new]) == ["requested"] * 6, "the wallet rests"
    await retry(treasury, new)
    for _ in range(3):
        await pay_outs(treasury, found[1:])
        await engine.tick()
    assert "requested" not in await statuses(treasury, [*asked, new]), "none of them waits for the rest's end"
    await treasury.work(engine)


async def test_what_gave_way_to_a_rest_that_is_shorter_now_waits_no_longer_than_that(treasury):
    found = await merchants(treasury, 2)
    (merchant, project), to_address = found[0], await treasury.stranger(500)
    context, rests = treasury.engine().context, Rests()
    payout = await treasury.pay_out("USDX", 7, to_address, merchant=merchant, project=project)
    source = next(iter(await waiting_of(treasury, context))).source
    for _ in range(9):
        until = rests.failed(source.pk, treasury.clock.now(), [1, 2])
        rests.served(99)
    await give_way(context, source, until)
    assert not await end_rest(context, rests, source, until), "it rests as before"
    assert await dues_of(treasury, [payout]) == [until]
    rests.served(source.pk, [1])
    shorter = rests.failed(source.pk, treasury.clock.now(), [2, 3])
    assert not await end_rest(context, rests, source, until)
    assert await dues_of(treasury, [payout]) == [shorter] == [treasury.clock.now() + PAUSE]
    rests.served(source.pk, [2])
    assert await end_rest(context, rests, source, shorter)
    assert await dues_of(treasury, [payout]) == [treasury.clock.now()]
    await treasury.work(treasury.engine())


async def waiting_of(treasury, context):
    async with treasury.db.transaction() as conn:
        return (await store.waiting_and_held(conn, context.chain_scope, treasury.clock.now(), 10))[0]


async def test_of_what_an_operator_has_tried_again_each_fails_once_while_its_wallet_rests(treasury):
    found, chain, engine, asked = await resting(treasury)
    for payout in asked[:2]:
        await retry(treasury, payout)
    failed = []
    for _ in range(4):
        (payout,) = await pay_outs(treasury, found[1:])
        failed.append(await drive(treasury, engine, chain, 1))
        assert await statuses(treasury, [payout]) != ["requested"], "the others come first"
    assert failed == [1, 1, 0, 0]
    chain.senders, chain.rests = frozenset(), False
    await treasury.mine(seconds=PAUSE_MAX.total_seconds())
    await treasury.work(engine)
    assert await statuses(treasury, asked) == ["completed"] * 5


async def resting(treasury):
    """Have the first of two merchants' wallets rest for minutes, with five payouts that nobody can plan.

    Return the merchants, the chain, its engine and these payouts.
    """
    found = await merchants(treasury, 2)
    return found, *await rest(treasury, found)


async def rest(treasury, found):
    context = treasury.engine().context
    (merchant, project), to_address = found[0], await treasury.stranger(500)
    chain = Unplannable(context.chain, Life())
    engine = Engine(structs.replace(context, chain=chain), treasury.keys)
    chain.senders = frozenset([await wallet_of(treasury, merchant)])
    wanted = [(to_address, units) for units in (7, 8, 9, 10, 11)]
    asked = list(await treasury.pay_out_many("USDX", wanted, merchant=merchant, project=project))
    while (until_of(treasury, engine) or treasury.clock.now()) < treasury.clock.now() + 8 * PAUSE:
        await pay_outs(treasury, found[1:])
        await drive(treasury, engine, chain, 1)
    return chain, engine, asked


def until_of(treasury, engine):
    return engine._rests.until(treasury.wallet.pk, treasury.clock.now())


async def test_a_retry_ends_the_rest_also_where_one_before_had_failed_and_made_it_longer(treasury):
    found, chain, engine, asked = await resting(treasury)
    (merchant, project), to_address = found[0], await treasury.stranger(500)
    new = await treasury.pay_out("USDX", 6, to_address, merchant=merchant, project=project)
    await pay_outs(treasury, found[1:])
    await drive(treasury, engine, chain, 1)
    until = until_of(treasury, engine)
    assert await dues_of(treasury, [new]) == [until]
    await retry(treasury, asked[4])
    for _ in range(2):
        await pay_outs(treasury, found[1:])
        await drive(treasury, engine, chain, 1)
    assert until_of(treasury, engine) > until, "it failed once more"
    chain.senders, chain.rests = frozenset(), False
    await retry(treasury, asked[3])
    for _ in range(2):
        await pay_outs(treasury, found[1:])
        await engine.tick()
    assert "requested" not in await statuses(treasury, [asked[3], new])
    await treasury.mine(seconds=PAUSE_MAX.total_seconds())
    await treasury.work(engine)


async def test_what_an_operator_has_tried_again_and_meets_anothers_outage_is_tried_again(treasury):
    found, chain, engine, asked = await resting(treasury)
    chain.senders |= {await wallet_of(treasury, found[1][0])}
    await retry(treasury, asked[0])
    (others,) = await pay_outs(treasury, found[1:])
    assert await drive(treasury, engine, chain, 1) == 1
    assert await statuses(treasury, [asked[0], others]) == ["requested"] * 2
    await goes_out_once_nodes_answer(treasury, engine, chain, found[1:], asked[0])


async def goes_out_once_nodes_answer(treasury, engine, chain, others, payout):
    """Have nodes answer again, and see a payout go out in the next tick although its wallet rests; send the rest."""
    chain.senders, chain.rests = frozenset(), False
    await pay_outs(treasury, others)
    await engine.tick()
    assert await statuses(treasury, [payout]) != ["requested"], "it does not wait for its wallet's rest"
    await treasury.mine(seconds=PAUSE_MAX.total_seconds())
    await treasury.work(engine)


async def test_what_meets_anothers_outage_with_what_failed_before_keeps_an_operators_retry(treasury):
    found, context = await merchants(treasury, 2), treasury.engine().context
    (merchant, project), to_address = found[0], await treasury.stranger(500)
    chain = Unplannable(context.chain, Life())
    engine = Engine(structs.replace(context, chain=chain), treasury.keys)
    chain.senders = frozenset([await wallet_of(treasury, merchant)])
    known = await pay_outs(treasury, [found[0], *found])
    assert await drive(treasury, engine, chain, 1) == 1, "these are known to fail"
    chain.senders |= {await wallet_of(treasury, found[1][0])}
    retried = await treasury.pay_out("USDX", 8, to_address, merchant=merchant, project=project)
    await retry(treasury, retried)
    await pay_outs(treasury, found[1:])
    assert await drive(treasury, engine, chain, 1) == 1
    rows = "SELECT count(*) FROM outbound_intents WHERE retried_at IS NOT NULL AND due_at <= $1"
    async with treasury.db.autocommit() as conn:
        assert (await conn.exec_driver_sql(rows, (treasury.clock.now(),))).scalar_one() == 1
    chain.senders, chain.rests = frozenset(), False
    await treasury.mine(seconds=PAUSE_MAX.total_seconds())
    await treasury.work(engine)
    assert await statuses(treasury, [*known, retried]) == ["completed"] * 4


async def test_what_an_operator_has_tried_again_while_sending_was_paused_is_tried_once_it_is_resumed(treasury):
    found, chain, engine, asked = await resting(treasury)
    await retry(treasury, asked[0])
    async with paused(treasury):
        await engine.tick()
        assert (await treasury.payout(asked[0])).waits_for == "paused"
    await goes_out_once_nodes_answer(treasury, engine, chain, found[1:], asked[0])


async def test_what_closes_a_gap_waits_no_longer_than_a_sender_rests(treasury):
    found = await merchants(treasury, 1)
    context, rests, now = treasury.engine().context, Rests(), treasury.clock.now()
    await pay_outs(treasury, found)
    source = next(iter(await waiting_of(treasury, context))).source
    gap = internal_intent(
        IntentKind.REPAIR,
        "rep_1",
        context.chain_scope,
        merchant_pk=None,
        source_pk=source.pk,
        recipient=OwnAddress(source.pk, source.address),
        units=0,
    )
    async with treasury.db.transaction() as conn:
        pk = (await submit(conn, [gap], now))[gap.reference]
    (repair,) = (one for one in await waiting_of(treasury, context) if one.id == pk)
    for one in (*range(1_000, 1_030), pk):
        for _ in range(8):
            rests.failed(source.pk, now, [one], alone=True)
            rests.served(99)
    failed = Tried(failed=[Failed([repair], InconsistentChainError("its nodes differ"))])
    await note_rest(context, rests, source, failed, met=[], is_alone=False)
    assert rests._failing[source.pk].until == now + SUSPECT_PAUSE_MAX
    async with treasury.db.transaction() as conn:
        query = "SELECT due_at FROM outbound_intents WHERE id = $1"
        assert (await conn.exec_driver_sql(query, (pk,))).scalar_one() == now + PAUSE_MAX
        await conn.exec_driver_sql("UPDATE outbound_intents SET state = 'failed' WHERE id = $1", (pk,))
    await treasury.work(treasury.engine())


async def test_a_process_that_begins_tries_what_gave_way_before_it(treasury):
    found, chain, engine, asked = await resting(treasury)
    chain.senders, chain.rests = frozenset(), False
    await pay_outs(treasury, found[1:])
    await engine.tick()
    assert await statuses(treasury, asked) == ["requested"] * 5
    assert max(await dues_of(treasury, asked)) > treasury.clock.now() + 4 * PAUSE
    anew = Engine(engine.context, treasury.keys)
    await anew.tick()
    assert "requested" not in await statuses(treasury, asked)
    await treasury.work(anew)


async def let_wait(treasury, payouts):
    """Have payouts give way for an hour, as what failed by itself does."""
    given = dict.fromkeys(await intents_of(treasury, payouts))
    await postpone(treasury.engine().context, given, treasury.clock.now() + SUSPECT_PAUSE_MAX)


async def test_what_gives_way_once_a_process_has_begun_is_due_when_it_says(treasury, monkeypatch):
    found, context = await merchants(treasury, 2), treasury.engine().context
    monkeypatch.setattr(giving_way, "POSTPONED_MAX", 1)
    (merchant, project), to_address = found[0], await treasury.stranger(500)
    chain = Poisoned(context.chain, ChainUnavailableError, rests=True)
    chain.amounts = frozenset([101, 102, 103])
    wanted = [(to_address, units) for units in sorted(chain.amounts)]
    poison = list(await treasury.pay_out_many("USDX", wanted, merchant=merchant, project=project))
    await let_wait(treasury, poison)
    failed, anew = 0, Engine(structs.replace(context, chain=chain), treasury.keys)
    for _ in range(25):
        await pay_outs(treasury, found)
        failed += await drive(treasury, anew, chain, 1)
    assert 1 <= failed <= 8, "of 25 ticks, in twelve minutes"
    chain.amounts, chain.rests = frozenset(), False
    await treasury.mine(seconds=SUSPECT_PAUSE_MAX.total_seconds())
    await treasury.work(anew)
    assert await statuses(treasury, poison) == ["completed"] * 3


async def test_what_fails_by_itself_holds_up_nobody_because_another_process_begins(treasury):
    found, context = await merchants(treasury, 2), treasury.engine().context
    (merchant, project), to_address = found[0], await treasury.stranger(500)
    chain = Poisoned(context.chain, ChainUnavailableError, rests=True)
    chain.amounts = frozenset(range(101, 101 + 3 * APART_MAX))
    wanted = [(to_address, units) for units in sorted(chain.amounts)]
    poison = list(await treasury.pay_out_many("USDX", wanted, merchant=merchant, project=project))
    await let_wait(treasury, poison)
    failed, anew = 0, Engine(structs.replace(context, chain=chain), treasury.keys)
    for _ in range(25):
        good = await pay_outs(treasury, found)
        failed += await drive(treasury, anew, chain, 1)
        assert "requested" not in await statuses(treasury, good)
    assert APART_MAX <= failed <= 2 * APART_MAX, "of 25 ticks: ten are tried, each of them ever less often"
    chain.amounts, chain.rests = frozenset(), False
    await treasury.mine(seconds=SUSPECT_PAUSE_MAX.total_seconds())
    await treasury.work(anew)
    assert await statuses(treasury, poison) == ["completed"] * len(poison)


async def test_an_engine_that_begins_again_learns_what_another_one_found_out_but_not_all_the_time(treasury):
    found = await merchants(treasury, 2)
    before, learnt_at = treasury.engine(), treasury.clock.now()
    await before.tick()
    chain, engine, asked = await rest(treasury, found)
    await pay_outs(treasury, found[1:])
    await drive(treasury, engine, chain, 1)
    assert treasury.clock.now() < learnt_at + PAUSE_MAX
    before.begin()
    await before.tick()
    assert await statuses(treasury, asked) == ["requested"] * 5, "a lease that comes and goes wakes nobody"
    while treasury.clock.now() < learnt_at + PAUSE_MAX or min(await dues_of(treasury, asked)) <= treasury.clock.now():
        await pay_outs(treasury, found[1:])
        await drive(treasury, engine, chain, 1)
    await before.tick()
    assert "requested" not in await statuses(treasury, asked)
    await treasury.work(before)


async def test_an_engine_that_begins_again_releases_what_another_one_had_deferred(treasury):
    found, engine = await merchants(treasury, 1), treasury.engine()
    await engine.tick()
    (payout,) = await pay_outs(treasury, found)
    async with paused(treasury):
        await treasury.engine().tick()
        assert (await treasury.payout(payout)).waits_for == "paused"
    engine.begin()
    treasury.chain.faults.unavailable = True
    with pytest.raises(ChainUnavailableError):
        await engine.tick()
    assert (await treasury.payout(payout)).waits_for is None
    treasury.chain.faults.unavailable = False
    await treasury.work(engine)


async def retry(treasury, payout):
    """Have a payout be looked at now, as an operator does."""
    query = "SELECT i.intent_id FROM outbound_intents i JOIN payouts p ON p.intent_pk = i.id WHERE p.payout_id = $1"
    async with treasury.db.transaction() as conn:
        intent_id = (await conn.exec_driver_sql(query, (payout,))).scalar_one()
        await acts.retry(conn, await find_intent(conn, intent_id), treasury.clock.now())
