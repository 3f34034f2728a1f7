"""Usage credits: whatever races, what was given less what was used is what is left."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from contextlib import asynccontextmanager
from random import Random

import msgspec
import pytest

from cambist.services import platform
from cambist.services.accounting import ledger, usage
from cambist.services.accounting.ledger import CPT_ASSET
from cambist.services.accounting.usage import Metered
from cambist.services.errors import ConflictError, ForbiddenError, InvalidError
from cambist.services.identity import members
from cambist.services.listing import Part
from cambist.services.platform import PlatformPatch, PlatformSettings

SETTINGS = msgspec.convert(
    {"cpt": {"floor": -100, "weights": {"chains": {"default": {"payment": 1, "payout": 50, "refund": 0}}}}},
    PlatformSettings,
)


@pytest.fixture
def merchant(payment_env):
    return payment_env.live.merchant_pk


async def meter(payment_env, *done, settings=SETTINGS):
    async with payment_env.db.transaction() as conn:
        await usage.meter(conn, [Metered(*one) for one in done], settings, payment_env.clock.now())


async def left(payment_env, merchant, mode="live"):
    async with payment_env.db.autocommit() as conn:
        return await usage.balance(conn, merchant, mode)


async def grant(payment_env, merchant, units, reference="order 1", mode="live"):
    async with payment_env.db.transaction() as conn:
        return await usage.grant(conn, merchant, mode, units, reference)


async def roll_up(payment_env, rows_max=usage.ROLL_UP_ROWS_MAX):
    async with payment_env.db.transaction() as conn:
        return await usage.post_unposted(conn, rows_max)


async def posted(payment_env, merchant, mode="live"):
    """Return what the ledger says, and that nothing but its movements made it so."""
    async with payment_env.db.autocommit() as conn:
        found = await conn.exec_driver_sql(
            "SELECT a.balance, sum(CASE a.id WHEN m.credit_account_pk THEN m.units ELSE -m.units END) AS moved"
            " FROM ledger_accounts a JOIN ledger_movements m ON a.id IN (m.credit_account_pk, m.debit_account_pk)"
            " WHERE a.merchant_pk = $1 AND a.mode = $2 AND a.asset = 'cpt' GROUP BY a.id",
            (merchant, mode),
        )
        row = found.one_or_none()
    if row is None:
        return 0
    assert row.balance == row.moved
    return int(row.balance)


async def records(payment_env, *columns):
    async with payment_env.db.autocommit() as conn:
        rows = await conn.exec_driver_sql(f"SELECT {', '.join(columns)} FROM usage_records ORDER BY id")  # noqa: S608  the test's own
        return [tuple(row) for row in rows]


async def test_what_is_done_is_recorded_once_and_what_costs_nothing_not_at_all(payment_env, merchant):
    for _ in range(3):
        await meter(
            payment_env,
            (merchant, "live", "payout", "memory", "po_1"),
            (merchant, "live", "payment", "memory", "po_1"),
            (merchant, "live", "refund", "memory", "re_1"),
        )
    assert await records(payment_env, "operation", "reference", "weight") == [
        ("payout", "po_1", 50),
        ("payment", "po_1", 1),
    ]
    assert await left(payment_env, merchant) == -51
    assert await left(payment_env, merchant, "sandbox") == 0


async def test_the_roll_up_posts_one_sum_per_merchant_and_mode_and_leaves_balances_as_they_were(payment_env, merchant):
    other = await payment_env.merchant("mer_2")
    await grant(payment_env, merchant, 1000)
    await meter(payment_env, *[(merchant, "live", "payment", "memory", f"pay_{number}") for number in range(20)])
    await meter(payment_env, (merchant, "sandbox", "payout", None, "po_1"), (other, "live", "payout", None, "po_2"))
    assert await posted(payment_env, merchant) == 1000
    before = [
        await left(payment_env, merchant),
        await left(payment_env, merchant, "sandbox"),
        await left(payment_env, other),
    ]
    assert before == [980, -50, -50]
    assert await roll_up(payment_env) == 22
    assert await roll_up(payment_env) == 0
    assert [
        await posted(payment_env, merchant),
        await posted(payment_env, merchant, "sandbox"),
        await posted(payment_env, other),
    ] == before
    assert [
        await left(payment_env, merchant),
        await left(payment_env, merchant, "sandbox"),
        await left(payment_env, other),
    ] == before
    async with payment_env.db.autocommit() as conn:
        kinds = await conn.exec_driver_sql("SELECT mode FROM ledger_transactions WHERE kind = 'usage' ORDER BY mode")
        assert list(kinds.scalars()) == ["live", "live", "sandbox"]


async def test_the_roll_up_takes_a_bounded_number_at_a_time(payment_env, merchant):
    await meter(payment_env, *[(merchant, "live", "payment", "memory", f"pay_{number}") for number in range(25)])
    assert [await roll_up(payment_env, 10) for _ in range(4)] == [10, 10, 5, 0]
    assert await posted(payment_env, merchant) == await left(payment_env, merchant) == -25


@asynccontextmanager
async def rolling_up(payment_env, rows_max=7, rollers=3):
    """Let several workers roll up, a few records at a time, until the block ends and nothing is left."""
    stop = asyncio.Event()

    async def roll():
        while not stop.is_set():
            await roll_up(payment_env, rows_max)

    tasks = [asyncio.create_task(roll()) for _ in range(rollers)]
    yield
    stop.set()
    await asyncio.gather(*tasks)
    while await roll_up(payment_env):
        pass


async def test_a_balance_read_while_records_are_rolled_up_is_always_whole(payment_env, merchant):
    await grant(payment_env, merchant, 1000)
    await meter(payment_env, *[(merchant, "live", "payment", "memory", f"pay_{number}") for number in range(300)])
    async with rolling_up(payment_env):
        while await posted(payment_env, merchant) != 700:
            assert await left(payment_env, merchant) == 700
    assert await left(payment_env, merchant) == await posted(payment_env, merchant) == 700


@pytest.mark.slow
async def test_metering_giving_back_and_rolling_up_at_once_lose_and_double_nothing(payment_env, merchant):
    owners = [merchant, await payment_env.merchant("mer_2"), await payment_env.merchant("mer_3")]
    random = Random(5)
    done = [(random.choice(owners), random.choice(usage.MODES), f"po_{number}") for number in range(240)]
    returned = set(random.sample(done, 80))

    async def work(share):
        for owner, mode, reference in share:
            await meter(payment_env, (owner, mode, "payout", "memory", reference))
            if (owner, mode, reference) in returned:
                async with payment_env.db.transaction() as conn:
                    await usage.give_back(conn, "payout", [reference], payment_env.clock.now())

    async with rolling_up(payment_env):
        await asyncio.gather(*(work(done[number::6]) for number in range(6)))
    kept = Counter(one[:2] for one in done if one not in returned)
    for owner, mode in itertools.product(owners, usage.MODES):
        assert await left(payment_env, owner, mode) == await posted(payment_env, owner, mode) == -50 * kept[owner, mode]


async def test_a_roll_up_that_is_undone_leaves_its_records_for_the_next(payment_env, merchant):
    await meter(payment_env, (merchant, "live", "payout", "memory", "po_1"))
    async with payment_env.db.engine.connect() as conn:
        assert await usage.post_unposted(conn) == 1
        await conn.rollback()
    assert await posted(payment_env, merchant) == 0
    assert await roll_up(payment_env) == 1
    assert await posted(payment_env, merchant) == -50


@pytest.mark.parametrize("rolled_up", [False, True])
async def test_credits_are_given_back_once_whether_they_were_posted_or_not(payment_env, merchant, rolled_up):
    await meter(payment_env, (merchant, "live", "payout", "memory", "po_1"))
    if rolled_up:
        await roll_up(payment_env)
    for _ in range(2):
        async with payment_env.db.transaction() as conn:
            await usage.give_back(conn, "payout", ["po_1", "po_unknown"], payment_env.clock.now())
    assert await left(payment_env, merchant) == 0
    await roll_up(payment_env)
    assert await posted(payment_env, merchant) == await left(payment_env, merchant) == 0


async def test_credit_is_refused_below_the_floor_and_not_at_it(payment_env, merchant):
    async def require():
        async with payment_env.db.transaction() as conn:
            await usage.require_credit(conn, merchant, "live", SETTINGS)

    await meter(payment_env, *[(merchant, "live", "payout", "memory", f"po_{number}") for number in range(2)])
    await require()
    await meter(payment_env, (merchant, "live", "payment", "memory", "pay_1"))
    with pytest.raises(ForbiddenError, match="-101 CPT") as refused:
        await require()
    assert refused.value.code == "INSUFFICIENT_CPT"
    await grant(payment_env, merchant, 1)
    await require()


async def test_a_grant_happens_once_and_its_reference_means_one_amount(payment_env, merchant):
    answers = await asyncio.gather(*(grant(payment_env, merchant, 70) for _ in range(5)))
    assert sorted(answers) == [False, False, False, False, True]
    assert await left(payment_env, merchant) == 70
    for other in (71, -70):
        with pytest.raises(ConflictError):
            await grant(payment_env, merchant, other)
    assert await grant(payment_env, merchant, 70, mode="sandbox"), "each mode has references of its own"
    assert await grant(payment_env, merchant, -20, "correction")
    assert not await grant(payment_env, merchant, -20, "correction")
    assert await left(payment_env, merchant) == 50
    with pytest.raises(InvalidError):
        await grant(payment_env, merchant, 0, "nothing")


async def register(payment_env, name):
    async with payment_env.db.transaction() as conn:
        merchant = await members.register(
            conn,
            email=f"{name}@example.com",
            name=name,
            password_hash="-",
            ids=payment_env.ids,
            now=payment_env.clock.now(),
        )
    return merchant.merchant_pk


async def backfill(payment_env):
    async with payment_env.db.transaction() as conn:
        return await usage.backfill_allowances(conn, 2)


async def allow(payment_env, units):
    async with payment_env.db.transaction() as conn:
        patch = msgspec.convert({"cpt": {"initialAllowance": units}}, PlatformPatch)
        await platform.save(conn, payment_env.registry, patch, payment_env.clock.now())


async def test_the_initial_allowance_is_given_at_registration_in_both_modes_and_never_again(payment_env):
    await allow(payment_env, 500)
    row = await register(payment_env, "new")
    assert [await left(payment_env, row, mode) for mode in usage.MODES] == [500, 500]
    await allow(payment_env, 900)
    async with payment_env.db.transaction() as conn:
        assert await usage.grant_allowances(conn, [row]) == 0
    while await backfill(payment_env):
        pass
    assert [await left(payment_env, row, mode) for mode in usage.MODES] == [500, 500]


async def test_merchants_from_before_get_their_allowance_from_the_chore_once_each(payment_env, merchant):
    rows = [merchant, *[await payment_env.merchant(f"mer_{number}") for number in range(2, 7)]]
    await allow(payment_env, 500)
    await asyncio.gather(*(backfill(payment_env) for _ in range(8)))
    while await backfill(payment_env):
        pass
    assert [await left(payment_env, row, mode) for row in rows for mode in usage.MODES] == [500] * 12


async def test_an_allowance_of_nothing_is_not_used_up(payment_env):
    await allow(payment_env, 0)
    row = await register(payment_env, "new")
    assert await backfill(payment_env) == 0
    assert await left(payment_env, row) == 0
    await allow(payment_env, 5)
    while await backfill(payment_env):
        pass
    assert await left(payment_env, row) == 5


async def test_a_payment_costs_once_however_often_its_request_is_repeated(payment_env, merchant):
    made = await payment_env.create(header_key="key")
    assert (await payment_env.create(header_key="key")).replayed
    await payment_env.create(payment_env.test)
    weight = PlatformSettings().cpt.weights.of("payment", "memory")
    [first, second] = await records(payment_env, "merchant_pk", "mode", "operation", "chain", "reference", "weight")
    assert first == (merchant, "live", "payment", "memory", made.payment.payment_id, weight)
    assert second[1] == "sandbox"
    assert await left(payment_env, merchant) == -weight


async def test_a_payment_is_made_whatever_the_balance_and_costs_what_the_settings_say_now(payment_env, merchant):
    await grant(payment_env, merchant, -(10**9), "gone")
    async with payment_env.db.transaction() as conn:
        patch = msgspec.convert({"cpt": {"weights": {"chains": {"memory": {"payment": 0}}}}}, PlatformPatch)
        await platform.save(conn, payment_env.registry, patch, payment_env.clock.now())
    await payment_env.create()
    assert await records(payment_env, "id") == []


async def test_usage_credits_are_no_money_in_the_wallet(payment_env, merchant):
    await grant(payment_env, merchant, 10)
    async with payment_env.db.autocommit() as conn:
        assert await ledger.balances(conn, merchant, "live") == []
        assert await ledger.balances(conn, merchant, "live", CPT_ASSET) == []


async def test_usage_is_listed_newest_first_with_what_was_given_back(payment_env, merchant):
    await meter(payment_env, *[(merchant, "live", "payment", "memory", f"pay_{number}") for number in range(3)])
    await meter(
        payment_env, (merchant, "live", "payout", "memory", "po_1"), (merchant, "sandbox", "payout", "memory", "po_2")
    )
    async with payment_env.db.transaction() as conn:
        await usage.give_back(conn, "payout", ["po_1"], payment_env.clock.now())
        page = await usage.list_usage(conn, merchant, "live", Part(limit=3))
        assert [(one.operation, one.reference, one.amount) for one in page.items] == [
            ("return", "payout:po_1", -50),
            ("payout", "po_1", 50),
            ("payment", "pay_2", 1),
        ]
        assert page.total == 5
        page = await usage.list_usage(conn, merchant, "live", Part(page=2, limit=2), operation=usage.Operation.PAYMENT)
        assert ([one.reference for one in page.items], page.total) == (["pay_0"], 3)
