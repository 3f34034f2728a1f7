"""What waits is read in its order, and let wait without losing what is asked for meanwhile."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest

from cambist.domain.allocation import Allocation, Funding, SpendableBalance
from cambist.domain.intents import AskedBy, IntentKind
from cambist.plugin import Fee
from cambist.services.addresses.wallets import OwnAddress
from cambist.services.sending import defer_store, giving_way, shortages, store
from cambist.services.sending.context import EngineContext
from cambist.services.sending.giving_way import postpone
from cambist.services.sending.intents import WAITS_FOR_CANCELLATION, internal_intent, mark_cancelled, submit
from cambist.services.sending.queue import acts
from cambist.services.sending.queue.listing import find_intent
from cambist.services.sending.rests import PAUSE, SUSPECT_PAUSE_MAX
from tests.core.test_outbound_apart import merchants, pay_outs, statuses
from tests.core.test_outbound_rests import intents_of
from tests.support.waiting import waits_for_a_lock

pytestmark = pytest.mark.slow


async def waiting_of(treasury, context, limit=100):
    async with treasury.db.transaction() as conn:
        return (await store.waiting_and_held(conn, context.chain_scope, treasury.clock.now(), limit))[0]


async def test_the_first_of_each_sender_comes_before_the_second_of_any_and_what_is_due_first_before_others(treasury):
    few, many = await merchants(treasury, 2)
    context = treasury.engine().context
    for merchant in (many, many, few):
        await pay_outs(treasury, [merchant])
        treasury.clock.advance(1)
    found = [one.id for one in await waiting_of(treasury, context)]
    first, second, third = sorted(found)
    assert found == [first, third, second]
    assert [one.id for one in await waiting_of(treasury, context, 1)] == [first, third]


async def read_row(treasury, pk):
    async with treasury.db.autocommit() as conn:
        found = await conn.exec_driver_sql("SELECT due_at, retried_at FROM outbound_intents WHERE id = $1", (pk,))
        return tuple(found.one())


async def retry(conn, treasury, pk, at):
    query = "SELECT intent_id FROM outbound_intents WHERE id = $1"
    intent_id = (await conn.exec_driver_sql(query, (pk,))).scalar_one()
    await acts.retry(conn, await find_intent(conn, intent_id), at)


async def give_way_to(context, intent, until):
    await postpone(context, {intent.id: intent.retried_at}, until)


async def defer_to(context, intent, until):
    async with context.db.transaction() as conn:
        await context.defer(conn, [intent], "gas", until, context.clock.now())


async def defer_again_to(context, intent, until):
    async with context.db.autocommit() as conn:
        now = context.clock.now()
        await defer_store.defer_again(conn, [intent], intent.reason, until, now, keeps_retry=False)


@pytest.mark.parametrize("let_wait", [give_way_to, defer_to, defer_again_to])
async def test_a_retry_that_is_asked_for_while_a_tick_plans_is_not_lost(treasury, let_wait):
    found, context = await merchants(treasury, 1), treasury.engine().context
    await pay_outs(treasury, found)
    (before,) = await waiting_of(treasury, context)
    now, until = treasury.clock.now(), treasury.clock.now() + PAUSE
    async with treasury.db.transaction() as conn:
        await retry(conn, treasury, before.id, now)
        act = asyncio.create_task(let_wait(context, before, until))
        await waits_for_a_lock(conn, act)
        assert not act.done(), "it waits for the one who has it retried"
    await act
    assert await read_row(treasury, before.id) == (now, now)
    # And once more while it is tried with that.
    (tried,) = await waiting_of(treasury, context)
    treasury.clock.advance(1)
    async with treasury.db.transaction() as conn:
        await retry(conn, treasury, before.id, treasury.clock.now())
    await let_wait(context, tried, until)
    assert await read_row(treasury, before.id) == (treasury.clock.now(),) * 2
    (tried,) = await waiting_of(treasury, context)
    await let_wait(context, tried, until)
    assert await read_row(treasury, before.id) == (until, None), "it was tried"
    treasury.clock.advance(PAUSE.total_seconds())
    await treasury.work(treasury.engine())


@pytest.mark.parametrize("let_wait", [defer_to, defer_again_to])
async def test_what_is_to_be_cancelled_since_a_tick_read_it_waits_for_that_and_for_nothing_else(treasury, let_wait):
    found, context = await merchants(treasury, 1), treasury.engine().context
    (payout,) = await pay_outs(treasury, found)
    (before,) = await waiting_of(treasury, context)
    now, query = treasury.clock.now(), "SELECT due_at, reason FROM outbound_intents WHERE id = $1"
    async with treasury.db.transaction() as conn:
        await mark_cancelled(conn, before.id, AskedBy.KEY, now)
    await let_wait(context, before, now + PAUSE)
    async with treasury.db.autocommit() as conn:
        row = (await conn.exec_driver_sql(query, (before.id,))).one()
    assert tuple(row) == (now, WAITS_FOR_CANCELLATION)
    await treasury.work(treasury.engine())
    assert await statuses(treasury, [payout]) == ["cancelled"]


async def test_what_waits_for_something_else_since_a_tick_read_it_goes_on_waiting_for_that(treasury):
    found, context = await merchants(treasury, 1), treasury.engine().context
    await pay_outs(treasury, found)
    (before,) = await waiting_of(treasury, context)
    await defer_to(context, before, treasury.clock.now())
    await defer_again_to(context, before, treasury.clock.now() + PAUSE)
    (after,) = await waiting_of(treasury, context)
    assert after.reason == "gas"
    await treasury.work(treasury.engine())


async def test_what_closes_a_gap_comes_before_all_else_of_the_gas_station(treasury):
    context = treasury.engine().context
    station = OwnAddress(await station_pk(treasury), treasury.station)
    asked = [
        asked_of(context, station, kind, number)
        for number, kind in enumerate([IntentKind.TOP_UP, IntentKind.LOAN, IntentKind.LOAN_RETURN, IntentKind.REPAIR])
    ]
    async with treasury.db.transaction() as conn:
        pks = [
            (await submit(conn, [one], treasury.clock.now() + timedelta(seconds=number)))[one.reference]
            for number, one in enumerate(asked)
        ]
    treasury.clock.advance(10)
    (first,) = await waiting_of(treasury, context, 1)
    assert first.update.kind == IntentKind.REPAIR, "however many were asked for before, it is read"
    until = treasury.clock.now() + SUSPECT_PAUSE_MAX
    await postpone(context, dict.fromkeys(pks), until)
    async with treasury.db.transaction() as conn:
        rows = (await conn.exec_driver_sql(giving_way._ALL_THAT_GAVE_WAY, (*context.chain_scope.key, 1, 1))).all()
        assert [row.id for row in rows] == pks[3:]
        await conn.exec_driver_sql("UPDATE outbound_intents SET state = 'failed' WHERE id = ANY($1)", (pks,))


async def test_two_engines_that_let_the_same_wait_and_ask_for_its_gas_do_not_wait_in_a_circle(treasury):
    found, context = await merchants(treasury, 1), treasury.engine().context
    await pay_outs(treasury, found)
    await pay_outs(treasury, found)
    first, second = await waiting_of(treasury, context)

    def stored(needs_gas, short):
        left, fee = SpendableBalance(units={None: 0}, gas=0, maybe_spent={}), Fee(limit=21_000, price=10**9)
        allocated = Allocation(left=left, needs_gas=[(needs_gas, fee)])
        more = {"station": OwnAddress(0, treasury.station), "is_gas_coming": False}
        act = shortages.let_wait(context, first.source, Funding(left=left), allocated, short, **more)
        return asyncio.create_task(act)

    async with treasury.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT FROM outbound_intents WHERE id = $1 FOR UPDATE", (second.id,))
        # One lets both wait and then asks for gas; to the other it is plain that the gas is what the second waits for.
        acts = [stored(first, [second])]
        await waits_for_a_lock(conn, acts[0])
        acts.append(stored(second, []))
        await waits_for_a_lock(conn, acts[1], number=2)
    await asyncio.gather(*acts)
    await treasury.work(treasury.engine())


async def station_pk(treasury):
    async with treasury.db.autocommit() as conn:
        query = "SELECT id FROM addresses WHERE address = $1"
        return (await conn.exec_driver_sql(query, (treasury.station,))).scalar_one()


def asked_of(context: EngineContext, station: OwnAddress, kind: IntentKind, number: int):
    more = {"merchant_pk": None, "source_pk": station.pk, "recipient": station, "units": 0 if kind == "repair" else 1}
    return internal_intent(kind, f"own_{number}", context.chain_scope, **more)


MANY_MORE = """
INSERT INTO outbound_intents (
    reference, kind, mode, chain, scope, source_address_pk, to_address, token, decimals, units, due_at, created_at,
    updated_at
)
SELECT 'other:' || n, kind, mode, chain, scope, source_address_pk, to_address, token, decimals, units, created_at,
    created_at, created_at
FROM outbound_intents, generate_series(1, 2000) n WHERE id = $1
"""


async def test_who_begins_reads_what_gave_way_and_not_all_that_waits(treasury):
    found, context = await merchants(treasury, 1), treasury.engine().context
    payouts = [one for _ in range(6) for one in await pay_outs(treasury, found)]
    gave_way = sorted(await intents_of(treasury, payouts[:2]))
    await postpone(context, dict.fromkeys(gave_way), treasury.clock.now() + PAUSE)
    async with treasury.db.transaction() as conn:
        before = await conn.begin_nested()
        await conn.exec_driver_sql(MANY_MORE, (gave_way[0],))
        await conn.exec_driver_sql("ANALYZE outbound_intents")
        asked = (*context.chain_scope.key, 100, 100)
        [[plan]] = list(
            await conn.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {giving_way._ALL_THAT_GAVE_WAY}", asked)
        )
        await before.rollback()
    [plan] = msgspec.json.decode(plan) if isinstance(plan, str) else plan
    assert list(scans(plan["Plan"])) == [("ix_outbound_intents_gave_way", 2)]
    treasury.clock.advance(PAUSE.total_seconds())
    await treasury.work(treasury.engine())


def scans(plan):
    if "Index Name" in plan or plan.get("Relation Name"):
        yield plan.get("Index Name"), plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    for below in plan.get("Plans", []):
        yield from scans(below)
