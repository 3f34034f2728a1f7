"""Rules to convert a coin: those that can be meant are kept, and those that cannot are refused."""

from __future__ import annotations

import asyncio

import pytest

from cambist.services.errors import ConflictError, InvalidError
from tests.support.convert_env import USDX, ConvertEnv


@pytest.fixture
async def env(db, clock, ids):
    return await ConvertEnv.opened(db, clock, ids)


async def stored(env, symbol="USDX"):
    async with env.db.autocommit() as conn:
        found = await conn.exec_driver_sql(
            "SELECT auto_convert_enabled, auto_convert_project_pk, auto_convert_due_at, auto_convert_refusal"
            " FROM coin_settings WHERE symbol = $1",
            (symbol,),
        )
        return tuple(found.one())


async def test_the_project_that_switches_it_on_is_kept_and_forgotten_when_it_is_switched_off(env):
    coin = await env.rule()
    assert (coin.auto_convert_enabled, coin.auto_convert_dest_chain, coin.auto_convert_dest_token) == (
        True,
        "memory",
        "MEM",
    )
    assert await stored(env) == (True, env.live.project_pk, env.clock.now(), None)
    coin = await env.set(autoConvertEnabled=False)
    assert (coin.auto_convert_enabled, coin.auto_convert_dest_token) == (False, "MEM")
    assert await stored(env) == (False, None, None, None)
    coin = await env.set(autoConvertEnabled=True)
    assert coin.auto_convert_enabled, "where to is still known"


@pytest.mark.parametrize(
    "coin, fields, code",
    [
        ("memory/USDX", {}, "VALIDATION_ERROR"),
        ("memory/USDX", {"autoConvertDestChain": "memory"}, "VALIDATION_ERROR"),
        ("memory/USDX", {"autoConvertDestChain": "memory", "autoConvertDestToken": "USDX"}, "VALIDATION_ERROR"),
        ("memory/USDX", {"autoConvertDestChain": "nowhere", "autoConvertDestToken": "USDX"}, "UNSUPPORTED_CHAIN"),
        ("memory/USDX", {"autoConvertDestChain": "other", "autoConvertDestToken": "BTC"}, "UNSUPPORTED_TOKEN"),
        (
            "memory/USDX",
            {"autoConvertDestChain": "plain", "autoConvertDestToken": "USDX"},
            "SWAP_NOT_SUPPORTED_FOR_CHAIN",
        ),
        (
            "plain/USDX",
            {"autoConvertDestChain": "memory", "autoConvertDestToken": "USDX"},
            "SWAP_NOT_SUPPORTED_FOR_CHAIN",
        ),
    ],
)
async def test_a_rule_that_cannot_be_meant_is_refused_and_nothing_is_stored(env, coin, fields, code):
    with pytest.raises(InvalidError) as error:
        await env.set(coin, autoConvertEnabled=True, **fields)
    assert error.value.code == code
    assert await env.payment_env.count("coin_settings") == 0


async def test_a_destination_that_the_merchant_has_disabled_is_refused(env):
    async with env.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO coin_settings (merchant_pk, mode, chain, symbol, enabled, updated_at)"
            " VALUES ($1, 'live', 'memory', 'MEM', false, now())",
            (env.live.merchant_pk,),
        )
    with pytest.raises(InvalidError) as error:
        await env.rule()
    assert error.value.code == "TOKEN_NOT_ENABLED"


async def test_coins_are_never_converted_in_a_circle(env):
    await env.rule("memory/USDX", "memory/MEM")
    with pytest.raises(ConflictError, match="USDX on memory") as error:
        await env.rule("memory/MEM", "memory/USDX")
    assert error.value.code == "AUTO_CONVERT_CIRCLE"
    await env.rule("memory/MEM", "other/MEM")
    with pytest.raises(ConflictError):
        await env.rule("other/MEM", "memory/USDX")
    await env.rule("other/MEM", "calling/USDX")
    await env.rule("memory/USDX", "other/USDX")
    await env.rule("other/MEM", "memory/USDX")
    await env.set("other/USDX", autoConvertDestChain="memory", autoConvertDestToken="MEM")
    with pytest.raises(ConflictError):
        await env.set("other/USDX", autoConvertEnabled=True)
    await env.set("memory/MEM", autoConvertEnabled=False)
    await env.set("other/USDX", autoConvertEnabled=True)


async def test_of_two_rules_at_once_that_would_make_a_circle_one_is_refused(env):
    both = [env.rule("memory/USDX", "memory/MEM"), env.rule("memory/MEM", "memory/USDX")]
    made = await asyncio.gather(*both, return_exceptions=True)
    assert sorted(type(one).__name__ for one in made) == ["CoinSettings", "ConflictError"]


async def test_sandbox_and_live_have_rules_of_their_own(env):
    await env.rule("memory/USDX", "memory/MEM")
    await env.rule("memory/MEM", "memory/USDX", sandbox=True)
    assert (await env.told(), await env.told("memory/MEM")) == (["NOTHING_AVAILABLE"], [])


async def test_a_destination_that_is_gone_waits_and_can_be_switched_off(env):
    await env.rule(dest="calling/USDX")
    await env.fund(150 * USDX)
    gone = env.payment_env.registry.chains.pop("calling")
    assert (await env.run(), await env.told()) == (0, ["UNSUPPORTED_CHAIN"])
    await env.set(autopayoutThreshold="1")
    coin = await env.set(autoConvertEnabled=False)
    assert (coin.auto_convert_enabled, gone.id) == (False, coin.auto_convert_dest_chain)


async def test_a_new_rule_forgets_why_the_old_one_waited_and_other_settings_do_not(env):
    await env.rule()
    await env.fund(150 * USDX)
    env.service.down = True
    await env.run()
    assert await env.told() == ["EXCHANGE_UNAVAILABLE"]
    await env.set(autopayoutThreshold="1")
    assert await env.told() == ["EXCHANGE_UNAVAILABLE"]
    await env.rule(dest="other/USDX")
    assert await env.told() == []
    env.service.down = False
    assert await env.run() == 1


async def test_auto_payouts_settings_leave_the_rules_project_alone(env):
    await env.rule()
    before = await stored(env)
    env.clock.advance(5)
    await env.set(autopayoutThreshold="1")
    assert await stored(env) == before
