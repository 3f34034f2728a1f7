"""What a plan's months include: given once, used first, and not given again where it was not used."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta, timezone
from random import Random

import pytest

from cambist.services.accounting import cpt_months, usage
from cambist.services.accounting.cpt_months import give_included, month_of
from cambist.services.accounting.usage import Metered
from cambist.services.identity import plan_catalog
from cambist.services.identity.plan_catalog import NewPlan
from tests.core.test_usage import SETTINGS, left, posted, roll_up


@pytest.fixture
def merchant(payment_env):
    return payment_env.live.merchant_pk


async def plan(payment_env, cpt, *, name=None, is_default=False):
    new = NewPlan(
        name=name or f"Plan of {cpt}",
        has_tracker=True,
        max_webhooks=1,
        max_addresses=1,
        cpt_per_month=cpt,
        is_default=is_default,
    )
    async with payment_env.db.transaction() as conn:
        made = await plan_catalog.make_plan(
            conn, payment_env.registry, new, ids=payment_env.ids, now=payment_env.clock.now()
        )
        if not is_default:
            await plan_catalog.give_plan(conn, "mer_1", made.plan_id)
    return made.plan_id


async def give_plan(payment_env, plan_id):
    async with payment_env.db.transaction() as conn:
        await plan_catalog.give_plan(conn, "mer_1", plan_id)


async def give(payment_env, rows_max=cpt_months.MERCHANTS_MAX):
    async with payment_env.db.transaction() as conn:
        return await give_included(conn, payment_env.clock.now(), rows_max)


async def use(payment_env, merchant, payouts, mode="live"):
    """Use 50 credits so many times."""
    async with payment_env.db.transaction() as conn:
        done = [
            Metered(merchant, mode, "payout", "memory", f"{merchant} {payment_env.clock.now()} {number}")
            for number in range(payouts)
        ]
        await usage.meter(conn, done, SETTINGS, payment_env.clock.now())


def at(payment_env, *moment):
    payment_env.clock.advance((datetime(*moment, tzinfo=UTC) - payment_env.clock.now()).total_seconds())


async def month(payment_env, merchant, mode="live"):
    async with payment_env.db.autocommit() as conn:
        found = await cpt_months.read_month(conn, merchant, mode, payment_env.clock.now())
    return found.used, found.included


async def test_without_a_plan_that_includes_credits_nothing_is_given(payment_env, merchant):
    assert await give(payment_env) == 0
    await plan(payment_env, None)
    assert await give(payment_env) == 0
    assert await left(payment_env, merchant) == 0
    assert await month(payment_env, merchant) == (0, None)


async def test_what_is_used_under_a_plan_that_includes_nothing_stops_no_month(payment_env, merchant):
    await plan(payment_env, None)
    await use(payment_env, merchant, 1)
    await roll_up(payment_env)
    assert await give(payment_env) == 0
    assert await month(payment_env, merchant) == (50, None)
    await plan(payment_env, 1_000)
    assert await give(payment_env) == 2
    assert await month(payment_env, merchant) == (50, 1_000)


async def test_a_month_begins_with_the_plans_credits_once_in_both_modes(payment_env, merchant):
    await plan(payment_env, 1_000)
    assert await give(payment_env) == 2
    assert await give(payment_env) == 0
    assert [await left(payment_env, merchant, mode) for mode in usage.MODES] == [1_000, 1_000]
    assert await month(payment_env, merchant, "sandbox") == (0, 1_000)


@pytest.mark.parametrize("rolled_up", [False, True])
async def test_what_was_not_used_is_not_given_again_and_nothing_is_taken(payment_env, merchant, rolled_up):
    await plan(payment_env, 1_000)
    async with payment_env.db.transaction() as conn:
        await usage.grant(conn, merchant, "live", 5_000, "bought")
    await give(payment_env)
    await use(payment_env, merchant, 6)
    if rolled_up:
        await roll_up(payment_env)
    assert await month(payment_env, merchant) == (300, 1_000)
    at(payment_env, 2026, 2, 1, 0, 5)
    assert await give(payment_env) == 2
    assert await left(payment_env, merchant) == 5_000 + 1_000
    assert await month(payment_env, merchant) == (0, 1_000)
    await use(payment_env, merchant, 40)
    at(payment_env, 2026, 3, 1, 0, 5)
    await give(payment_env)
    assert await left(payment_env, merchant) == 5_000 - 1_000 + 1_000, "more was used than a month includes"
    at(payment_env, 2026, 4, 1, 0, 5)
    await give(payment_env)
    assert await left(payment_env, merchant) == 5_000, "nothing was used, so nothing is given"
    await roll_up(payment_env)
    assert await posted(payment_env, merchant) == 5_000


async def test_what_is_owed_stays_owed(payment_env, merchant):
    await plan(payment_env, 1_000)
    await give(payment_env)
    await use(payment_env, merchant, 30)
    assert await left(payment_env, merchant) == -500
    at(payment_env, 2026, 2, 1, 0, 5)
    await give(payment_env)
    assert await left(payment_env, merchant) == 500


async def give_back(payment_env, merchant, moment, payouts):
    async with payment_env.db.transaction() as conn:
        failed = [f"{merchant} {moment} {number}" for number in range(payouts)]
        await usage.give_back(conn, "payout", failed, payment_env.clock.now())


@pytest.mark.parametrize("rolled_up", [False, True])
async def test_what_comes_back_in_a_month_is_no_part_of_what_the_month_included(payment_env, merchant, rolled_up):
    async with payment_env.db.transaction() as conn:
        await usage.grant(conn, merchant, "live", 5_000, "bought")
    before = payment_env.clock.now()
    await use(payment_env, merchant, 100)
    at(payment_env, 2026, 2, 1, 0, 5)
    await plan(payment_env, 1_000)
    await give(payment_env)
    await give_back(payment_env, merchant, before, 100)
    if rolled_up:
        await roll_up(payment_env)
    assert await left(payment_env, merchant) == 5_000 + 1_000
    at(payment_env, 2026, 3, 1, 0, 5)
    await give(payment_env)
    assert await month(payment_env, merchant) == (0, 1_000)
    await use(payment_env, merchant, 20)
    at(payment_env, 2026, 4, 1, 0, 5)
    await give(payment_env)
    assert await left(payment_env, merchant) == 5_000 + 1_000, "what was bought, and a month of the plan"


async def test_after_a_long_silence_the_month_that_runs_is_given_and_no_other(payment_env, merchant):
    await plan(payment_env, 1_000)
    await give(payment_env)
    await use(payment_env, merchant, 4)
    at(payment_env, 2026, 3, 20)
    await use(payment_env, merchant, 3)
    at(payment_env, 2026, 5, 30)
    assert await give(payment_env) == 2
    assert await left(payment_env, merchant) == 1_000
    assert await left(payment_env, merchant, "sandbox") == 1_000


async def test_the_last_minutes_of_a_month_are_waited_for(payment_env, merchant):
    await plan(payment_env, 1_000)
    at(payment_env, 2026, 1, 31, 23, 59)
    await give(payment_env)
    await use(payment_env, merchant, 2)
    at(payment_env, 2026, 2, 1, 0, 1)
    assert await give(payment_env) == 0
    assert await left(payment_env, merchant) == 900
    at(payment_env, 2026, 2, 1, 0, 2)
    assert await give(payment_env) == 2
    assert await left(payment_env, merchant) == 1_000


async def test_a_larger_plan_is_topped_up_at_once_and_a_smaller_one_counts_from_the_next_month(payment_env, merchant):
    small = await plan(payment_env, 1_000)
    await give(payment_env)
    large = await plan(payment_env, 5_000)
    for _ in range(3):
        await give_plan(payment_env, large)
        await give(payment_env)
        assert await left(payment_env, merchant) == 5_000
        await give_plan(payment_env, small)
        await give(payment_env)
        assert await left(payment_env, merchant) == 5_000
    await use(payment_env, merchant, 20)
    at(payment_env, 2026, 2, 1, 0, 5)
    await give(payment_env)
    assert await left(payment_env, merchant) == 4_000, "more is left than the smaller plan includes"
    assert await month(payment_env, merchant) == (0, 4_000)
    await give_plan(payment_env, large)
    await give(payment_env)
    assert await left(payment_env, merchant) == 5_000
    await use(payment_env, merchant, 100)
    at(payment_env, 2026, 3, 1, 0, 5)
    await give_plan(payment_env, small)
    await give(payment_env)
    assert await left(payment_env, merchant) == 1_000


async def test_the_default_plan_gives_to_everybody_and_workers_at_once_give_once(payment_env, merchant):
    rows = [merchant, *[await payment_env.merchant(f"mer_{number}") for number in range(2, 7)]]
    await plan(payment_env, 700, is_default=True)
    for one in rows:
        await use(payment_env, one, 1)

    await roll_up(payment_env, 4)  # those months are open before anybody gives

    async def work():
        while await give(payment_env, rows_max=3):
            await roll_up(payment_env, 2)

    await asyncio.gather(*(work() for _ in range(6)))
    while await give(payment_env) + await roll_up(payment_env):
        pass
    for mode, expected in (("live", 650), ("sandbox", 700)):
        assert [await left(payment_env, row, mode) for row in rows] == [expected] * 6
        assert [await posted(payment_env, row, mode) for row in rows] == [expected] * 6


async def test_workers_at_once_give_the_difference_of_a_larger_plan_once(payment_env, merchant):
    await plan(payment_env, 1_000)
    await give(payment_env)
    await plan(payment_env, 5_000)
    await asyncio.gather(*(give(payment_env) for _ in range(6)))
    assert [await left(payment_env, merchant, mode) for mode in usage.MODES] == [5_000, 5_000]


async def test_what_is_given_back_in_a_later_month_makes_no_month_negative(payment_env, merchant):
    await use(payment_env, merchant, 1)
    reference = f"{merchant} {payment_env.clock.now()} 0"
    at(payment_env, 2026, 2, 10)
    async with payment_env.db.transaction() as conn:
        await usage.give_back(conn, "payout", [reference], payment_env.clock.now())
    assert await month(payment_env, merchant) == (0, None)
    await roll_up(payment_env)
    assert await month(payment_env, merchant) == (0, None)
    await use(payment_env, merchant, 3)
    assert await month(payment_env, merchant) == (100, None)
    await roll_up(payment_env)
    assert await month(payment_env, merchant) == (100, None)
    assert await left(payment_env, merchant) == -150


async def test_a_worker_whose_clock_is_behind_gives_nothing_for_a_month_that_is_over(payment_env, merchant):
    at(payment_env, 2026, 1, 31, 23)
    await plan(payment_env, 1_000)
    behind = payment_env.clock.now()
    at(payment_env, 2026, 2, 1, 0, 5)
    await give(payment_env)
    async with payment_env.db.transaction() as conn:
        assert await give_included(conn, behind) == 0
    assert await left(payment_env, merchant) == 1_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
async def test_whatever_happens_in_which_order_a_year_ends_as_a_simple_model_says(payment_env, merchant, seed):
    random, sizes = Random(seed), (None, 400, 1_000, 5_000)
    plan_ids = {cpt: await plan(payment_env, cpt) for cpt in sizes}
    current = sizes[-1]
    balance, included, used, known = 0, None, 0, month_of(payment_env.clock.now())
    unused = 0
    for _ in range(80):
        match random.choice(["use", "use", "wait", "wait", "plan", "roll up", "give", "give"]):
            case "use":
                times = random.randrange(1, 12)
                await use(payment_env, merchant, times)
                payment_env.clock.advance(1)
                balance, used = balance - 50 * times, used + 50 * times
            case "wait":
                payment_env.clock.advance(random.randrange(1, 12) * 86_400)
                if month_of(payment_env.clock.now()) != known:
                    known = month_of(payment_env.clock.now())
                    unused = max(0, (unused if included is None else included) - used)
                    included, used = None, 0
            case "plan":
                current = random.choice(sizes)
                await give_plan(payment_env, plan_ids[current])
            case "roll up":
                await roll_up(payment_env, random.choice([3, 5_000]))
            case "give":
                await give(payment_env)
                if current is not None and current > (-1 if included is None else included):
                    before = unused if included is None else included
                    included = max(current, before)
                    balance += included - before
        assert await left(payment_env, merchant) == balance
        assert await month(payment_env, merchant) == (used, included)
    while await roll_up(payment_env):
        pass
    assert await posted(payment_env, merchant) == balance
    assert await month(payment_env, merchant) == (used, included)


def test_months_are_those_of_the_calendar_in_utc():
    assert month_of(datetime(2026, 2, 28, 23, 59, tzinfo=UTC)) == date(2026, 2, 1)
    east = datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert month_of(east) == date(2026, 2, 1)
