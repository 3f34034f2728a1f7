"""Deposits are brought to the main wallet when that is worth its fee, or when a payout needs them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.domain.collections import CollectionRule, is_worth_it
from tests.support.treasury import Treasury

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RULE = CollectionRule(min_value_usd="5", max_fee_share_bps=500, max_age_hours=7 * 24)


@pytest.mark.parametrize(
    "value,fee,age_days,expected",
    [
        ("100", "1", 0, True),
        ("100", "5", 0, True),
        ("100", "5.01", 0, False),
        ("4.99", "0.01", 0, False),
        ("4.99", "0.01", 7, True),
        ("4.99", "4.99", 700, False),
        ("100", "6", 7, True),
        ("100", "101", 700, False),
        (None, "1", 700, False),
        ("100", None, 700, False),
    ],
)
def test_size_share_and_age_decide(value, fee, age_days, expected):
    oldest_at = NOW - timedelta(days=age_days)
    assert is_worth_it(value and Decimal(value), fee and Decimal(fee), oldest_at, RULE, NOW) is expected


@given(
    value=st.decimals(0, 10**6, places=6),
    fee=st.decimals(0, 10**6, places=6),
    days=st.integers(0, 10_000),
    share=st.integers(0, 10_000),
)
def test_a_fee_is_never_as_much_as_what_it_fetches(value, fee, days, share):
    rule = CollectionRule(min_value_usd="0", max_fee_share_bps=share, max_age_hours=7 * 24)
    assert not (is_worth_it(value, fee, NOW - timedelta(days=days), rule, NOW) and fee >= value)


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        treasury.chain.fees.base_price = 10**9
        await treasury.open()
        yield treasury
        await treasury.check_books()


async def test_what_is_worth_it_is_collected_and_the_rest_stays(treasury):
    large = await treasury.receive("USDX", 50_000_000)
    small = await treasury.receive("USDX", 1_000_000)
    await treasury.work(treasury.engine(), rounds=20, until="enough")
    assert await treasury.on_chain(large, "USDX") == 0
    assert await treasury.on_chain(small, "USDX") == 1_000_000
    assert await treasury.on_chain(treasury.wallet.address, "USDX") == 50_000_000


async def test_without_a_price_nobody_can_say_and_it_stays(treasury):
    del treasury.prices.board["USDX", "usd"]
    address = await treasury.receive("USDX", 50_000_000)
    await treasury.work(treasury.engine(), rounds=6, until="enough")
    assert await treasury.on_chain(address, "USDX") == 50_000_000


async def test_a_payout_fetches_what_it_needs_and_no_more_whatever_it_is_worth(treasury):
    treasury.prices.board.clear()
    addresses = [await treasury.receive("USDX", units) for units in (1_000, 3_000, 2_000)]
    await treasury.pay_out("USDX", 4_000, await treasury.stranger(1))
    await treasury.work(treasury.engine())
    assert [await treasury.on_chain(address, "USDX") for address in addresses] == [1_000, 0, 0]


async def test_several_deposits_to_one_address_are_fetched_at_once(treasury):
    address = await treasury.receive("USDX", 20_000_000)
    treasury.chain.transfer(treasury.token("USDX"), address, 30_000_000)
    await treasury.mine(5)
    engine = treasury.engine()
    await treasury.work(engine, rounds=20, until="enough")
    assert await treasury.on_chain(treasury.wallet.address, "USDX") == 50_000_000
    assert treasury.chain.accounts.sequence(address) == 1


async def test_only_what_is_confirmed_is_fetched(treasury):
    address = await treasury.receive("USDX", 20_000_000)
    treasury.chain.transfer(treasury.token("USDX"), address, 30_000_000)
    await treasury.mine()
    engine = treasury.engine()
    await engine.tick()
    async with treasury.db.transaction() as conn:
        units = await conn.exec_driver_sql("SELECT units FROM outbound_intents WHERE kind = 'collection'")
        assert units.scalars().all() == [20_000_000]
    await treasury.work(engine, rounds=20, until="enough")


async def test_a_collection_costs_the_merchant_credits_and_the_platform_the_fee(treasury):
    await treasury.receive("USDX", 50_000_000)
    await treasury.work(treasury.engine(), rounds=12, until="enough")
    async with treasury.db.transaction() as conn:
        usage = await conn.exec_driver_sql("SELECT operation, count(*) FROM usage_records GROUP BY 1")
        assert {"collection": 1}.items() <= {row.operation: row.count for row in usage}.items()
        spent = await conn.exec_driver_sql(
            "SELECT -balance FROM ledger_accounts WHERE purpose = 'gas_spent' AND merchant_pk IS NULL"
        )
        assert spent.scalar_one() > 0
    assert (await treasury.balance("USDX")).available == 50_000_000


async def test_the_rule_is_the_operators_and_can_be_switched_off(treasury):
    async with treasury.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO platform_settings (id, settings, updated_at) VALUES (1, $1, now())",
            ('{"collection": {"enabled": false}}',),
        )
    address = await treasury.receive("USDX", 50_000_000)
    await treasury.work(treasury.engine(), rounds=6, until="enough")
    assert await treasury.on_chain(address, "USDX") == 50_000_000


async def test_a_one_time_address_gets_little_more_gas_than_it_needs(treasury):
    """A quarter of the headroom that a wallet gets: what is left over there is lost."""
    address = await treasury.receive("USDX", 50_000_000)
    await treasury.work(treasury.engine(), rounds=20, until="enough")
    fee = treasury.chain.fees.current(treasury.chain.fees.limit(treasury.token("USDX")))
    assert fee.price_now is not None
    left = await treasury.on_chain(address, "MEM")
    assert left < fee.limit * (fee.price_now + (fee.price - fee.price_now) // 4) - 45_000 * fee.price_now + 1
    assert treasury.chain.accounts.sequence(treasury.station) == 1


async def test_a_collection_whose_gas_grew_dearer_meanwhile_goes_out_for_what_is_there(treasury):
    address, engine = await treasury.receive("USDX", 50_000_000), treasury.engine()
    await engine.tick()
    treasury.chain.fees.base_price = treasury.chain.fees.base_price * 6 // 5
    await treasury.work(engine, rounds=20, until="enough")
    assert await treasury.on_chain(address, "USDX") == 0
    assert treasury.chain.accounts.sequence(treasury.station) == 1


async def test_a_collection_whose_gas_grew_much_dearer_gets_the_rest(treasury):
    address, engine = await treasury.receive("USDX", 50_000_000), treasury.engine()
    await engine.tick()
    treasury.chain.fees.base_price *= 2
    await treasury.work(engine, rounds=20, until="enough")
    assert await treasury.on_chain(address, "USDX") == 0
    assert treasury.chain.accounts.sequence(treasury.station) == 2
