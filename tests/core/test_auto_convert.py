"""Auto-convert: what is available of a coin becomes another coin, once, at a price that is no bad bargain."""

from __future__ import annotations

import asyncio

import pytest

from cambist.hints import Hints
from cambist.plugin import ExchangeRefusedError
from cambist.services.accounting.statements import entries
from cambist.services.accounting.statements.entries import Bounds, Filters
from cambist.services.addresses.account_keys import register_gas_stations
from cambist.services.chains.rules import TokenRule
from cambist.services.payouts import auto_convert, auto_payout
from cambist.services.payouts.auto_convert_reasons import FAILED_PAUSE
from tests.core.test_auto_payout import approve, suspend
from tests.support.convert_env import USDX, ConvertEnv
from tests.support.payout_env import person


@pytest.fixture
async def env(db, clock, ids):
    return await ConvertEnv.opened(db, clock, ids)


@pytest.fixture
async def ruled(env):
    await env.rule()
    return env


async def refusal_of(env):
    async with env.db.autocommit() as conn:
        found = await conn.exec_driver_sql(
            "SELECT auto_convert_refusal, auto_convert_refusals, auto_convert_due_at FROM coin_settings"
        )
        return tuple(found.one())


async def stations(env):
    async with env.db.transaction() as conn:
        await register_gas_stations(conn, env.context.keys, env.payment_env.registry.families.values())


async def test_all_that_is_available_is_exchanged_and_nothing_that_is_held(ruled):
    await ruled.fund(150 * USDX)
    await ruled.fund(70 * USDX, "held")
    assert await ruled.run() == 1
    (row,) = await ruled.exchanges()
    assert (row.kind, row.made_for, row.status, row.units) == ("swap", "auto", "pending", 150 * USDX)
    assert (row.dest_chain, row.dest_token, row.recipient) == ("memory", "MEM", row.sender)
    assert (row.project_pk, row.asked_by) == (ruled.live.project_pk, "platform")
    assert await ruled.balances() == {"pending": 150 * USDX, "held": 70 * USDX, "custody_wallet": 220 * USDX}
    assert await ruled.told() == ["EXCHANGE_UNDER_WAY", "NOTHING_AVAILABLE"]


async def test_across_chains_it_is_a_bridge(env):
    await env.rule(dest="other/USDX")
    await env.fund(150 * USDX)
    assert await env.run() == 1
    (row,) = await env.exchanges()
    assert (row.kind, row.dest_chain, row.dest_token) == ("bridge", "other", "USDX")


async def test_it_stands_in_the_statement_and_in_the_audit_log(ruled):
    await ruled.fund(150 * USDX)
    await ruled.run()
    (row,) = await ruled.exchanges()
    async with ruled.db.transaction() as conn:
        wanted = Filters(type="exchange")
        scope = await entries.scope_of(conn, ruled.payment_env.registry, ruled.live.merchant_pk, "live", wanted)
        found, _ = await entries.read(conn, scope, wanted, Bounds(), 10)
        audit = await conn.exec_driver_sql("SELECT action, actor_kind, project_id, details FROM audit_entries")
        (entry,) = audit.all()
    (told,) = found
    assert (told.units, told.from_balance, told.to_balance, told.reference) == (
        -150 * USDX,
        "available",
        "pending",
        row.txn_id,
    )
    assert (entry.action, entry.actor_kind, entry.project_id) == ("auto_convert.made", "gateway", "prj_live")
    assert (entry.details["units"], entry.details["destToken"]) == (str(150 * USDX), "MEM")


async def test_less_than_the_operator_says_is_worth_it_waits_until_it_is(ruled):
    await ruled.fund(10 * USDX - 1)
    assert (await ruled.run(), await ruled.told()) == (0, ["BELOW_MINIMUM"])
    await ruled.fund(1)
    assert await ruled.told() == []
    assert await ruled.run() == 1


async def test_nothing_is_converted_into_what_operators_have_disabled(ruled):
    await ruled.fund(150 * USDX)
    ruled.exchanging.token_rules.replace({("memory", None): TokenRule(is_open=False, by_default=True)})
    assert (await ruled.run(), await ruled.told()) == (0, ["TOKEN_NOT_ENABLED"])
    assert (ruled.service.asked, await ruled.exchanges()) == (0, [])


async def disable(ruled, symbol):
    async with ruled.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO coin_settings (merchant_pk, mode, chain, symbol, enabled, updated_at)"
            " VALUES ($1, 'live', 'memory', $2, false, now())"
            " ON CONFLICT (merchant_pk, mode, chain, symbol) DO UPDATE SET enabled = false",
            (ruled.live.merchant_pk, symbol),
        )


@pytest.mark.parametrize("symbol", ["USDX", "MEM"])
async def test_neither_coin_that_the_merchant_has_disabled_is_converted_and_that_is_told(ruled, symbol):
    await ruled.fund(150 * USDX)
    await disable(ruled, symbol)
    assert (await ruled.run(), await ruled.told()) == (0, ["TOKEN_NOT_ENABLED"])
    assert (ruled.service.asked, await ruled.exchanges()) == (0, [])


async def test_the_platforms_fee_and_its_markup_are_taken(env):
    await stations(env)
    await env.settings(exchanges={"swapFeeBps": 30, "bridgeFeeBps": 20, "autoConvertMarkupBps": 15})
    await env.rule()
    await env.rule("memory/MEM", "other/MEM")
    await env.fund(100 * USDX)
    await env.fund(10**20, symbol="MEM")
    assert await env.run() == 2
    swap, bridge = sorted(await env.exchanges(), key=lambda row: row.kind, reverse=True)
    assert (swap.fee_bps, swap.fee_units) == (45, 0)
    assert (bridge.fee_bps, bridge.fee_units) == (0, bridge.units * 35 // 10_000)


async def test_a_price_below_the_guard_waits_longer_each_time_and_sells_when_it_is_good_again(ruled):
    await ruled.fund(150 * USDX)
    ruled.service.fee_bps = 301
    assert (await ruled.run(), await ruled.told()) == (0, ["PRICE_BELOW_GUARD"])
    assert await ruled.run() == 0
    code, times, due_at = await refusal_of(ruled)
    assert (code, times, (due_at - ruled.clock.now()).total_seconds()) == ("PRICE_BELOW_GUARD", 2, 120)
    asked = ruled.service.asked
    assert (await ruled.run(), ruled.service.asked) == (0, asked), "it is too early to ask again"
    ruled.service.fee_bps = 300
    assert await ruled.run() == 1
    assert (await refusal_of(ruled))[:2] == (None, 0)
    assert await ruled.balances() == {"pending": 150 * USDX, "custody_wallet": 150 * USDX}


async def test_the_pause_is_half_an_hour_at_most(ruled):
    await ruled.fund(150 * USDX)
    ruled.service.down = True
    for _ in range(8):
        ruled.clock.advance(1800)
        await ruled.run()
    code, times, due_at = await refusal_of(ruled)
    assert (code, times, (due_at - ruled.clock.now()).total_seconds()) == ("EXCHANGE_UNAVAILABLE", 8, 1800)


async def test_without_a_price_nothing_is_sold(ruled):
    await ruled.fund(150 * USDX)
    del ruled.payment_env.prices.board["USDX", "usd"]
    assert (await ruled.run(), await ruled.told()) == (0, ["EXCHANGE_PRICE_UNKNOWN"])
    ruled.payment_env.prices.board["USDX", "usd"] = "1"
    del ruled.payment_env.prices.board["MEM", "usd"]
    ruled.clock.advance(60)
    assert (await ruled.run(), await ruled.told()) == (0, ["EXCHANGE_PRICE_UNKNOWN"])
    assert await ruled.exchanges() == []


async def test_of_what_is_too_much_half_is_asked_for_until_it_is_taken(ruled):
    await ruled.fund(160 * USDX)
    ruled.swaps.refusal = ExchangeRefusedError("too much", reason="amount_too_high")
    assert (await ruled.run(), await ruled.told()) == (0, ["EXCHANGE_AMOUNT_TOO_HIGH"])
    assert await ruled.run() == 0
    ruled.swaps.refusal = None
    assert await ruled.run() == 1
    (row,) = await ruled.exchanges()
    assert row.units == 40 * USDX
    await ruled.end(row.txn_id)
    assert await ruled.run() == 1
    assert [row.units for row in await ruled.exchanges()] == [40 * USDX, 120 * USDX]


async def test_the_next_waits_until_the_one_before_has_ended(ruled):
    await ruled.fund(150 * USDX)
    await ruled.run()
    await ruled.fund(30 * USDX)
    assert (await ruled.run(), await ruled.told()) == (0, ["EXCHANGE_UNDER_WAY"])
    (first,) = await ruled.exchanges()
    await ruled.end(first.txn_id)
    assert await ruled.run() == 1
    assert [row.units for row in await ruled.exchanges()] == [150 * USDX, 30 * USDX]


async def test_after_one_that_failed_the_coin_is_left_alone_for_half_an_hour(ruled):
    await ruled.fund(150 * USDX)
    await ruled.run()
    (first,) = await ruled.exchanges()
    await ruled.end(first.txn_id, "failed", "the chain would refuse it")
    await ruled.fund(30 * USDX)
    assert (await ruled.run(), await ruled.told()) == (0, ["EXCHANGE_FAILED"])
    ruled.clock.advance(FAILED_PAUSE.total_seconds())
    assert await ruled.run() == 1


async def test_many_workers_at_once_start_it_once(ruled):
    await ruled.fund(150 * USDX)
    ruled.clock.advance(61)
    runs = await asyncio.gather(
        *(auto_convert.run(ruled.db, ruled.exchanging, Hints(None)) for _ in range(12)),
    )
    assert (sum(one.started for one in runs), len(await ruled.exchanges())) == (1, 1)


async def test_a_worker_that_was_slow_for_longer_than_its_claim_starts_no_second_one(ruled):
    await ruled.fund(150 * USDX)

    async def while_it_is_asked():
        ruled.swaps.meanwhile = None
        assert await ruled.run() == 1
        await ruled.fund(200 * USDX)

    ruled.swaps.meanwhile = while_it_is_asked
    assert await ruled.run() == 0
    assert len(await ruled.exchanges()) == 1


@pytest.mark.parametrize("what", ["spent", "reorg", "rule", "off", "project", "settings", "provider"])
async def test_what_changes_while_providers_are_asked_is_seen_before_money_moves(ruled, what):
    await ruled.fund(150 * USDX)

    async def change():
        match what:
            case "spent":
                await ruled.pay()
            case "reorg":
                await ruled.move("receivable", "custody_wallet", 1)
            case "rule":
                await ruled.rule(dest="other/USDX")
            case "off":
                await ruled.set(autoConvertEnabled=False)
            case "project":
                await ruled.payment_env.change_project(ruled.live, is_active=False)
            case "settings":
                await ruled.settings(exchanges={"priceGuardBps": 10})
            case "provider":
                await ruled.settings(exchanges={"providers": {"fair": False}})

    ruled.swaps.meanwhile = change
    assert await ruled.run() == 0
    assert ruled.service.asked == 1
    assert await ruled.exchanges() == []


async def test_every_reason_why_nothing_is_converted_is_told(ruled):
    assert await ruled.told() == ["NOTHING_AVAILABLE"]
    await ruled.fund(150 * USDX)
    assert await ruled.told() == []
    await ruled.payment_env.change_project(ruled.live, is_active=False)
    assert (await ruled.told(), await ruled.run()) == (["PROJECT_INACTIVE"], 0)
    await ruled.payment_env.change_project(ruled.live, is_active=True)
    await ruled.settings(exchanges={"swapEnabled": False})
    assert (await ruled.told(), await ruled.run()) == (["SWAP_DISABLED"], 0)
    await ruled.settings(exchanges={"swapEnabled": True}, cpt={"floor": 0, "initialAllowance": 0})
    await ruled.queue("payout", 1 * USDX)
    assert (await ruled.told(), await ruled.run()) == (["INSUFFICIENT_CPT"], 0)
    await ruled.settings(cpt={"floor": -1_000_000})
    await ruled.move("receivable", "custody_wallet", 1)
    assert (await ruled.told(), await ruled.run()) == (["RECEIVABLE_OUTSTANDING"], 0)
    await ruled.move("custody_wallet", "receivable", 1)
    for symbol in ("USDX", "MEM"):
        await disable(ruled, symbol)
        assert (await ruled.told())[:1] == ["TOKEN_NOT_ENABLED"], symbol
        assert await ruled.run() == 0
        async with ruled.db.transaction() as conn:
            await conn.exec_driver_sql("UPDATE coin_settings SET enabled = true")
    assert await ruled.exchanges() == []
    assert await ruled.run() == 1


async def test_one_coin_that_cannot_be_converted_keeps_no_other_back(env):
    await env.rule()
    await env.rule("memory/MEM", "other/MEM")
    env.swaps.refusal = AssertionError("a bug of a plugin")
    await env.fund(150 * USDX)
    await env.fund(10**20, symbol="MEM")
    assert await env.run() == 1
    assert [row.source_token for row in await env.exchanges()] == ["MEM"]


async def payout_too(env, threshold):
    await approve(env)
    await env.set(autopayoutPolicy="limit", autopayoutThreshold=threshold, autopayoutAddress=person("safe"))


async def test_what_is_above_the_threshold_is_paid_out_first_and_the_rest_is_converted(ruled):
    await payout_too(ruled, "100")
    await ruled.fund(150 * USDX)
    assert (await ruled.run(), await ruled.told()) == (0, ["AUTO_PAYOUT_FIRST"])
    assert await auto_payout.run(ruled.db, ruled.context, ruled.payment_env.rates, Hints(None)) == 1
    assert await ruled.told() == []
    assert await ruled.run() == 1
    (row,) = await ruled.exchanges()
    assert row.units == 100 * USDX
    assert await ruled.balances() == {"pending": 150 * USDX, "custody_wallet": 150 * USDX}


async def test_an_auto_payout_at_the_same_moment_takes_its_part_and_nothing_is_taken_twice(ruled):
    await payout_too(ruled, "100")
    await ruled.fund(150 * USDX)
    for _ in range(5):
        ruled.clock.advance(61)
        convert = [auto_convert.run(ruled.db, ruled.exchanging, Hints(None)) for _ in range(4)]
        pay = [auto_payout.run(ruled.db, ruled.context, ruled.payment_env.rates, Hints(None)) for _ in range(4)]
        await asyncio.gather(*convert, *pay)
    (row,) = await ruled.exchanges()
    assert row.units == 100 * USDX
    assert await ruled.balances() == {"pending": 150 * USDX, "custody_wallet": 150 * USDX}


async def test_money_that_comes_while_providers_are_asked_may_belong_to_the_auto_payout(ruled):
    await payout_too(ruled, "200")
    await ruled.fund(150 * USDX)

    async def more_comes():
        ruled.swaps.meanwhile = None
        await ruled.fund(100 * USDX)

    ruled.swaps.meanwhile = more_comes
    assert (await ruled.run(), await ruled.told()) == (0, ["AUTO_PAYOUT_FIRST"])
    assert await ruled.balances() == {"available": 250 * USDX, "custody_wallet": 250 * USDX}


async def test_an_auto_payout_holds_the_lock_and_the_conversion_waits_for_another_run(ruled):
    await ruled.fund(150 * USDX)

    async def hold():
        ruled.held = ruled.db.transaction()
        conn = await ruled.held.__aenter__()
        await conn.exec_driver_sql("SELECT FROM coin_settings FOR UPDATE")

    ruled.swaps.meanwhile = hold
    assert await ruled.run() == 0
    await ruled.held.__aexit__(None, None, None)
    ruled.swaps.meanwhile = None
    assert await ruled.run() == 1


async def test_a_sandbox_project_converts_without_asking_a_provider(env):
    await env.set(sandbox=True, autoConvertEnabled=True, autoConvertDestChain="memory", autoConvertDestToken="MEM")
    await env.fund(150 * USDX, mode="sandbox")
    assert await env.run() == 1
    (row,) = await env.exchanges()
    assert (row.mode, row.provider, row.scope) == ("sandbox", "sandbox", env.test.project_pk)
    assert env.service.asked == 0


async def test_nothing_is_converted_for_a_merchant_that_is_suspended(ruled):
    await ruled.fund(150 * USDX)
    await suspend(ruled)
    assert await ruled.run() == 0
    await suspend(ruled, again=True)
    assert await ruled.run() == 1
