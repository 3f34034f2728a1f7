"""Coins: which are paid out, and settings that can be kept."""

import msgspec
import pytest
from msgspec import structs

from cambist.plugin import Token
from cambist.services.errors import ForbiddenError, InvalidError
from cambist.services.payouts import coin_settings
from cambist.services.payouts.coin_settings import Coin, CoinPatch, EnabledCoins
from cambist.testing.memory.family import named_address
from tests.support.payout_env import person


async def enabled(payout_env, actor=None):
    actor = actor or payout_env.live
    async with payout_env.db.autocommit() as conn:
        found = await coin_settings.list_coins(conn, payout_env.payment_env.registry, actor.merchant_pk, actor.mode)
    return {(coin.chain, coin.token.symbol) for coin in found if coin.enabled}


async def replace(payout_env, *wanted):
    body = msgspec.convert({"coins": [{"chain": chain, "token": token} for chain, token in wanted]}, EnabledCoins)
    async with payout_env.db.transaction() as conn:
        return await coin_settings.replace_enabled(
            conn, payout_env.payment_env.registry, payout_env.live, body, payout_env.clock.now()
        )


async def change(payout_env, chain="memory", symbol="USDX", actor=None, **fields):
    patch = msgspec.convert(fields, CoinPatch)
    async with payout_env.db.transaction() as conn:
        return await coin_settings.change_settings(
            conn,
            payout_env.payment_env.registry,
            actor or payout_env.live,
            Coin(chain=chain, token=symbol),
            patch,
            payout_env.clock.now(),
        )


async def approve(payout_env, address, chain="memory", mode="live"):
    async with payout_env.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO approved_addresses (approval_id, merchant_pk, mode, chain, address, label, approved_at)"
            " VALUES ($1, $2, $3, $4, $5, 'Cold', $6)",
            (f"{chain}/{address}", payout_env.live.merchant_pk, mode, chain, address, payout_env.clock.now()),
        )


async def test_every_coin_is_enabled_until_the_merchant_says_otherwise(payout_env):
    everything = {
        (chain.id, token.symbol) for chain in payout_env.payment_env.registry.chains.values() for token in chain.tokens
    }
    assert await enabled(payout_env) == everything
    await replace(payout_env, ("memory", "MEM"), ("bsc", "USDT"))
    assert await enabled(payout_env) == {("memory", "MEM"), ("bsc", "USDT")}
    assert await enabled(payout_env, payout_env.test) == everything
    await replace(payout_env, ("memory", "USDX"))
    assert await enabled(payout_env) == {("memory", "USDX")}


async def test_a_coin_that_is_not_enabled_is_not_paid_out(payout_env):
    await payout_env.fund(10**8)
    await replace(payout_env, ("memory", "MEM"))
    with pytest.raises(InvalidError) as error:
        await payout_env.pay()
    assert error.value.code == "TOKEN_NOT_ENABLED"
    with pytest.raises(InvalidError):
        await payout_env.pay_all([{"toAddress": person(), "amount": "1"}])
    await replace(payout_env, ("memory", "USDX"))
    await payout_env.pay()


@pytest.mark.parametrize(
    "coin, field", [(("nowhere", "USDX"), "coins[1].chain"), (("memory", "BTC"), "coins[1].token")]
)
async def test_coins_that_do_not_exist_are_refused_by_their_place(payout_env, coin, field):
    with pytest.raises(InvalidError) as error:
        await replace(payout_env, ("memory", "MEM"), coin)
    assert [problem.field for problem in error.value.details] == [field]


async def test_auto_payouts_go_to_approved_addresses_only(payout_env):
    wanted = {"autopayoutPolicy": "limit", "autopayoutThreshold": "100.5", "autopayoutAddress": person("cold").upper()}
    with pytest.raises(ForbiddenError) as error:
        await change(payout_env, **wanted)
    assert error.value.code == "ADDRESS_NOT_APPROVED"
    await approve(payout_env, person("cold"), chain="other")
    with pytest.raises(ForbiddenError):
        await change(payout_env, **wanted)
    await approve(payout_env, person("cold"))
    coin = await change(payout_env, **wanted)
    assert (coin.autopayout_threshold, coin.autopayout_address) == (100_500_000, person("cold"))
    async with payout_env.db.transaction() as conn:
        row = (await conn.exec_driver_sql("SELECT autopayout_policy, autopayout_project_pk FROM coin_settings")).one()
        assert tuple(row) == ("limit", payout_env.live.project_pk)
        await conn.exec_driver_sql("DELETE FROM approved_addresses")
    with pytest.raises(ForbiddenError):
        await change(payout_env, autopayoutThreshold="1")
    coin = await change(payout_env, autopayoutPolicy="off")
    assert (coin.autopayout_policy, coin.autopayout_threshold) == ("off", 100_500_000)
    coin = await change(payout_env, autopayoutThreshold=None, autopayoutAddress=None)
    assert (coin.autopayout_threshold, coin.autopayout_address) == (None, None)


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"autopayoutPolicy": "limit"}, "VALIDATION_ERROR"),
        ({"autopayoutPolicy": "limit", "autopayoutThreshold": "1"}, "VALIDATION_ERROR"),
        ({"autopayoutThreshold": "-1"}, "INVALID_AMOUNT"),
        ({"autopayoutAddress": "nowhere"}, "INVALID_ADDRESS"),
        ({"autoConvertEnabled": True}, "VALIDATION_ERROR"),
        ({"autoConvertDestChain": "bsc"}, "VALIDATION_ERROR"),
        ({"autoConvertDestChain": "bsc", "autoConvertDestToken": "nothing"}, "UNSUPPORTED_TOKEN"),
        ({"autoConvertDestChain": "bsc", "autoConvertDestToken": "USDT"}, "SWAP_NOT_SUPPORTED_FOR_CHAIN"),
    ],
)
async def test_settings_that_would_do_nothing_or_cannot_be_meant_are_refused(payout_env, fields, code):
    with pytest.raises(InvalidError) as error:
        await change(payout_env, **fields)
    assert error.value.code == code
    assert await payout_env.payment_env.count("coin_settings") == 0


async def test_auto_payouts_stay_with_the_project_that_has_decided_about_them(payout_env):
    first, second = payout_env.test, payout_env.payment_env.test2

    async def told():
        async with payout_env.db.autocommit() as conn:
            return (await conn.exec_driver_sql("SELECT autopayout_project_pk FROM coin_settings")).scalar_one()

    await approve(payout_env, person("cold"), mode="sandbox")
    await change(payout_env, actor=first, autopayoutPolicy="limit")
    await change(payout_env, actor=second, minDeposit="5")
    assert await told() == first.project_pk
    await change(payout_env, actor=second, autopayoutThreshold="5")
    assert await told() == second.project_pk
    await change(payout_env, actor=first, autopayoutPolicy="off")
    assert await told() is None


async def test_a_coin_to_convert_to_is_kept_and_never_the_coin_itself(payout_env):
    target = {"autoConvertDestChain": "bsc", "autoConvertDestToken": "USDT"}
    coin = await change(payout_env, "bsc", "USDC", **target)
    assert (coin.auto_convert_dest_chain, coin.auto_convert_dest_token) == ("bsc", "USDT")
    assert not coin.auto_convert_enabled
    assert await change(payout_env, "bsc", "USDC", autoConvertEnabled=False) == coin
    with pytest.raises(InvalidError, match="itself"):
        await change(payout_env, "bsc", "USDT", **target)


async def test_amounts_are_read_in_the_decimals_of_the_token_that_has_just_replaced_another(payout_env):
    """Of which this process has not heard yet."""
    registry = payout_env.payment_env.registry
    info = registry.chains["memory"]
    old = Token(symbol="NEW", contract=named_address("old"), decimals=6, label="New")
    registry.chains["memory"] = structs.replace(info, tokens=(*info.tokens, old))
    async with payout_env.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO chain_tokens (token_id, chain, contract, origin, symbol, decimals, label, state, revision,"
            " created_at, changed_at) SELECT 'tok_' || state, 'memory', contract, 'added', 'NEW', decimals, 'New',"
            " state, 1, $3, $3 FROM (VALUES ($1, 6, 'replaced'), ($2, 18, 'enabled')) AS t (contract, decimals, state)",
            (old.contract, named_address("new"), payout_env.clock.now()),
        )
    changed = await change(payout_env, symbol="NEW", minDeposit="0.5")
    assert (changed.min_deposit, changed.token.decimals) == (5 * 10**17, 18)
    assert (await change(payout_env, minDeposit="0.5")).min_deposit == 500_000
