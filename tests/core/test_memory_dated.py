"""The chain in memory whose transactions expire, beyond what the kit asks: activation, stakes, prices, its plugin."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cambist.plugin import Dated, Intent, PluginContext, Staking, UnreadablePayloadError
from cambist.testing.conformance.sends import funded, mined, planned, prepared, sealed, signed, told
from cambist.testing.memory import MemoryConfig, MemoryFamily, MemoryHarness, MemoryLendingChain, MemoryPlugin
from cambist.testing.memory.fees import NATIVE_WORK, STAKING_WORK, TOKEN_LIMIT, TOKEN_WORK
from cambist.testing.memory.harness import COIN
from cambist.testing.memory.payload import DatedPayload, write_payload
from cambist.testing.memory.rules import LIFETIME_MAX_S

AMOUNT = 1_234
FAMILY = MemoryFamily()


@pytest.fixture
def harness():
    return MemoryHarness.lending()


@pytest.fixture
def chain(harness) -> MemoryLendingChain:
    return harness.memory


@pytest.fixture
async def sender(harness):
    return await funded(harness)


@pytest.fixture
async def tx(harness, sender):
    return await signed(harness, sender, await planned(harness, sender, harness.chain.info.native, AMOUNT))


def staking(sponsor, action, to_address, amount, chain) -> Intent:
    return Intent(source=sponsor.address, to_address=to_address, token=chain.info.native, amount=amount, action=action)


async def act(harness, sponsor, action, to_address, amount):
    (plan,) = await harness.chain.plan(
        [staking(sponsor, action, to_address, amount, harness.chain)], sponsor=sponsor.address
    )
    return await mined(harness, await signed(harness, sponsor, plan.step))


async def test_a_block_holds_it_up_to_its_time_and_not_a_second_later(harness, chain, sender):
    step = await planned(harness, sender, chain.info.native, AMOUNT)
    for late, expected in ((0, "succeeded"), (1, "unknown")):
        unsigned = await prepared(harness, sender, step)
        transaction = sealed(harness, unsigned, sender)
        assert (await told(harness, transaction)).state == "accepted"
        chain.mine(time=unsigned.valid_until + late)
        assert (await chain.transaction(transaction.tx_id)).state == expected


async def test_what_expires_too_late_is_refused(harness, chain, sender):
    unsigned = await prepared(harness, sender, await planned(harness, sender, chain.info.native, AMOUNT))
    payload = msgspec.json.decode(unsigned.payload, type=DatedPayload)
    eternal = replace(payload, valid_until=chain.seen_time() + LIFETIME_MAX_S + 1)
    answer = await told(harness, sealed(harness, replace(unsigned, payload=write_payload(eternal)), sender))
    assert answer.state == "rejected"


async def test_a_forgotten_transaction_can_be_sent_again_in_its_time(harness, chain, tx):
    chain.faults.forgotten_txs = 1
    await mined(harness, tx)
    assert (await chain.transaction(tx.tx_id)).state == "unknown"
    assert (await mined(harness, tx)).state == "succeeded"
    assert (await told(harness, tx)).state == "accepted"


async def test_nothing_is_dead_where_the_endpoint_has_not_seen_its_last_block(harness, chain, tx):
    dated = Dated(tx_id=tx.tx_id, valid_until=chain.seen_time())
    chain.mine(7)
    chain.faults.lag_blocks = 6
    assert await chain.expired([dated]) == [False]
    chain.faults.lag_blocks = 0
    assert await chain.expired([dated]) == [True]


async def test_a_sequence_is_none_of_its_business(harness, chain, sender):
    step = await planned(harness, sender, chain.info.native, AMOUNT)
    assert await chain.next_sequence(sender.address) is None
    with pytest.raises(ValueError, match="sequence"):
        await chain.prepare([(step, 0)])
    with pytest.raises(ValueError, match="nothing is replaced"):
        await chain.outbid(step)


async def test_the_two_kinds_of_chains_refuse_each_others_transactions(harness, sender, tx):
    numbered = MemoryHarness()
    other = await funded(numbered)
    foreign = await signed(numbered, other, await planned(numbered, other, numbered.chain.info.native, AMOUNT))
    assert (await told(harness, foreign)).state == "rejected"
    assert (await told(numbered, tx)).state == "rejected"


async def test_a_risen_price_makes_it_fail_and_costs_what_was_offered(harness, chain, sender):
    step = await planned(harness, sender, chain.info.native, AMOUNT)
    chain.fees.base_price *= 2
    status = await mined(harness, await signed(harness, sender, step))
    assert status.state == "reverted"
    assert 0 < status.fee <= step.fee.limit * step.fee.price


async def test_a_covered_fee_is_not_paid_and_the_rest_is(harness, chain):
    sponsor = await harness.sponsor()
    token = chain.info.tokens[1]
    borrower = await harness.sender((chain.info.native, COIN), (token, 3 * AMOUNT))
    await act(harness, sponsor, "lend", borrower.address, 40_000 * chain.accounts.stakes.per_work)
    step = await planned(harness, borrower, token, AMOUNT)
    assert (step.fee.limit, step.fee.covered) == (TOKEN_LIMIT, 40_000)
    status = await mined(harness, await signed(harness, borrower, step))
    assert status.fee == (TOKEN_WORK - 40_000) * chain.fees.flat_price
    assert (await planned(harness, borrower, token, AMOUNT)).fee.covered == 0


async def test_the_use_of_a_loan_goes_back_with_it_and_recovers_evenly(harness, chain):
    sponsor = await harness.sponsor()
    per_work = chain.accounts.stakes.per_work
    borrower = await harness.sender((chain.info.native, COIN), (chain.info.tokens[1], AMOUNT))
    await act(harness, sponsor, "lend", borrower.address, TOKEN_LIMIT * per_work)
    await mined(
        harness, await signed(harness, borrower, await planned(harness, borrower, chain.info.tokens[1], AMOUNT))
    )
    await act(harness, sponsor, "reclaim", borrower.address, TOKEN_LIMIT * per_work)
    used = TOKEN_WORK + 2 * STAKING_WORK
    held = await chain.stake(sponsor.address)
    assert held.staked - held.lendable == pytest.approx(used * per_work, rel=1e-3)
    chain.mine(time=chain.seen_time() + chain.rules.recovery_s // 2)
    held = await chain.stake(sponsor.address)
    assert held.staked - held.lendable == pytest.approx(used * per_work // 2, rel=1e-3)


async def test_nothing_is_lent_to_who_is_not_activated(harness, chain):
    sponsor, stranger = await harness.sponsor(), harness.fresh_address()
    intent = staking(sponsor, "lend", stranger, COIN // 100, chain)
    (plan,) = await chain.plan([intent], sponsor=sponsor.address)
    assert "not activated" in plan.refused
    chain.transfer(chain.info.native, stranger, 1)
    chain.mine()
    (plan,) = await chain.plan([intent], sponsor=sponsor.address)
    assert plan.refused is None


async def test_a_node_takes_nothing_that_goes_beyond_a_stake(harness, chain):
    sponsor = await harness.sponsor()
    borrower = await harness.sender((chain.info.native, COIN))
    (plan,) = await chain.plan([staking(sponsor, "lend", borrower.address, 10**15, chain)], sponsor=sponsor.address)
    for action in ("lend", "reclaim", "unstake", "withdraw"):
        step = replace(plan.step, action=action, amount=10**30)
        assert (await told(harness, await signed(harness, sponsor, step))).state == "rejected"
    stake = replace(plan.step, action="stake", to_address=sponsor.address, amount=10**30)
    assert (await told(harness, await signed(harness, sponsor, stake))).state == "unfunded"


async def test_a_reorg_takes_back_loans_stakes_and_activation(harness, chain):
    sponsor = await harness.sponsor()
    borrower = await harness.sender((chain.info.tokens[1], AMOUNT))
    before = await chain.stake(sponsor.address)
    chain.transfer(chain.info.native, borrower.address, 1)
    chain.mine()
    await act(harness, sponsor, "lend", borrower.address, COIN // 100)
    await act(harness, sponsor, "stake", sponsor.address, COIN)
    await act(harness, sponsor, "unstake", sponsor.address, COIN // 100)
    chain.reorg(4)
    assert await chain.stake(sponsor.address) == before
    assert (await planned(harness, borrower, chain.info.tokens[1], AMOUNT)).fee.reserve == 1


async def test_a_token_cannot_be_staked(chain):
    payload = DatedPayload(
        chain="memory",
        valid_until=1,
        serial=1,
        action="stake",
        contract=None,
        recipient=FAMILY.derive_address("xpubForTheTestsOfSending", 0, 0),
        amount=1,
        limit=1,
        price=1,
        extra=0,
    )
    effects = FAMILY.effects(chain.info, write_payload(payload))
    assert (effects.staking, effects.fee_max) == (Staking(action="stake", amount=1), 1)
    with pytest.raises(UnreadablePayloadError):
        FAMILY.effects(chain.info, write_payload(replace(payload, contract=chain.info.tokens[1].contract)))


async def test_the_plugin_makes_the_chain_that_its_rules_describe():
    config = msgspec.convert(
        {
            "chains": {
                "numbered": {},
                "dated": {"rules": {"lifetime_s": 30}},
                "lending": {"rules": {"stake_per_work": 10, "activation_price": 5}},
            }
        },
        MemoryConfig,
    )
    context = PluginContext(
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC), monotonic=lambda: 0.0, random=Random(1), user_agent="tests"
    )
    async with MemoryPlugin().connect(config, context) as (numbered, dated, lending):
        kinds = [isinstance(chain, MemoryLendingChain) for chain in (numbered, dated, lending)]
        assert kinds == [False, False, True]
        assert [numbered.rules, dated.rules.lifetime_s, lending.rules.activation_price] == [None, 30, 5]


@pytest.mark.slow
@given(st.integers(0, 2**32))
async def test_whatever_happens_no_unit_is_made_or_lost(seed):
    """Random transfers, loans, stakes, drops, waits and reorgs: what all hold and stake is what came less fees."""
    chance, harness = Random(seed), MemoryHarness.lending()
    chain, sponsor = harness.memory, await harness.sponsor()
    borrower = await harness.sender((chain.info.native, COIN))
    everybody = (sponsor.address, borrower.address, harness.fresh_address())
    start, funded_at = await worth(chain, everybody), chain.height
    for _ in range(25):
        amount = chance.choice((1, COIN // 100, COIN // 10, COIN))
        match chance.randrange(7):
            case 0 | 1 | 2:
                action = chance.choice(("lend", "reclaim", "stake", "unstake", "withdraw"))
                to_address = borrower.address if action in ("lend", "reclaim") else sponsor.address
                await attempt(harness, sponsor, staking(sponsor, action, to_address, amount, chain))
            case 3:
                wanted = Intent(
                    source=borrower.address, to_address=everybody[2], token=chain.info.native, amount=amount // 10 + 1
                )
                await attempt(harness, borrower, wanted)
            case 4 if chain.height > funded_at:
                chain.reorg(chance.randrange(1, chain.height - funded_at + 1))
            case 5:
                chain.faults.forgotten_txs = chance.randrange(2)
            case _:
                chain.mine(time=chain.seen_time() + chance.choice((1, 30, 10**5, 10**7)))
    burned = sum(fee for block in chain.seen()[funded_at + 1 :] for fee in block.fees.values())
    assert await worth(chain, everybody) == start - burned
    held = await chain.stake(sponsor.address)
    assert held.lent == chain.accounts.stakes.loan(sponsor.address, borrower.address)
    assert 0 <= held.lent <= held.staked
    assert held.lendable <= held.staked - held.lent


async def attempt(harness, sender, intent) -> None:
    (plan,) = await harness.chain.plan([intent], sponsor=sender.address)
    if plan.step is not None:
        await told(harness, await signed(harness, sender, plan.step))


async def worth(chain, addresses) -> int:
    held = sum([await chain.balance(address, chain.info.native) for address in addresses])
    return held + sum([(await chain.stake(address)).total for address in addresses])


async def test_a_native_transfer_takes_its_work(harness, chain, sender):
    known = (await harness.sender((chain.info.native, 1))).address
    step = await planned(harness, sender, chain.info.native, AMOUNT, known)
    status = await mined(harness, await signed(harness, sender, step))
    assert status.fee == NATIVE_WORK * chain.fees.flat_price == step.fee.cost_max
