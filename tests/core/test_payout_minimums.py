"""Where the operator sets no minimum, a payout must be worth what a transfer to a fresh address may cost."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from cambist.domain.intents import IntentKind
from cambist.plugin import Plan
from cambist.services import platform
from cambist.services.addresses.account_keys import register_gas_stations
from cambist.services.errors import InvalidError
from cambist.services.payouts import batch, minimums
from cambist.services.platform import PlatformSettings
from cambist.services.pricing import price_points
from cambist.testing.memory import MemoryChain, memory_chain_info
from tests.support.payout_env import person
from tests.support.tron_treasury import SUN, tron_treasury

USDX = 10**6
COIN = 10**18


def chain_of(chain_id="memory"):
    """Return a chain on which coin may cost 0.42 MEM to send, and a token 1.2 MEM."""
    chain = MemoryChain(memory_chain_info(chain_id))
    chain.fees.base_price, chain.fees.tip = 10**13, 0
    return chain


@pytest.fixture
def chain():
    return chain_of()


@pytest.fixture
async def ready(payout_env):
    """Make the gas station known, and write prices down: 3 dollars a MEM, 1 dollar a USDX, none of DAIX."""
    env = payout_env.payment_env
    async with payout_env.db.transaction() as conn:
        await register_gas_stations(conn, payout_env.context.keys, env.registry.families.values())
    await price_points.record(payout_env.db, env.rates, ["MEM", "USDX"], payout_env.clock.now())
    await payout_env.fund(1000 * USDX)
    return payout_env


async def derive(env, *chains):
    families = env.payment_env.registry.families
    named = {chain.info.id: chain for chain in chains}
    with capture_logs() as logs:
        await minimums.derive_all(env.db, env.context.keys, families, named, env.clock.now())
    return [(entry["event"], entry["chain"]) for entry in logs]


async def intents_of(env, chain, monkeypatch):
    """Return what is planned on a chain; nothing is derived of it."""
    planned = []

    async def plan(intents, **_):
        planned.extend(intents)
        return [Plan(refused="not today") for _ in intents]

    with monkeypatch.context() as patched:
        patched.setattr(chain, "plan", plan)
        await derive(env, chain)
    return planned


async def in_force(env):
    async with env.db.autocommit() as conn:
        found = await minimums.list_in_force(conn, await platform.load(conn), env.clock.now())
    return {f"{one.chain}/{one.symbol}": one.units for one in found}


async def test_it_is_the_fee_of_a_transfer_at_the_prices_that_were_written_down(ready, chain):
    assert await derive(ready, chain) == []
    async with ready.db.autocommit() as conn:
        mem, usdx = await minimums.list_in_force(conn, await platform.load(conn), ready.clock.now())
    assert (mem.symbol, mem.units, mem.fee_units) == ("MEM", 42 * COIN // 100, 42 * COIN // 100)
    assert (mem.native_price, mem.token_price) == (None, None), "coin that pays its own fee needs no price"
    assert (usdx.symbol, usdx.units, usdx.fee_units) == ("USDX", 3_600_000, 12 * COIN // 10)
    assert (usdx.native_price, usdx.token_price, usdx.derived_at) == (3, 1, ready.clock.now())


async def test_the_transfer_that_is_planned_goes_to_an_address_that_nobody_was_given(ready, chain, monkeypatch):
    planned = await intents_of(ready, chain, monkeypatch)
    async with ready.db.autocommit() as conn:
        known = set((await conn.exec_driver_sql("SELECT address FROM addresses")).scalars())
    assert [intent.token for intent in planned] == list(chain.info.tokens)
    assert {intent.source in known for intent in planned} == {True}
    assert {intent.to_address in known for intent in planned} == {False}


async def test_a_smaller_payout_of_any_kind_is_refused_with_the_minimum_and_a_refund_is_not(ready, chain):
    await ready.pay(amount="0.000001")
    await derive(ready, chain)
    with pytest.raises(InvalidError, match=r"at least 3\.6\.") as error:
        await ready.pay(amount="3.599999")
    assert error.value.code == "PAYOUT_BELOW_MINIMUM"
    for kind in (IntentKind.WITHDRAWAL, IntentKind.AUTO_PAYOUT):
        with pytest.raises(InvalidError, match=r"at least 3\.6\."):
            await ready.queue(kind, 3_599_999)
    rows = [{"toAddress": person(name), "amount": amount} for name, amount in (("ann", "3.599999"), ("ben", "3.6"))]
    batch = await ready.pay_all(rows)
    assert [(one.row, one.code) for one in batch.rejected] == [(0, "PAYOUT_BELOW_MINIMUM")]
    await ready.queue(IntentKind.REFUND, 1)


async def test_what_the_operator_says_comes_first_and_the_factor_holds_for_the_rest(ready, chain):
    await derive(ready, chain)
    await ready.settings(limits={"memory/USDX": {"minimum": "2"}})
    await ready.pay(amount="2")
    assert set(await in_force(ready)) == {"memory/MEM"}
    await ready.settings(limits={"memory/USDX": {"perDay": "100"}}, payoutMinimumFees=3)
    with pytest.raises(InvalidError, match=r"at least 10\.8\."):
        await ready.pay(amount="10.7")
    assert (await in_force(ready))["memory/USDX"] == 10_800_000
    await ready.settings(limits={"memory/USDX": {"minimum": "0"}})
    await ready.pay(amount="0.000001")
    await ready.settings(limits={}, payoutMinimumFees=0)
    await ready.pay(amount="0.000001")
    assert await in_force(ready) == {}


async def test_sandbox_has_none(ready, chain):
    await derive(ready, chain)
    await ready.fund(10 * USDX, mode="sandbox")
    await ready.pay(ready.test, amount="0.000001")


async def test_one_that_is_an_hour_old_counts_no_more(ready, chain):
    await derive(ready, chain)
    ready.clock.advance(3_599)
    with pytest.raises(InvalidError):
        await ready.pay(amount="1")
    ready.clock.advance(1)
    await ready.pay(amount="1")
    assert await in_force(ready) == {}


async def test_without_a_price_a_token_has_none_and_an_old_price_is_none(ready, chain):
    ready.clock.advance((price_points.AGE_MAX + timedelta(seconds=1)).total_seconds())
    await derive(ready, chain)
    assert set(await in_force(ready)) == {"memory/MEM"}


async def test_without_a_gas_station_there_is_nothing_to_plan_from(payout_env, chain):
    assert await derive(payout_env, chain) == []
    assert await in_force(payout_env) == {}


async def test_trouble_of_one_chain_hides_no_other(ready, chain, monkeypatch):
    dear, hanging, broken = chain_of("dear"), chain_of("hanging"), chain_of("broken")
    dear.fees.price_max = 1
    monkeypatch.setattr(minimums, "CHAIN_TIMEOUT_S", 3)

    async def hang(_):
        await asyncio.Event().wait()

    hanging.faults.before = hang
    broken.faults.crash = LookupError("a bug of a plugin")
    assert sorted(await derive(ready, dear, hanging, broken, chain)) == [
        ("payout_minimums_unknown", name) for name in ("broken", "dear", "hanging")
    ]
    assert set(await in_force(ready)) == {"memory/MEM", "memory/USDX"}
    chain.faults.unavailable = True
    ready.clock.advance(60)
    await derive(ready, chain)
    assert set(await in_force(ready)) == {"memory/MEM", "memory/USDX"}, "what was known holds until it is old"


async def test_while_fees_are_above_the_ceiling_what_was_derived_below_it_holds_on(ready, chain):
    """It would be higher now, so that it is the least that it can be: to have none would be to pay the most."""
    other = chain_of("other")
    await derive(ready, chain, other)
    chain.fees.price_max = 1
    ready.clock.advance(3_000)
    assert await derive(ready, chain) == [("payout_minimums_unknown", "memory")]
    ready.clock.advance(3_000)
    assert await in_force(ready) == {"memory/MEM": 42 * COIN // 100, "memory/USDX": 3_600_000}, "the other is old"
    with pytest.raises(InvalidError, match=r"at least 3\.6\."):
        await ready.pay(amount="1")


async def test_a_minimum_that_moves_while_a_batch_is_judged_refuses_none_of_it(ready, chain, monkeypatch):
    await derive(ready, chain)
    judge = batch.judge_rows

    async def meanwhile(*judged):
        found = await judge(*judged)
        chain.fees.base_price *= 2
        await derive(ready, chain)
        return found

    monkeypatch.setattr(batch, "judge_rows", meanwhile)
    paid = await ready.pay_all([{"toAddress": person(name), "amount": "3.6"} for name in ("ann", "ben")])
    assert (paid.accepted, paid.rejected) == (2, [])
    assert (await in_force(ready))["memory/USDX"] == 7_200_000


async def test_a_token_whose_transfer_is_refused_has_none(ready, chain, monkeypatch):
    planned = (await intents_of(ready, chain, monkeypatch))[0]
    chain.faults.refusing = {(chain.info.token("USDX").contract, planned.to_address)}
    await derive(ready, chain)
    assert set(await in_force(ready)) == {"memory/MEM"}


async def test_two_workers_at_once_store_one_row_for_each_token(ready, chain):
    await asyncio.gather(*(derive(ready, chain) for _ in range(4)))
    assert await in_force(ready) == {"memory/MEM": 42 * COIN // 100, "memory/USDX": 3_600_000}


async def test_on_tron_it_has_the_price_of_a_fresh_recipient_in_it(db, clock, ids, tmp_path):
    async with tron_treasury(db, clock, ids, tmp_path, fee_ceiling_trx=50) as treasury:
        await treasury.open()
        await price_points.record(db, treasury.rates, ["TRX", "USDT"], clock.now())
        await minimums.derive_all(db, treasury.keys, treasury.registry.families, {"tron": treasury.chain}, clock.now())
        async with db.autocommit() as conn:
            trx, usdt = await minimums.list_in_force(conn, PlatformSettings(), clock.now())
        assert (trx.symbol, trx.units) == ("TRX", 1_100_000), "the activation"
        # 130,285 energy for who holds none of the token, at 100 sun, with the bandwidth and a margin.
        assert (usdt.symbol, 13_028_500 <= usdt.fee_units <= 17_000_000) == ("USDT", True)
        assert 0 <= usdt.units - usdt.fee_units / 4 < 1, "a TRX is worth a quarter of a dollar"
        treasury.price_energy(500)
        clock.advance(60)
        await minimums.derive_all(db, treasury.keys, treasury.registry.families, {"tron": treasury.chain}, clock.now())
        async with db.autocommit() as conn:
            found = await minimums.list_in_force(conn, PlatformSettings(), clock.now())
        assert [(one.symbol, one.derived_at, one.units) for one in found] == [
            ("TRX", clock.now(), trx.units),
            ("USDT", clock.now(), usdt.units),
        ], "a token whose transfer alone is above the ceiling keeps what it had, and no other waits for it"
        treasury.price_energy(100)
        clock.advance(60)
        await treasury.change_stake("stake", 9_000 * SUN)
        await minimums.derive_all(db, treasury.keys, treasury.registry.families, {"tron": treasury.chain}, clock.now())
        async with db.autocommit() as conn:
            trx, staked = await minimums.list_in_force(conn, PlatformSettings(), clock.now())
        assert trx.units == 1_100_000
        assert staked.fee_units >= 13_028_500, "what the stake covers is used up by whoever comes first"
