"""What an operator has tried again is tried although its wallet rests, and ends that rest where it can be planned."""

from __future__ import annotations

import pytest
from msgspec import structs

from cambist.services.sending import store
from cambist.services.sending.engine import Engine
from cambist.services.sending.giving_way import end_rest, give_way
from cambist.services.sending.queue import acts
from cambist.services.sending.queue.listing import find_intent
from cambist.services.sending.turns import PAUSE, PAUSE_MAX, Turns
from tests.core.test_outbound_apart import Unplannable, merchants, pay_outs, statuses, wallet_of
from tests.core.test_outbound_turns import drive, dues_of
from tests.support.fragile import Life
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path, stock=8) as treasury:
        await treasury.open()
        yield treasury
        await treasury.check_books()


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
    context, turns = treasury.engine().context, Turns()
    payout = await treasury.pay_out("USDX", 7, to_address, merchant=merchant, project=project)
    source = next(iter(await waiting_of(treasury, context))).source
    for _ in range(9):
        until = turns.failed(source.pk, treasury.clock.now(), [1, 2])
        turns.served(99)
    await give_way(context, source, until)
    assert not await end_rest(context, turns, source, until), "it rests as before"
    assert await dues_of(treasury, [payout]) == [until]
    turns.served(source.pk, [1])
    shorter = turns.failed(source.pk, treasury.clock.now(), [2, 3])
    assert not await end_rest(context, turns, source, until)
    assert await dues_of(treasury, [payout]) == [shorter] == [treasury.clock.now() + PAUSE]
    turns.served(source.pk, [2])
    assert await end_rest(context, turns, source, shorter)
    assert await dues_of(treasury, [payout]) == [treasury.clock.now()]
    await treasury.work(treasury.engine())


async def waiting_of(treasury, context):
    async with treasury.db.transaction() as conn:
        return await store.waiting(conn, context.chain_scope, treasury.clock.now(), 10)


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
    found, context = await merchants(treasury, 2), treasury.engine().context
    (merchant, project), to_address = found[0], await treasury.stranger(500)
    chain = Unplannable(context.chain, Life())
    engine = Engine(structs.replace(context, chain=chain), treasury.keys)
    chain.senders = frozenset([await wallet_of(treasury, merchant)])
    wanted = [(to_address, units) for units in (7, 8, 9, 10, 11)]
    asked = list(await treasury.pay_out_many("USDX", wanted, merchant=merchant, project=project))
    while (until_of(treasury, engine) or treasury.clock.now()) < treasury.clock.now() + 8 * PAUSE:
        await pay_outs(treasury, found[1:])
        await drive(treasury, engine, chain, 1)
    return found, chain, engine, asked


def until_of(treasury, engine):
    return engine._turns.rests_until(treasury.wallet.pk, treasury.clock.now())


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


async def retry(treasury, payout):
    """Have a payout be looked at now, as an operator does."""
    query = "SELECT i.intent_id FROM outbound_intents i JOIN payouts p ON p.intent_pk = i.id WHERE p.payout_id = $1"
    async with treasury.db.transaction() as conn:
        intent_id = (await conn.exec_driver_sql(query, (payout,))).scalar_one()
        await acts.retry(conn, await find_intent(conn, intent_id), treasury.clock.now())
