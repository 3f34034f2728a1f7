"""Sending on the chain in memory beyond what the kit asks of every chain: faults, prices, stolen keys, real keys."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cambist.plugin import (
    ChainUnavailableError,
    FeeAboveCeilingError,
    InvalidAddressError,
    Span,
    UnreadablePayloadError,
)
from cambist.signer.keystore import Keystore
from cambist.testing import watching
from cambist.testing.conformance.sends import funded, mined, planned, signed, told
from cambist.testing.fixtures import TEST_MNEMONIC
from cambist.testing.harness import Sender
from cambist.testing.memory import MemoryChain, MemoryFamily, MemoryFees, MemoryHarness, Output, memory_chain_info
from cambist.testing.memory.family import spell
from cambist.testing.memory.fees import NATIVE_WORK, TOKEN_LIMIT, TOKEN_WORK
from cambist.testing.memory.payload import Payload, open_raw, write_payload

AMOUNT = 1_000
COIN = 10**18
FAMILY = MemoryFamily()


@pytest.fixture
def harness() -> MemoryHarness:
    return MemoryHarness()


@pytest.fixture
def chain(harness) -> MemoryChain:
    return harness.memory


@pytest.fixture
async def sender(harness) -> Sender:
    return await funded(harness, (harness.chain.info.tokens[1], 10 * AMOUNT))


@pytest.fixture
async def step(harness, sender):
    return await planned(harness, sender, harness.chain.info.native, AMOUNT)


@pytest.fixture
async def tx(harness, sender, step):
    return await signed(harness, sender, step)


async def state(chain, tx) -> str:
    return (await chain.transaction(tx.tx_id)).state


# Keys.


async def test_the_gateways_keys_sign_for_addresses_of_its_account_keys(harness, chain):
    keystore = Keystore(TEST_MNEMONIC)
    xpub = keystore.account_xpub("live", FAMILY.coin_type, 3)
    for change, index in ((0, 0), (1, 0), (0, 12_345)):
        key = keystore.private_key("live", FAMILY.coin_type, 3, change, index)
        owner = Sender(address=FAMILY.derive_address(xpub, change, index), private_key=key.secret)
        chain.transfer(chain.info.native, owner.address, COIN)
        chain.mine()
        step = await planned(harness, owner, chain.info.native, AMOUNT)
        assert (await mined(harness, await signed(harness, owner, step))).state == "succeeded"


def test_a_mistyped_account_key_leads_elsewhere():
    xpub = Keystore(TEST_MNEMONIC).account_xpub("live", FAMILY.coin_type, 0)
    typo = xpub[:-1] + ("a" if xpub[-1] != "a" else "b")
    assert FAMILY.derive_address(xpub, 0, 0) != FAMILY.derive_address(typo, 0, 0)


async def test_bytes_that_were_changed_on_the_way_move_nobodys_money(chain, sender, tx):
    for position in range(0, len(tx.raw), 7):
        changed = tx.raw[:position] + bytes((tx.raw[position] ^ 1,)) + tx.raw[position + 1 :]
        (answer,) = await chain.broadcast([replace(tx, raw=changed)])
        assert answer.state in ("rejected", "unfunded")
    assert len(chain.pool) == 0


@given(st.binary(max_size=300))
def test_no_bytes_are_a_payload_by_chance(raw):
    with pytest.raises(UnreadablePayloadError):
        FAMILY.effects(memory_chain_info(), raw)


PAYLOAD = Payload(
    chain="memory",
    sequence=1,
    contract=None,
    recipient=FAMILY.derive_address("xpubForTheTestsOfSending", 0, 0),
    amount=1,
    limit=1,
    price=2,
    tip=1,
)


@pytest.mark.parametrize(
    "change",
    [
        {"sequence": -1},
        {"amount": 2**256},
        {"tip": 3},
        {"recipient": "nobody"},
        {"recipient": PAYLOAD.recipient.upper()},
        {"contract": "anybody"},
    ],
    ids=str,
)
def test_a_senseless_payload_is_unreadable(change):
    assert FAMILY.effects(memory_chain_info(), write_payload(PAYLOAD)).fee_max == 2
    with pytest.raises((UnreadablePayloadError, InvalidAddressError)):
        FAMILY.effects(memory_chain_info(), write_payload(replace(PAYLOAD, **change)))


async def test_what_is_broadcast_can_be_read_back(tx, sender, chain):
    payload, key = open_raw(tx.raw)
    assert (payload.amount, spell(key)) == (AMOUNT, sender.address)


# Prices.


async def test_the_sender_pays_the_base_price_and_its_tip(harness, chain, sender, step):
    chain.fees.base_price = chain.fees.base_price * 3 // 2
    status = await mined(harness, await signed(harness, sender, step))
    assert status.fee == NATIVE_WORK * (chain.fees.base_price + chain.fees.tip)
    token_step = await planned(harness, sender, chain.info.tokens[1], AMOUNT)
    status = await mined(harness, await signed(harness, sender, token_step))
    assert token_step.fee.limit == TOKEN_LIMIT
    assert status.fee == TOKEN_WORK * (chain.fees.base_price + chain.fees.tip)


async def test_what_offers_less_than_the_base_price_waits(harness, chain, sender, step, tx):
    chain.fees.base_price *= 10
    await mined(harness, tx)
    assert await state(chain, tx) == "pending"
    dearer = await signed(harness, sender, replace(step, fee=await chain.outbid(step)))
    assert (await mined(harness, dearer)).state == "succeeded"
    assert await state(chain, tx) == "unknown"


async def test_a_waiting_transaction_is_mined_when_prices_fall(harness, chain, tx):
    chain.fees.base_price *= 10
    await mined(harness, tx)
    chain.fees.base_price //= 10
    chain.mine()
    assert await state(chain, tx) == "succeeded"


async def test_an_eighth_more_replaces_and_one_less_does_not(harness, chain, sender, step, tx):
    assert (await told(harness, tx)).state == "accepted"
    eighth = replace(step.fee, price=step.fee.price * 9 // 8, tip=step.fee.tip * 9 // 8)
    for fee, expected in [
        (replace(eighth, price=eighth.price - 1), "underpriced"),
        (replace(eighth, tip=eighth.tip - 1), "underpriced"),
        (eighth, "accepted"),
    ]:
        answer = await told(harness, await signed(harness, sender, replace(step, fee=fee)))
        assert answer.state == expected
    assert len(chain.pool) == 1


async def test_nodes_refuse_a_price_below_their_least(harness, chain, sender, step):
    fee = replace(step.fee, price=chain.fees.price_min - 1, tip=0)
    assert (await told(harness, await signed(harness, sender, replace(step, fee=fee)))).state == "underpriced"


async def test_nothing_is_planned_or_outbid_above_the_ceiling(harness, chain, sender, step):
    chain.fees.price_max = step.fee.price
    await planned(harness, sender, chain.info.native, AMOUNT)
    with pytest.raises(FeeAboveCeilingError):
        await chain.outbid(step)
    chain.fees.base_price += 1
    with pytest.raises(FeeAboveCeilingError):
        await planned(harness, sender, chain.info.native, AMOUNT)


async def test_a_legacy_chain_takes_the_whole_price():
    harness = MemoryHarness(MemoryChain(memory_chain_info(), fees=MemoryFees(legacy=True)))
    sender = await funded(harness)
    step = await planned(harness, sender, harness.chain.info.native, AMOUNT)
    assert step.fee.tip is None
    status = await mined(harness, await signed(harness, sender, step))
    assert status.fee == step.fee.cost_max


async def test_too_little_work_is_refused_or_fails_and_costs_all_of_it(harness, chain, sender, step):
    little = replace(step, fee=replace(step.fee, limit=NATIVE_WORK - 1))
    assert (await told(harness, await signed(harness, sender, little))).state == "rejected"
    token_step = await planned(harness, sender, chain.info.tokens[1], AMOUNT)
    fee = replace(token_step.fee, limit=TOKEN_WORK - 1)
    status = await mined(harness, await signed(harness, sender, replace(token_step, fee=fee)))
    assert (status.state, status.fee) == ("reverted", fee.limit * (chain.fees.base_price + chain.fees.tip))


async def test_all_that_waits_must_be_paid_for(harness, chain, sender, step):
    held = await chain.balance(sender.address, chain.info.native)
    half = replace(step, amount=held // 2)
    answers = [await told(harness, await signed(harness, sender, half, sequence)) for sequence in (0, 1)]
    assert [answer.state for answer in answers] == ["accepted", "unfunded"]


async def test_what_can_no_longer_be_paid_is_dropped(harness, chain, sender, step):
    held = await chain.balance(sender.address, chain.info.native)
    tx = await signed(harness, sender, replace(step, amount=held // 2), 1)
    assert (await told(harness, tx)).state == "accepted"
    chain.transfer(chain.info.native, chain.faucet, held * 3 // 4, sender=sender.address)
    chain.mine()
    assert await state(chain, tx) == "unknown"


# Faults.


async def test_a_forgotten_transaction_was_accepted_and_can_be_sent_again(harness, chain, tx):
    chain.faults.forgotten_txs = 1
    assert (await told(harness, tx)).state == "accepted"
    assert await state(chain, tx) == "unknown"
    assert (await mined(harness, tx)).state == "succeeded"


async def test_an_answer_can_be_lost_with_or_without_the_transaction(harness, chain, tx):
    chain.faults.lost_txs = 1
    assert (await told(harness, tx)).state == "unknown"
    assert await state(chain, tx) == "unknown"
    chain.faults.unanswered_txs = 1
    assert (await told(harness, tx)).state == "unknown"
    assert await state(chain, tx) == "pending"
    assert (await mined(harness, tx)).state == "succeeded"


async def test_a_share_of_all_transactions_is_dropped(harness, chain, sender, step):
    chain.faults.dropped_share = 0.25
    txs = [await signed(harness, sender, step, sequence) for sequence in range(400)]
    assert {answer.state for answer in await chain.broadcast(txs)} == {"accepted"}
    assert 250 < len(chain.pool) < 350


async def test_a_node_can_forget_what_waits(harness, chain, sender, step, tx):
    second = await signed(harness, sender, step, 1)
    await chain.broadcast([tx, second])
    chain.forget(second.tx_id)
    assert (await state(chain, tx), await state(chain, second)) == ("pending", "unknown")
    chain.forget()
    assert await state(chain, tx) == "unknown"


async def test_a_rejection_says_why(harness, chain, tx):
    chain.faults.rejection = "the node is in a mood"
    answer = await told(harness, tx)
    assert (answer.state, answer.reason) == ("rejected", "the node is in a mood")
    chain.faults.rejection = None
    assert (await mined(harness, tx)).state == "succeeded"


async def test_nothing_is_mined_while_mining_is_paused(harness, chain, tx):
    chain.faults.mining_paused = True
    await mined(harness, tx)
    assert await state(chain, tx) == "pending"
    chain.faults.mining_paused = False
    chain.mine()
    assert await state(chain, tx) == "succeeded"


async def test_one_kind_of_call_can_find_nobody(harness, chain, sender, step):
    chain.faults.unavailable_calls = {"plan", "broadcast"}
    with pytest.raises(ChainUnavailableError):
        await planned(harness, sender, chain.info.native, AMOUNT)
    tx = await signed(harness, sender, step)
    assert (await told(harness, tx)).state == "unknown"
    assert await state(chain, tx) == "unknown"


async def test_a_token_that_turned_against_a_recipient_fails_and_takes_the_fee(harness, chain, sender):
    token = chain.info.tokens[1]
    step = await planned(harness, sender, token, AMOUNT)
    chain.faults.refusing.add((token.contract, step.to_address))
    status = await mined(harness, await signed(harness, sender, step))
    assert (status.state, status.fee > 0) == ("reverted", True)
    assert await chain.balance(step.to_address, token) == 0


async def test_a_key_used_behind_our_back_takes_the_sequence(harness, chain, sender, step, tx):
    """Before what waits is mined: it pushes it aside, and both look as on a real chain."""
    assert (await told(harness, tx)).state == "accepted"
    thief = chain.submit([Output(contract=None, recipient=chain.faucet, amount=5)], sender=sender.address, sequence=0)
    assert (await told(harness, tx)).state == "underpriced"
    chain.mine()
    assert (await chain.transaction(thief)).state == "succeeded"
    assert (await told(harness, tx)).state == "sequence_used"
    assert await state(chain, tx) == "unknown"
    assert await chain.next_sequence(sender.address) == 1
    assert await chain.balance(step.to_address, step.token) == 0


async def test_a_transaction_by_hand_uses_the_next_sequence(chain, sender):
    chain.transfer(chain.info.native, chain.faucet, 1, sender=sender.address)
    assert await chain.next_sequence(sender.address) == 0
    chain.mine()
    assert await chain.next_sequence(sender.address) == 1


async def test_a_lagging_endpoint_counts_fewer_sequences(harness, chain, sender, tx):
    await mined(harness, tx)
    chain.faults.lag_blocks = 1
    assert await chain.next_sequence(sender.address) == 0


async def test_a_transaction_out_of_a_reorg_waits_again_where_it_cannot_be_mined_again(harness, chain, sender, step):
    txs = [await signed(harness, sender, step, sequence) for sequence in (0, 1)]
    await mined(harness, *txs)
    chain.reorg(1, mine_again=[txs[1].tx_id])
    assert [await state(chain, tx) for tx in txs] == ["unknown", "pending"]
    await mined(harness, txs[0])
    assert [await state(chain, tx) for tx in txs] == ["succeeded", "succeeded"]


async def test_a_payload_needs_a_sequence(chain, step):
    with pytest.raises(ValueError, match="sequence"):
        await chain.prepare([(step, None)])


# All together.


@pytest.mark.slow
@given(st.integers(0, 2**32))
async def test_whatever_happens_no_unit_is_made_or_lost(seed):
    """Random sends, replacements, drops and reorgs: held is what came less what went and what it cost."""
    chance, harness = Random(seed), MemoryHarness()
    chain, sender = harness.memory, await funded(harness)
    native, start = chain.info.native, await chain.balance(sender.address, chain.info.native)
    funded_at, step = chain.height, await planned(harness, sender, chain.info.native, AMOUNT)
    for _ in range(25):
        match chance.randrange(5):
            case 0 | 1:
                fee = replace(step.fee, price=step.fee.price * chance.randrange(1, 4), tip=step.fee.tip * 3)
                sequence = await chain.next_sequence(sender.address) + chance.randrange(3)
                await told(harness, await signed(harness, sender, replace(step, fee=fee), sequence))
            case 2:
                chain.mine(chance.randrange(1, 3))
            case 3 if chain.height > funded_at:
                chain.reorg(chance.randrange(1, chain.height - funded_at + 1))
            case _:
                chain.faults.forgotten_txs = chance.randrange(2)
    async with chain.view() as view:
        result = await view.scan(
            Span(first=max(0, chain.height - 49), last=chain.height), watching(FAMILY, step.to_address)
        )
    received = sum(transfer.amount for transfer in result.transfers)
    found = await chain.transactions([transfer.tx_id for transfer in result.transfers])
    fees = sum(status.fee for status in found)
    assert await chain.balance(step.to_address, native) == received
    assert await chain.balance(sender.address, native) == start - received - fees
    assert await chain.next_sequence(sender.address) == len(result.transfers)
