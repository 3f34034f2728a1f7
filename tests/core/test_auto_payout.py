"""The policy ``limit``: what is above a coin's threshold goes to an approved address, once."""

import asyncio

import msgspec
import pytest

from cambist.hints import Hints
from cambist.services.errors import ConflictError, InvalidError, NotFoundError
from cambist.services.listing import Part
from cambist.services.payouts import approved_addresses, auto_payout, coin_settings
from cambist.services.payouts.approved_addresses import ApprovalRequest
from cambist.services.payouts.auto_payout_reasons import explain
from cambist.services.payouts.coin_settings import Coin, CoinPatch
from cambist.services.payouts.create import create_payout
from cambist.services.payouts.read import list_payouts
from cambist.services.payouts.requests import PayoutRequest
from tests.support.payout_env import person
from tests.support.waiting import waits_for_a_lock

USDX = 10**6


async def approve(payout_env, to_address=None, **fields):
    body = {"chain": "memory", "address": to_address or person("safe"), **fields}
    request = msgspec.convert(body, ApprovalRequest)
    registry, merchant = payout_env.payment_env.registry, payout_env.live.merchant_pk
    async with payout_env.db.transaction() as conn:
        address = await approved_addresses.check(conn, registry, merchant, request, live=True)
        return await approved_addresses.approve(
            conn, merchant, request, address, payout_env.ids, payout_env.clock.now()
        )


async def rule(payout_env, threshold="100", to_address=None, symbol="USDX", **fields):
    """Send what is above the threshold to the safe."""
    patch = {
        "autopayoutPolicy": "limit",
        "autopayoutThreshold": threshold,
        "autopayoutAddress": to_address or person("safe"),
        **fields,
    }
    async with payout_env.db.transaction() as conn:
        return await coin_settings.change_settings(
            conn,
            payout_env.payment_env.registry,
            payout_env.live,
            Coin(chain="memory", token=symbol),
            msgspec.convert(patch, CoinPatch),
            payout_env.clock.now(),
        )


async def run(payout_env):
    return await auto_payout.run(payout_env.db, payout_env.context, payout_env.payment_env.rates, Hints(None))


async def payouts(payout_env):
    async with payout_env.db.transaction() as conn:
        page = await list_payouts(conn, payout_env.live.project_pk, Part(limit=100))
    return page.items


@pytest.fixture
async def ruled(payout_env):
    await approve(payout_env)
    await rule(payout_env)
    return payout_env


async def test_what_is_above_the_threshold_is_sent_to_the_address(ruled):
    await ruled.fund(150 * USDX)
    assert await run(ruled) == 1
    (payout,) = await payouts(ruled)
    assert (payout.kind, payout.units, payout.to_address) == ("auto_payout", 50 * USDX, person("safe"))
    assert await ruled.balances() == {
        "available": 100 * USDX,
        "pending": 50 * USDX,
        "custody_wallet": 150 * USDX,
    }
    assert await run(ruled) == 0


async def test_an_event_says_that_the_payout_was_made_by_itself(ruled):
    await ruled.fund(150 * USDX)
    await run(ruled)
    (payout,) = await payouts(ruled)
    for happened in ("broadcast", "final"):
        await ruled.happens(happened, payout)
    ((event, data),) = await ruled.events(payout.payout_id)
    assert (event, data["kind"], data["amount"]) == ("payout.completed", "auto_payout", "50")


async def test_at_the_threshold_nothing_is_sent(ruled):
    await ruled.fund(100 * USDX)
    assert await run(ruled) == 0


async def test_what_is_not_worth_a_collection_waits_until_it_is(ruled):
    await ruled.fund(104 * USDX)
    assert await run(ruled) == 0
    await ruled.fund(1 * USDX)
    assert await run(ruled) == 1


async def test_without_a_price_everything_above_the_threshold_is_sent(ruled):
    ruled.payment_env.prices.board.clear()
    await ruled.fund(100 * USDX + 1)
    assert await run(ruled) == 1


async def test_the_next_waits_until_the_one_before_has_ended(ruled):
    await ruled.fund(150 * USDX)
    await run(ruled)
    await ruled.fund(30 * USDX)
    assert await run(ruled) == 0
    (first,) = await payouts(ruled)
    await ruled.happens("broadcast", first)
    assert await run(ruled) == 0
    await ruled.happens("final", first)
    assert await run(ruled) == 1
    assert [payout.units for payout in await payouts(ruled)] == [30 * USDX, 50 * USDX]


async def test_many_workers_at_once_send_it_once(ruled):
    await ruled.fund(150 * USDX)
    assert sum(await asyncio.gather(*(run(ruled) for _ in range(16)))) == 1
    assert len(await payouts(ruled)) == 1


async def test_the_threshold_stays_where_something_else_is_paid_while_it_is_made(ruled):
    await ruled.fund(150 * USDX)
    request = PayoutRequest(chain="memory", token="USDX", amount="40", to_address=person())
    async with ruled.db.transaction() as conn:
        await create_payout(conn, ruled.context, ruled.live, request, None)
        running = asyncio.create_task(run(ruled))
        await waits_for_a_lock(conn, running)
    assert await running == 0
    assert (await ruled.balances())["available"] == 110 * USDX
    assert await run(ruled) == 1
    assert (await ruled.balances())["available"] == 100 * USDX


async def test_it_stops_when_the_approval_is_taken_back(payout_env):
    approved = await approve(payout_env)
    await rule(payout_env)
    await payout_env.fund(150 * USDX)
    async with payout_env.db.transaction() as conn:
        await approved_addresses.withdraw_approval(
            conn, payout_env.live.merchant_pk, approved.approval_id, payout_env.clock.now()
        )
    assert await run(payout_env) == 0
    async with payout_env.db.autocommit() as conn:
        found = await coin_settings.list_coins(
            conn, payout_env.payment_env.registry, payout_env.live.merchant_pk, "live"
        )
    assert {coin.autopayout_policy for coin in found} == {"off"}


async def test_limits_of_the_operator_cut_it_into_pieces(ruled):
    await ruled.settings(limits={"memory/USDX": {"perTransaction": "20", "perDay": "30"}})
    await ruled.fund(150 * USDX)
    for units in (20, 10):
        assert await run(ruled) == 1
        newest = (await payouts(ruled))[0]
        assert newest.units == units * USDX
        await ruled.happens("final", newest, tx_id=newest.payout_id)
    assert await run(ruled) == 0


@pytest.mark.parametrize(
    "settings",
    [{"payoutEnabled": False}, {"cpt": {"floor": 0, "initialAllowance": 0}}, {"allowedAddresses": {"memory": []}}],
)
async def test_what_the_operator_does_not_allow_is_tried_again_later(ruled, settings):
    await ruled.fund(150 * USDX)
    if "cpt" in settings:
        await ruled.queue("payout", 1 * USDX)
        await ruled.fund(1 * USDX)
    await ruled.settings(**settings)
    assert await run(ruled) == 0
    await ruled.settings(payoutEnabled=True, cpt={"floor": -1_000_000}, allowedAddresses={})
    assert await run(ruled) == 1


async def test_a_coin_that_is_not_enabled_is_not_sent(ruled):
    await ruled.fund(150 * USDX)
    async with ruled.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE coin_settings SET enabled = false")
    assert await run(ruled) == 0


async def test_an_address_is_approved_once_and_is_checked(payout_env):
    first = await approve(payout_env, label="Safe")
    again = await approve(payout_env, label="The safe")
    assert (again.approval_id, again.label) == (first.approval_id, "The safe")
    with pytest.raises(InvalidError) as error:
        await approve(payout_env, "nowhere")
    assert error.value.code == "INVALID_ADDRESS"
    with pytest.raises(NotFoundError):
        async with payout_env.db.transaction() as conn:
            await approved_addresses.withdraw_approval(
                conn, payout_env.live.merchant_pk, "apa_x", payout_env.clock.now()
            )


async def test_approved_addresses_are_limited(payout_env, monkeypatch):
    monkeypatch.setattr(approved_addresses, "ADDRESSES_MAX", 2)
    for name in ("a", "b"):
        await approve(payout_env, person(name))
    with pytest.raises(ConflictError) as error:
        await approve(payout_env, person("c"))
    assert error.value.code == "TOO_MANY_APPROVED_ADDRESSES"
    assert (await approve(payout_env, person("a"), label="again")).label == "again"


async def codes(payout_env):
    async with payout_env.db.autocommit() as conn:
        coins = await coin_settings.list_coins(
            conn, payout_env.payment_env.registry, payout_env.live.merchant_pk, payout_env.live.mode
        )
    coins = [coin for coin in coins if (coin.chain, coin.token.symbol) == ("memory", "USDX")]
    rates = payout_env.payment_env.rates
    (coin,) = await explain(payout_env.db, payout_env.context, rates, payout_env.live, coins)
    return [reason.code for reason in coin.reasons]


async def test_every_reason_why_nothing_is_paid_out_is_told_and_none_where_it_is_about_to(payout_env):
    assert await codes(payout_env) == [], "there is no policy"
    await approve(payout_env)
    await rule(payout_env)
    assert await codes(payout_env) == ["BELOW_THRESHOLD"]
    await payout_env.fund(101 * USDX)
    await payout_env.settings(collection={"minValueUsd": "5"})
    assert (await codes(payout_env), await run(payout_env)) == (["BELOW_MINIMUM"], 0)
    await payout_env.fund(49 * USDX)
    assert await codes(payout_env) == []
    await payout_env.settings(payoutEnabled=False)
    assert (await codes(payout_env), await run(payout_env)) == (["PAYOUT_DISABLED"], 0)
    await payout_env.settings(payoutEnabled=True, allowedAddresses={"memory": [person("else")]})
    assert (await codes(payout_env), await run(payout_env)) == (["TARGET_NOT_ALLOWED"], 0)
    await payout_env.settings(allowedAddresses={}, limits={"memory/USDX": {"minimum": "50.000001"}})
    assert (await codes(payout_env), await run(payout_env)) == (["PAYOUT_BELOW_MINIMUM"], 0)
    await payout_env.settings(allowedAddresses={}, limits={"memory/USDX": {"minimum": "50", "perDay": "50"}})
    assert (await codes(payout_env), await run(payout_env)) == ([], 1)
    assert await codes(payout_env) == ["PAYOUT_UNDER_WAY", "PAYOUT_LIMIT_EXCEEDED", "BELOW_THRESHOLD"]


async def test_the_policy_alone_pays_all_to_the_one_approved_address(payout_env):
    nothing_said = {"autopayoutThreshold": None, "autopayoutAddress": None}
    with pytest.raises(InvalidError, match="0 are"):
        await rule(payout_env, **nothing_said)
    await approve(payout_env)
    coin = await rule(payout_env, **nothing_said)
    assert (coin.autopayout_threshold, coin.autopayout_address) == (0, person("safe"))
    await payout_env.fund(150 * USDX)
    assert await run(payout_env) == 1
    assert await payout_env.balances() == {"pending": 150 * USDX, "custody_wallet": 150 * USDX}
    await approve(payout_env, person("cold"))
    with pytest.raises(InvalidError, match="2 are"):
        await rule(payout_env, **nothing_said)


async def test_nothing_is_paid_out_for_a_merchant_that_is_suspended(payout_env):
    await payout_env.fund(150 * USDX)
    await approve(payout_env)
    await rule(payout_env)
    await suspend(payout_env)
    assert await run(payout_env) == 0
    await suspend(payout_env, again=True)
    assert await run(payout_env) == 1


@pytest.mark.parametrize("use", ["run", "explain"])
async def test_what_many_coins_are_worth_is_one_question_to_the_price_sources(ruled, monkeypatch, use):
    await rule(ruled, symbol="MEM", threshold="1")
    await ruled.fund(150 * USDX)
    await ruled.fund(9 * 10**18, symbol="MEM")
    env, asked = ruled.payment_env, []
    answer = env.prices.prices

    async def prices(pairs):
        asked.append(set(pairs))
        return await answer(pairs)

    monkeypatch.setattr(env.prices, "prices", prices)
    if use == "run":
        assert await run(ruled) == 2
    else:
        async with ruled.db.autocommit() as conn:
            coins = await coin_settings.list_coins(conn, env.registry, ruled.live.merchant_pk, ruled.live.mode)
        told = await explain(ruled.db, ruled.context, env.rates, ruled.live, coins)
        assert [coin.settings for coin in told] == list(coins)
    assert asked == [{("MEM", "usd"), ("USDX", "usd")}]


async def suspend(env, *, again=False):
    """Suspend every merchant, or let them go on ``again``."""
    values = (None, None) if again else (env.clock.now(), "chargebacks")
    async with env.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE merchants SET suspended_at = $1, suspension_reason = $2", values)
