"""Coins: which are paid out, and settings that can be kept."""

import msgspec
import pytest

from cambist.services.errors import ForbiddenError, InvalidError
from cambist.services.payouts import coins
from cambist.services.payouts.coins import Coin, CoinPatch, EnabledCoins
from tests.support.purse import Purse, person
from tests.support.till import Till


@pytest.fixture
async def purse(db, clock, ids):
    return Purse(await Till(db, clock, ids).open())


async def enabled(purse, actor=None):
    actor = actor or purse.live
    async with purse.db.autocommit() as conn:
        found = await coins.list_coins(conn, purse.till.registry, actor.merchant_row, actor.mode)
    return {(coin.chain, coin.token.symbol) for coin in found if coin.enabled}


async def replace(purse, *wanted):
    body = msgspec.convert({"coins": [{"chain": chain, "token": token} for chain, token in wanted]}, EnabledCoins)
    async with purse.db.transaction() as conn:
        return await coins.replace_enabled(conn, purse.till.registry, purse.live, body, purse.clock.now())


async def change(purse, chain="memory", symbol="USDX", **fields):
    patch = msgspec.convert(fields, CoinPatch)
    async with purse.db.transaction() as conn:
        return await coins.change_settings(
            conn, purse.till.registry, purse.live, Coin(chain=chain, token=symbol), patch, purse.clock.now()
        )


async def approve(purse, address, chain="memory"):
    async with purse.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO approved_addresses (approval_id, merchant_id, mode, chain, address, label, approved_at)"
            " VALUES ($1, $2, 'live', $3, $4, 'Cold', $5)",
            (f"{chain}/{address}", purse.live.merchant_row, chain, address, purse.clock.now()),
        )


async def test_every_coin_is_enabled_until_the_merchant_says_otherwise(purse):
    everything = {(chain.id, token.symbol) for chain in purse.till.registry.chains.values() for token in chain.tokens}
    assert await enabled(purse) == everything
    await replace(purse, ("memory", "MEM"), ("bsc", "USDT"))
    assert await enabled(purse) == {("memory", "MEM"), ("bsc", "USDT")}
    assert await enabled(purse, purse.test) == everything
    await replace(purse, ("memory", "USDX"))
    assert await enabled(purse) == {("memory", "USDX")}


async def test_a_coin_that_is_not_enabled_is_not_paid_out(purse):
    await purse.fund(10**8)
    await replace(purse, ("memory", "MEM"))
    with pytest.raises(InvalidError) as error:
        await purse.pay()
    assert error.value.code == "TOKEN_NOT_ENABLED"
    with pytest.raises(InvalidError):
        await purse.pay_all([{"toAddress": person(), "amount": "1"}])
    await replace(purse, ("memory", "USDX"))
    await purse.pay()
    # Of a swap, both sides must be enabled, which is said before that there are no swaps.
    with pytest.raises(InvalidError) as error:
        await purse.pay(amount=None, srcChain="bsc", srcToken="USDT", srcAmount="1")
    assert error.value.code == "TOKEN_NOT_ENABLED"


@pytest.mark.parametrize(
    "coin, field", [(("nowhere", "USDX"), "coins[1].chain"), (("memory", "BTC"), "coins[1].token")]
)
async def test_coins_that_do_not_exist_are_refused_by_their_place(purse, coin, field):
    with pytest.raises(InvalidError) as error:
        await replace(purse, ("memory", "MEM"), coin)
    assert [problem.field for problem in error.value.details] == [field]


async def test_auto_payouts_go_to_approved_addresses_only(purse):
    wanted = {"autopayoutPolicy": "limit", "autopayoutThreshold": "100.5", "autopayoutAddress": person("cold").upper()}
    with pytest.raises(ForbiddenError) as error:
        await change(purse, **wanted)
    assert error.value.code == "ADDRESS_NOT_APPROVED"
    await approve(purse, person("cold"), chain="other")
    with pytest.raises(ForbiddenError):
        await change(purse, **wanted)
    await approve(purse, person("cold"))
    coin = await change(purse, **wanted)
    assert (coin.autopayout_threshold, coin.autopayout_address) == (100_500_000, person("cold"))
    async with purse.db.transaction() as conn:
        row = (await conn.exec_driver_sql("SELECT autopayout_policy, autopayout_project_id FROM coin_settings")).one()
        assert tuple(row) == ("limit", purse.live.project_row)
        await conn.exec_driver_sql("DELETE FROM approved_addresses")
    with pytest.raises(ForbiddenError):
        await change(purse, autopayoutThreshold="1")
    coin = await change(purse, autopayoutPolicy="off")
    assert (coin.autopayout_policy, coin.autopayout_threshold) == ("off", 100_500_000)
    coin = await change(purse, autopayoutThreshold=None, autopayoutAddress=None)
    assert (coin.autopayout_threshold, coin.autopayout_address) == (None, None)


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"autopayoutPolicy": "limit"}, "VALIDATION_ERROR"),
        ({"autopayoutPolicy": "limit", "autopayoutThreshold": "1"}, "VALIDATION_ERROR"),
        ({"autopayoutThreshold": "-1"}, "INVALID_AMOUNT"),
        ({"autopayoutAddress": "nowhere"}, "INVALID_ADDRESS"),
        ({"autoConvertEnabled": True}, "SWAP_NOT_AVAILABLE"),
        ({"autoConvertDestChain": "bsc"}, "VALIDATION_ERROR"),
        ({"autoConvertDestChain": "bsc", "autoConvertDestToken": "nothing"}, "UNSUPPORTED_TOKEN"),
        ({"autoConvertDestChain": "bsc", "autoConvertDestToken": "USDT"}, "SWAP_NOT_SUPPORTED_FOR_CHAIN"),
    ],
)
async def test_settings_that_would_do_nothing_or_cannot_be_meant_are_refused(purse, fields, code):
    with pytest.raises(InvalidError) as error:
        await change(purse, **fields)
    assert error.value.code == code
    assert await purse.till.count("coin_settings") == 0


async def test_a_coin_to_convert_to_is_kept_and_never_the_coin_itself(purse):
    target = {"autoConvertDestChain": "bsc", "autoConvertDestToken": "USDT"}
    coin = await change(purse, "bsc", "USDC", **target)
    assert (coin.auto_convert_dest_chain, coin.auto_convert_dest_token) == ("bsc", "USDT")
    assert not coin.auto_convert_enabled
    assert await change(purse, "bsc", "USDC", autoConvertEnabled=False) == coin
    with pytest.raises(InvalidError, match="itself"):
        await change(purse, "bsc", "USDT", **target)
