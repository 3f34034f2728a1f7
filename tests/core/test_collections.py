"""Deposits are brought to the main wallet when that is worth its fee, or when a payout needs them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.domain.collections import (
    CollectionRule,
    Cost,
    Holding,
    UncollectedReason,
    Wish,
    judge,
    judge_unplanned,
)

pytestmark = pytest.mark.slow

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RULE = CollectionRule(min_value_usd="5", max_fee_share_bps=500, max_age_hours=7 * 24)


@pytest.mark.parametrize(
    "value,fee,age_days,expected",
    [
        ("100", "1", 0, None),
        ("100", "5", 0, None),
        ("100", "5.01", 0, UncollectedReason.FEE_ABOVE_SHARE),
        ("4.99", "0.01", 0, UncollectedReason.BELOW_MINIMUM),
        ("4.99", "0.01", 7, None),
        ("4.99", "4.99", 700, UncollectedReason.FEE_ABOVE_VALUE),
        ("100", "6", 7, None),
        ("100", "101", 700, UncollectedReason.FEE_ABOVE_VALUE),
        (None, "1", 700, UncollectedReason.PRICE_MISSING),
        ("100", None, 700, UncollectedReason.PRICE_MISSING),
    ],
)
def test_size_share_and_age_decide(value, fee, age_days, expected):
    holding = Holding(oldest_at=NOW - timedelta(days=age_days))
    cost = Cost(value=value and Decimal(value), fee=fee and Decimal(fee))
    why = judge(holding, cost, RULE, None, NOW)
    assert (why and why.reason) == expected


MONEY = st.one_of(st.none(), st.decimals(0, 10**6, places=6))
SHARES = st.integers(0, 9_999)
WISHES = st.one_of(st.none(), st.builds(Wish, max_fee_share_bps=st.one_of(st.none(), SHARES)))
HOLDINGS = st.builds(
    Holding,
    oldest_at=st.integers(0, 100_000).map(lambda hours: NOW - timedelta(hours=hours)),
    retry_at=st.one_of(st.none(), st.integers(-600, 600).map(lambda minutes: NOW + timedelta(minutes=minutes))),
    is_sendable=st.booleans(),
)
COSTS = st.builds(
    Cost, value=MONEY, fee=MONEY, refused=st.one_of(st.none(), st.just("frozen")), above_ceiling=st.booleans()
)
COLLECTING = st.builds(
    CollectionRule,
    enabled=st.booleans(),
    min_value_usd=st.decimals(0, 1_000, places=2).map(str),
    max_fee_share_bps=st.integers(0, 10_000),
    max_age_hours=st.integers(1, 87_600),
)


@given(HOLDINGS, COSTS, COLLECTING, WISHES)
def test_nothing_is_collected_for_a_fee_as_high_as_what_it_brings_whoever_asks(holding, cost, rule, wish):
    if judge(holding, cost, rule, wish, NOW) is not None:
        return
    assert holding.is_sendable
    assert cost.refused is None
    assert not cost.above_ceiling
    assert cost.value is not None
    assert cost.fee is not None
    assert cost.fee < cost.value
    if wish is not None:
        share = rule.max_fee_share_bps if wish.max_fee_share_bps is None else wish.max_fee_share_bps
        assert cost.fee * 10_000 <= cost.value * share
    else:
        assert rule.enabled
        assert holding.retry_at is None or holding.retry_at <= NOW


@given(HOLDINGS, COSTS, COLLECTING, SHARES, SHARES)
def test_who_allows_a_higher_fee_is_refused_no_more(holding, cost, rule, one, other):
    less, more = sorted([one, other])
    if judge(holding, cost, rule, Wish(max_fee_share_bps=less), NOW) is None:
        assert judge(holding, cost, rule, Wish(max_fee_share_bps=more), NOW) is None


@given(HOLDINGS, COSTS, COLLECTING, WISHES)
def test_what_is_judged_before_anything_is_asked_stands_whatever_it_costs(holding, cost, rule, wish):
    before = judge_unplanned(holding, rule, wish, NOW)
    if before is not None:
        assert judge(holding, cost, rule, wish, NOW) == before
        assert (before.until is None) == (before.reason is not UncollectedReason.FAILED_LATELY)
        assert before.until is None or before.until > NOW


@given(HOLDINGS, COSTS, COLLECTING, WISHES, COSTS)
def test_only_what_changed_is_written_down_and_what_is_shown_is_near_the_truth(holding, cost, rule, wish, later):
    shown, now = judge(holding, cost, rule, wish, NOW), judge(holding, later, rule, wish, NOW)
    if shown is None or now is None:
        return
    assert not shown.is_news_to(shown)
    assert shown.is_news_to(None)
    if now.is_news_to(shown):
        return
    assert (now.reason, now.detail, now.until) == (shown.reason, shown.detail, shown.until)
    for before, after in ((shown.value, now.value), (shown.fee, now.fee)):
        assert (before is None) == (after is None)
        assert before is None or abs(after - before) <= before / 10


async def test_what_is_worth_it_is_collected_and_the_rest_stays(cheap_treasury):
    large = await cheap_treasury.receive("USDX", 50_000_000)
    small = await cheap_treasury.receive("USDX", 1_000_000)
    await cheap_treasury.work(cheap_treasury.engine(), rounds=20, until="enough")
    assert await cheap_treasury.on_chain(large, "USDX") == 0
    assert await cheap_treasury.on_chain(small, "USDX") == 1_000_000
    assert await cheap_treasury.on_chain(cheap_treasury.wallet.address, "USDX") == 50_000_000


async def test_without_a_price_nobody_can_say_and_it_stays(cheap_treasury):
    del cheap_treasury.prices.board["USDX", "usd"]
    address = await cheap_treasury.receive("USDX", 50_000_000)
    await cheap_treasury.work(cheap_treasury.engine(), rounds=6, until="enough")
    assert await cheap_treasury.on_chain(address, "USDX") == 50_000_000


async def test_a_payout_fetches_what_it_needs_and_no_more_whatever_it_is_worth(cheap_treasury):
    cheap_treasury.prices.board.clear()
    addresses = [await cheap_treasury.receive("USDX", units) for units in (1_000, 3_000, 2_000)]
    await cheap_treasury.pay_out("USDX", 4_000, await cheap_treasury.stranger(1))
    await cheap_treasury.work(cheap_treasury.engine())
    assert [await cheap_treasury.on_chain(address, "USDX") for address in addresses] == [1_000, 0, 0]


async def test_several_deposits_to_one_address_are_fetched_at_once(cheap_treasury):
    address = await cheap_treasury.receive("USDX", 20_000_000)
    cheap_treasury.chain.transfer(cheap_treasury.token("USDX"), address, 30_000_000)
    await cheap_treasury.mine(5)
    engine = cheap_treasury.engine()
    await cheap_treasury.work(engine, rounds=20, until="enough")
    assert await cheap_treasury.on_chain(cheap_treasury.wallet.address, "USDX") == 50_000_000
    assert cheap_treasury.chain.accounts.sequence(address) == 1


async def test_only_what_is_confirmed_is_fetched(cheap_treasury):
    address = await cheap_treasury.receive("USDX", 20_000_000)
    cheap_treasury.chain.transfer(cheap_treasury.token("USDX"), address, 30_000_000)
    await cheap_treasury.mine()
    engine = cheap_treasury.engine()
    await engine.tick()
    async with cheap_treasury.db.autocommit() as conn:
        units = await conn.exec_driver_sql("SELECT units FROM outbound_intents WHERE kind = 'collection'")
        assert units.scalars().all() == [20_000_000]
    await cheap_treasury.work(engine, rounds=20, until="enough")


async def test_a_collection_costs_the_merchant_credits_and_the_platform_the_fee(cheap_treasury):
    await cheap_treasury.receive("USDX", 50_000_000)
    await cheap_treasury.work(cheap_treasury.engine(), rounds=12, until="enough")
    async with cheap_treasury.db.transaction() as conn:
        usage = await conn.exec_driver_sql("SELECT operation, count(*) FROM usage_records GROUP BY 1")
        assert {"collection": 1}.items() <= {row.operation: row.count for row in usage}.items()
        spent = await conn.exec_driver_sql(
            "SELECT -balance FROM ledger_accounts WHERE purpose = 'gas_spent' AND merchant_pk IS NULL"
        )
        assert spent.scalar_one() > 0
    assert (await cheap_treasury.balance("USDX")).available == 50_000_000


async def test_the_rule_is_the_operators_and_can_be_switched_off(cheap_treasury):
    async with cheap_treasury.db.autocommit() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO platform_settings (id, settings, updated_at) VALUES (1, $1, now())",
            ('{"collection": {"enabled": false}}',),
        )
    address = await cheap_treasury.receive("USDX", 50_000_000)
    await cheap_treasury.work(cheap_treasury.engine(), rounds=6, until="enough")
    assert await cheap_treasury.on_chain(address, "USDX") == 50_000_000


async def test_a_one_time_address_gets_little_more_gas_than_it_needs(cheap_treasury):
    """A quarter of the headroom that a wallet gets: what is left over there is lost."""
    address = await cheap_treasury.receive("USDX", 50_000_000)
    await cheap_treasury.work(cheap_treasury.engine(), rounds=20, until="enough")
    fee = cheap_treasury.chain.fees.current(cheap_treasury.chain.fees.limit(cheap_treasury.token("USDX")))
    assert fee.price_now is not None
    left = await cheap_treasury.on_chain(address, "MEM")
    assert left < fee.limit * (fee.price_now + (fee.price - fee.price_now) // 4) - 45_000 * fee.price_now + 1
    assert cheap_treasury.chain.accounts.sequence(cheap_treasury.station) == 1


async def test_a_collection_whose_gas_grew_dearer_meanwhile_goes_out_for_what_is_there(cheap_treasury):
    address, engine = await cheap_treasury.receive("USDX", 50_000_000), cheap_treasury.engine()
    await engine.tick()
    cheap_treasury.chain.fees.base_price = cheap_treasury.chain.fees.base_price * 6 // 5
    await cheap_treasury.work(engine, rounds=20, until="enough")
    assert await cheap_treasury.on_chain(address, "USDX") == 0
    assert cheap_treasury.chain.accounts.sequence(cheap_treasury.station) == 1


async def test_a_collection_whose_gas_grew_much_dearer_gets_the_rest(cheap_treasury):
    address, engine = await cheap_treasury.receive("USDX", 50_000_000), cheap_treasury.engine()
    await engine.tick()
    cheap_treasury.chain.fees.base_price *= 2
    await cheap_treasury.work(engine, rounds=20, until="enough")
    assert await cheap_treasury.on_chain(address, "USDX") == 0
    assert cheap_treasury.chain.accounts.sequence(cheap_treasury.station) == 2
