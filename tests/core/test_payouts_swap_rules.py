"""Which payouts with a swap are refused, by which code, in which order; and what the signer makes of the others."""

from fractions import Fraction

import pytest
from msgspec import structs

from cambist.plugin import Units
from cambist.services.errors import ServiceError
from cambist.services.payouts import with_swap
from cambist.services.payouts.coin_settings import Coin, EnabledCoins, replace_enabled
from cambist.services.payouts.create import create_payout
from cambist.services.payouts.requests import PayoutRequest
from cambist.services.payouts.signer_learning import Learner
from cambist.signer.exchanges import ExchangeReader
from cambist.signer.local import LocalSigner
from cambist.signer.reading import Reader
from cambist.signer.rules import AskerRules, Rules
from cambist.signer.store import Store
from cambist.testing.memory.family import spell
from tests.support.exchanges import FairReader
from tests.support.payout_env import person
from tests.support.swap_payouts import SwapPayouts

USDX, MEM = 10**6, 10**18
HOUR_S = 3_600
ACROSS = {"chain": "other", "token": "USDX"}
MODE = "INVALID_PAYOUT_MODE"


@pytest.fixture
async def env(db, clock, ids, tmp_path):
    async with SwapPayouts(db, clock, ids, tmp_path / "signer") as env:
        await env.opened(usdx=200 * USDX)
        await env.decide(payoutSwapEnabled=True)
        yield env


async def code_of(env, **fields):
    with pytest.raises(ServiceError) as error:
        await env.pay(**fields)
    async with env.db.autocommit() as conn:
        statement = "SELECT (SELECT count(*) FROM payouts) + (SELECT count(*) FROM exchanges)"
        left = (await conn.exec_driver_sql(statement)).scalar_one()
    assert left == 0
    assert (await env.balance_of("memory", "USDX")).available == 200 * USDX
    return error.value.code


def without_contracts(env, chain):
    env.registry.chains[chain] = structs.replace(env.registry.chains[chain], runs_contracts=False)


async def enable_only(env, *coins):
    wanted = EnabledCoins(coins=[Coin(chain=chain, token=token) for chain, token in coins])
    async with env.db.transaction() as conn:
        await replace_enabled(conn, env.registry, env.actor, wanted, env.clock.now())


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"amount": "1"}, MODE),
        ({"amount": "1", "srcChain": None, "srcToken": None}, MODE),
        ({"srcChain": None}, MODE),
        ({"srcToken": None}, MODE),
        ({"srcAmount": None}, MODE),
        ({"srcAmount": None, "amount": "1"}, MODE),
        ({"srcChain": "nowhere"}, "UNSUPPORTED_CHAIN"),
        ({"chain": "nowhere"}, "UNSUPPORTED_CHAIN"),
        ({"srcToken": "usdx"}, "TOKEN_NOT_ENABLED"),
        ({"token": "BTC"}, "TOKEN_NOT_ENABLED"),
        ({"token": "USDX"}, "VALIDATION_ERROR"),
        ({"slippage": 50.01}, "VALIDATION_ERROR"),
        ({"slippage": -1}, "VALIDATION_ERROR"),
        ({"toAddress": "0x" + "11" * 20}, "INVALID_ADDRESS"),
        ({"toAddress": spell(bytes(20))}, "INVALID_ADDRESS"),
        ({"toTag": "7"}, "TAG_NOT_SUPPORTED"),
        ({"srcAmount": "0"}, "INVALID_AMOUNT"),
        ({"srcAmount": "1.0000001"}, "INVALID_AMOUNT"),
        ({"srcAmount": "200.000001"}, "INSUFFICIENT_BALANCE"),
    ],
)
async def test_what_cannot_be_meant_is_refused_and_moves_nothing(env, fields, code):
    assert await code_of(env, **fields) == code


async def test_the_codes_come_in_the_order_of_the_specification(env):
    """Everything is wrong at once, and is put right rule by rule."""
    without_contracts(env, "other")
    await enable_only(env, ("memory", "MEM"))
    await env.decide(payoutSwapEnabled=False, payoutEnabled=False)
    wrong = {"chain": "other", "token": "USDX", "toAddress": "nowhere"}
    assert await code_of(env, **wrong, amount="1") == MODE
    assert await code_of(env, **wrong) == "TOKEN_NOT_ENABLED"
    await enable_only(env, ("memory", "USDX"))
    assert await code_of(env, **wrong) == "TOKEN_NOT_ENABLED", "both of them must be"
    await enable_only(env, ("memory", "USDX"), ("other", "USDX"))
    assert await code_of(env, **wrong) == "SWAP_NOT_SUPPORTED_FOR_CHAIN"
    env.registry.chains["other"] = structs.replace(env.registry.chains["other"], runs_contracts=True)
    assert await code_of(env, **wrong) == "SWAP_IN_PAYOUT_DISABLED"
    await env.decide(payoutSwapEnabled=True)
    assert await code_of(env, **wrong) == "PAYOUT_DISABLED"
    await env.decide(payoutEnabled=True)
    assert await code_of(env, **wrong) == "INVALID_ADDRESS"


@pytest.mark.parametrize("chain", ["memory", "other"])
async def test_a_chain_that_runs_no_contracts_is_neither_source_nor_destination(env, chain):
    without_contracts(env, chain)
    assert await code_of(env, **ACROSS) == "SWAP_NOT_SUPPORTED_FOR_CHAIN"


async def test_the_own_wallet_and_contracts_of_tokens_are_no_recipients(env):
    for fields in ({}, ACROSS):
        assert await code_of(env, toAddress=env.wallet.address, **fields) == "INVALID_ADDRESS"
        assert await code_of(env, toAddress=env.asset_of("memory", "USDX").token.contract, **fields) == (
            "TARGET_IS_CONTRACT"
        )


@pytest.mark.parametrize("kind, fields, code", [("swap", {}, "SWAP_DISABLED"), ("bridge", ACROSS, "BRIDGE_DISABLED")])
async def test_what_the_operator_has_switched_off_for_exchanges_is_off_for_payouts(env, kind, fields, code):
    await env.decide(exchanges={f"{kind}Enabled": False})
    assert await code_of(env, **fields) == code


async def test_an_offer_that_was_judged_by_another_guard_is_not_taken(env):
    wanted = await env.want()
    offer = await with_swap.find_offer(env.context, wanted)
    await env.decide(exchanges={"priceGuardBps": 40})
    with pytest.raises(ServiceError) as caught:
        async with env.db.transaction() as conn:
            await with_swap.start_payout(conn, env.context, wanted, offer)
    assert caught.value.code == "EXCHANGE_UNAVAILABLE"


async def test_used_up_credits_are_told_as_for_any_payout(env):
    await env.decide(cpt={"floor": 0})
    async with env.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO usage_records (merchant_pk, mode, operation, chain, reference, weight, created_at)"
            " VALUES ($1, 'live', 'payment', 'memory', 'pay_1', 1, now())",
            (env.merchant,),
        )
    assert await code_of(env) == "INSUFFICIENT_CPT"


@pytest.mark.parametrize(
    "limits, code, fields",
    [
        ({"memory/USDX": {"perTransaction": "59.999999"}}, "PAYOUT_LIMIT_EXCEEDED", ["srcAmount"]),
        ({"memory/USDX": {"perDay": "59.999999"}}, "PAYOUT_LIMIT_EXCEEDED", ["srcAmount"]),
        ({"memory/USDX": {"minimum": "60.000001"}}, "PAYOUT_BELOW_MINIMUM", ["srcAmount"]),
        ({"memory/MEM": {"perTransaction": "19.93"}}, "PAYOUT_LIMIT_EXCEEDED", []),
        ({"memory/MEM": {"perDay": "19.93"}}, "PAYOUT_LIMIT_EXCEEDED", []),
        ({"memory/MEM": {"minimum": "19.95"}}, "PAYOUT_BELOW_MINIMUM", []),
    ],
)
async def test_limits_of_both_tokens_hold_for_what_is_given_and_for_what_is_expected(env, limits, code, fields):
    await env.decide(limits=limits)
    with pytest.raises(ServiceError) as caught:
        await env.pay()
    assert (caught.value.code, [one.field for one in caught.value.details]) == (code, fields)


async def test_exactly_the_limits_of_both_tokens_are_allowed(env):
    given = {"perTransaction": "60", "perDay": "60", "minimum": "60"}
    paid = {"perTransaction": "19.94", "perDay": "19.94", "minimum": "19.94"}
    await env.decide(limits={"memory/USDX": given, "memory/MEM": paid})
    payout = await env.paid()
    assert payout.swap.quoted_units == 1_994 * MEM // 100
    with pytest.raises(ServiceError, match="within 24 hours"):
        await env.pay()


@pytest.mark.slow
async def test_a_day_counts_payouts_of_the_token_with_and_without_a_swap_until_they_fail(env):
    await env.decide(limits={"memory/USDX": {"perDay": "100"}})
    env.chain.accounts.refuses = "no luck today"
    first = await env.paid()
    with pytest.raises(ServiceError, match="within 24 hours"):
        await env.pay(srcAmount="40.000001")
    with pytest.raises(ServiceError, match="within 24 hours"):
        await plain(env, "40.000001")
    await plain(env, "40")
    await env.follow(first, rounds=400, seconds=20)
    assert (await env.read(first)).status == "failed"
    env.chain.accounts.refuses = None
    assert (await env.paid()).status == "requested"


async def plain(env, amount):
    request = PayoutRequest(chain="memory", token="USDX", to_address=person(), amount=amount)
    async with env.db.transaction() as conn:
        return await create_payout(conn, env.payouts, env.actor, request, None)


async def test_a_plain_payouts_key_makes_no_swap_and_a_swaps_no_plain_payout(env):
    request = PayoutRequest(chain="memory", token="USDX", to_address=person(), amount="1")
    async with env.db.transaction() as conn:
        await create_payout(conn, env.payouts, env.actor, request, "k")
    with pytest.raises(ServiceError, match="another content"):
        await env.pay("k")


@pytest.mark.parametrize(
    "listed, fields, allowed",
    [
        ({"memory": [person()]}, {}, True),
        ({"memory": [person("bob")]}, {}, False),
        ({"other": [person()]}, ACROSS, True),
        ({"other": [person("bob")]}, ACROSS, False),
        ({"memory": [person()]}, ACROSS, False),
        ({"memory": [person("bob")], "other": [person()]}, ACROSS, True),
        ({"other": [person("bob")]}, {}, True),
    ],
)
async def test_allow_lists_hold_where_it_is_paid_and_are_not_left_by_way_of_another_chain(env, listed, fields, allowed):
    await env.decide(allowedAddresses=listed)
    if allowed:
        assert (await env.paid(**fields)).status == "requested"
    else:
        assert await code_of(env, **fields) == "TARGET_NOT_ALLOWED"


async def test_the_slippage_that_was_asked_for_bounds_what_is_promised(env):
    wanted = await env.want(slippage=0.5)
    assert isinstance(wanted, with_swap.Wanted)
    assert (await env.start(wanted)).resource.units == 1_994 * MEM // 100 * 9_950 // 10_000


def sign_by(env, **rules):
    """Have another signer sign, whose operator has floor rates for both pairs."""
    names = {name: env.asset_of(*name.split("/")).token.contract for name in ("memory/USDX", "other/USDX")}
    usdx, there = f"memory/{names['memory/USDX']}", f"other/{names['other/USDX']}"
    native = "memory/native"
    floors = {(usdx, native): Fraction(3 * 10**17, USDX), (usdx, there): Fraction(9, 10)}
    found = Rules(floor_rates=floors, **rules)
    readers = ExchangeReader([FairReader()], env.registry.chains, found.floor_rates)
    env.signer = LocalSigner(
        env.keystore,
        Reader(env.keystore, env.registry.families, env.registry.chains, readers),
        rules=found,
        store=Store(env.folder.with_name("another signer")),
        clock=env.clock,
    )
    env._stack.push_async_callback(env.signer.aclose)
    env.engines = {name: env.engine_of(name) for name in env.engines}


async def waits(env, rounds=15):
    """Return why the exchange is not signed after a while."""
    for _ in range(rounds):
        await env.tick()
        await env.mine()
    async with env.db.autocommit() as conn:
        statement = "SELECT state, reason FROM outbound_intents WHERE kind IN ('swap', 'bridge')"
        found = await conn.exec_driver_sql(statement)
        return tuple(found.one())


@pytest.mark.slow
@pytest.mark.parametrize("fields", [{}, ACROSS])
async def test_the_signer_lets_a_strangers_address_wait_and_learns_of_it_by_the_payout(env, fields):
    sign_by(env, fresh_address_delay_s=HOUR_S)
    await env.decide(exchanges={"validMinutes": 90})
    payout = await env.paid(**fields)
    async with env.db.transaction() as conn:
        # A person in person: such addresses are told early.
        await conn.exec_driver_sql("UPDATE payouts SET asked_by = 'session'")
        await conn.exec_driver_sql("UPDATE outbound_intents SET asked_by = 'session' WHERE kind IN ('swap', 'bridge')")
    async with env.db.autocommit() as conn:
        assert await Learner(env.signer).learn(conn) == 1
    assert await waits(env) == ("waiting", "signer: TARGET_TOO_FRESH")
    assert (await env.read(payout)).status == "processing"
    env.clock.advance(HOUR_S)
    sent = await env.follow(payout, until="sent", rounds=100, seconds=5)
    assert sent.status == "broadcast"


@pytest.mark.slow
async def test_a_payout_waits_for_the_signers_delay_however_long_and_is_made_at_what_was_promised(env):
    sign_by(env, fresh_address_delay_s=24 * HOUR_S)
    await env.decide(exchanges={"validMinutes": 30})
    payout = await env.paid()
    assert await waits(env) == ("waiting", "signer: TARGET_TOO_FRESH")
    env.clock.advance(23 * HOUR_S)
    assert await waits(env) == ("waiting", "signer: TARGET_TOO_FRESH")
    env.clock.advance(HOUR_S)
    assert (await env.follow(payout, rounds=100, seconds=5)).status == "completed"


@pytest.mark.slow
async def test_a_payout_whose_price_is_gone_after_the_signers_delay_fails_in_time(env):
    sign_by(env, fresh_address_delay_s=24 * HOUR_S)
    await env.decide(exchanges={"validMinutes": 30})
    payout = await env.paid()
    assert await waits(env) == ("waiting", "signer: TARGET_TOO_FRESH")
    env.swap_service.fee_bps = 3_000
    env.clock.advance(24 * HOUR_S)
    assert (await env.follow(payout, seconds=100)).status == "failed"
    assert (await env.balance_of("memory", "USDX")).available == 200 * USDX


@pytest.mark.slow
async def test_the_signers_allow_list_and_caps_hold_for_what_a_swap_takes(env):
    sign_by(env, allowed_addresses={"memory": frozenset({person("bob")})})
    payout = await env.paid()
    state, reason = await waits(env)
    assert (state, reason) == ("waiting", "signer: TARGET_NOT_ALLOWED")
    assert (await env.read(payout)).status == "processing"


@pytest.mark.slow
async def test_the_signers_cap_counts_a_swap_to_somebody_as_money_that_leaves(env):
    usdx = f"memory/{env.asset_of('memory', 'USDX').token.contract}"
    sign_by(env, hourly_caps={usdx: Units(60 * USDX)}, askers={"key": AskerRules()})
    first, second = await env.paid(), await env.paid()
    await env.follow(first, rounds=200)
    for _ in range(15):
        await env.tick()
        await env.mine()
    assert ((await env.read(first)).status, (await env.read(second)).status) == ("completed", "processing")
