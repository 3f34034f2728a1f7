"""What would not arrive is neither asked for nor sent, whoever asks, and the refusal says how much would."""

from __future__ import annotations

import pytest

from cambist.domain.intents import IntentKind
from cambist.services.addresses.account_keys import register_gas_stations
from cambist.services.chains.rules import TokenRules
from cambist.services.errors import ConflictError, InvalidError
from cambist.services.payouts import minimums, withdrawals
from cambist.services.payouts.withdrawals import WithdrawalRequest
from cambist.services.pricing.quotes import Ask
from cambist.services.receiving.payments.quote import Asking, quote
from cambist.services.receiving.payments.recalculate import Recalculate, recalculate
from cambist.testing.memory import MemoryChain
from tests.support.payment_env import PaymentEnv, registry
from tests.support.payout_env import PayoutEnv, person
from tests.support.refunds import RefundEnv

COIN = 10**18
CHAINS = {"memory": {"chains": {"memory": {"least_units": COIN // 2}, "other": {}}}}


@pytest.fixture
async def payment_env(db, clock, ids):
    return await PaymentEnv(db, clock, ids, registry(CHAINS)).open()


@pytest.fixture
async def payout_env(payment_env):
    payout_env = PayoutEnv(payment_env)
    await payout_env.fund(100 * COIN, symbol="MEM")
    return payout_env


async def refused(awaitable, code, words):
    with pytest.raises(InvalidError, match=words) as error:
        await awaitable
    assert error.value.code == code


async def test_a_payment_asks_for_no_less_than_arrives_in_tokens_or_in_fiat(payment_env):
    words = r"at least 0\.5 MEM"
    await refused(payment_env.create(token="MEM", amount="0.499999"), "INVALID_AMOUNT", words)
    fiat = {"token": "MEM", "pricingMode": "fiat", "fiatCurrency": "usd"}
    await refused(payment_env.create(**fiat, amount="1.49"), "INVALID_AMOUNT", words)
    ask = Ask(chain="memory", token="MEM", pricing_mode="direct_crypto", amount="0.4")
    asking = Asking(chains=payment_env.registry.chains, token_rules=TokenRules(), pauses={}, rates=payment_env.rates)
    quoted = quote(asking, payment_env.live, ask, payment_env.clock.now())
    await refused(quoted, "INVALID_AMOUNT", words)
    assert (await payment_env.create(token="MEM", amount="0.5")).payment.expected_amount == "0.5"
    assert (await payment_env.create(**fiat, amount="1.50")).payment.expected_amount == "0.5"
    await payment_env.create(token="USDX", amount="0.000001")
    await payment_env.create(chain="other", token="MEM", amount="0.000001")


async def test_a_new_rate_that_would_ask_for_less_than_arrives_is_refused(payment_env):
    fiat = {"token": "MEM", "pricingMode": "fiat", "fiatCurrency": "usd", "amount": "1.50"}
    made = [(await payment_env.create(payment_env.test, **fiat)).payment.payment_id for _ in range(2)]
    await payment_env.deposit(made[1], amount="0.1")
    await payment_env.advance(3601)
    payment_env.prices.board["MEM", "usd"] = "6"
    payment_env.clock.advance(60)

    async def refresh(payment_id):
        async with payment_env.db.transaction() as conn:
            return await recalculate(
                conn, payment_env.test, payment_id, Recalculate(),
                chains=payment_env.registry.chains, rates=payment_env.rates, clock=payment_env.clock,
                ids=payment_env.ids, macs=payment_env.macs, token_rules=payment_env.context.token_rules,
            )  # fmt: skip

    with pytest.raises(ConflictError) as error:
        await refresh(made[0])
    assert error.value.code == "AMOUNT_TOO_SMALL"
    assert (await refresh(made[1])).expected_amount == "0.3", "an address that has received takes any amount"


async def test_no_kind_of_payout_sends_less_than_arrives_whatever_the_operators_minimum(payout_env):
    code, words = "PAYOUT_BELOW_MINIMUM", r"MEM on Memory \(memory\) is at least 0\.5\."
    for limits in ({}, {"memory/MEM": {"minimum": "0.1"}}):
        await payout_env.settings(limits=limits)
        await refused(payout_env.pay(token="MEM", amount="0.499"), code, words)
        body = {"project_id": "prj_live", "chain": "memory", "token": "MEM", "to_address": person()}
        async with payout_env.db.transaction() as conn:
            small = WithdrawalRequest(**body, amount="0.499")
            await refused(
                withdrawals.create_withdrawal(conn, payout_env.context, payout_env.live, small, None), code, words
            )
        rows = [{"toAddress": person(name), "amount": amount} for name, amount in (("ann", "0.499"), ("ben", "0.5"))]
        batch = await payout_env.pay_all(rows, token="MEM")
        assert [(one.row, one.code) for one in batch.rejected] == [(0, code)]
        await payout_env.pay(token="MEM", amount="0.5")
    await payout_env.settings(limits={"memory/MEM": {"minimum": "2"}})
    await refused(payout_env.pay(token="MEM", amount="1.9"), code, r"is at least 2\.")
    await payout_env.fund(1)
    await payout_env.queue(IntentKind.PAYOUT, 1)


async def test_a_refund_sends_no_less_than_arrives_and_needs_not_be_worth_its_fee(payment_env, payout_env):
    refund_env = RefundEnv(payment_env)
    await payout_env.settings(limits={"memory/MEM": {"minimum": "2"}})
    payment_id = await refund_env.paid("3", token="MEM", amount="3")
    words = r"A refund of MEM on Memory \(memory\) is at least 0\.5\."
    await refused(refund_env.refund(payment_id, amount="0.4"), "PAYOUT_BELOW_MINIMUM", words)
    assert (await refund_env.refund(payment_id, amount="0.5")).resource.amount == "0.5"


async def test_the_derived_minimum_is_of_a_transfer_that_arrives(payout_env, db, clock):
    info = payout_env.payment_env.registry.chains["memory"]
    chain, planned = MemoryChain(info), []
    plan = chain.plan

    async def noted(intents, **more):
        plans = await plan(intents, **more)
        planned.extend(zip(intents, plans, strict=True))
        return plans

    chain.plan = noted
    async with db.transaction() as conn:
        await register_gas_stations(conn, payout_env.context.keys, payout_env.payment_env.registry.families.values())
    await minimums.derive(db, payout_env.context.keys, chain.family, chain, clock.now())
    assert [one.amount for one, _ in planned] == [COIN // 2, 1, 1]
    assert [made.refused for _, made in planned] == [None] * 3
