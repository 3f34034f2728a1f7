"""Payloads: what the signer reads out of them is what they do, and what it signs is all of them."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from cambist.plugin import Movement, PluginError, SignatureError, Step, Units, UnreadablePayloadError, UnsignedTx
from cambist.signer.bip32 import master_node
from cambist.testing.guard import Conformance
from cambist.testing.harness import ChainHarness, Sender

from .helpers import a_token, block_at, head_of, needs, some
from .sends import (
    all_prepared,
    an_intent,
    funded,
    mined,
    native_of,
    planned,
    prepared,
    prepared_as_told,
    sealed,
    signature_of,
    step_of,
    told,
    with_key,
)

SEED = b"the seed of the kit, worth nothing"
OWN_PATHS = ((0, 7), (1, 0), (2, 3))
"""A payment's address, a main wallet and an end user's, as change and index."""
STEPS_COUNT = 200
FLIPS_COUNT = 200
GARBAGE = (b"", b"\0", b"\x02", b"\xc0", b"{}", b"[]", b"null", b"\xff" * 100, b"0" * 100_000, bytes(range(256)))


class PayloadConformance(Conformance):
    async def test_effects_are_what_the_step_says(self, harness: ChainHarness) -> None:
        """For small and enormous numbers, every token and many recipients: nothing is cut, rounded or mixed up."""
        sender, chance = await funded(harness), Random(0)
        for token in harness.chain.info.tokens:
            likely = await planned(harness, sender, token, some(harness))
            steps = [(_varied(harness, likely, chance), _sequence(harness, chance)) for _ in range(STEPS_COUNT)]
            unsigned = await all_prepared(harness, sender, steps)
            for (step, sequence), tx in zip(steps, unsigned, strict=True):
                assert (tx.sender, tx.sequence, tx.fee) == (step.sender, sequence, step.fee)
                movement = Movement(contract=step.token.contract, recipient=step.to_address, amount=step.amount)
                effects = harness.family.effects(harness.chain.info, tx.payload)
                assert (effects.movements, effects.sequence) == ((movement,), sequence)
                assert (effects.delegate, effects.staking) == (None, None)
                if harness.abilities.fees_in_payload:
                    assert effects.fee_max == step.fee.limit * step.fee.price

    async def test_a_tag_is_part_of_what_is_signed(self, harness: ChainHarness) -> None:
        """The payload says it, or that there is none, for every token; it is mined with it."""
        needs(harness, "tags")
        for token in harness.chain.info.tokens:
            sender = await funded(harness, *([] if token.is_native else [(token, 100 * some(harness))]))
            for tag in (None, *dict.fromkeys(harness.samples.tags.values())):
                wanted = replace(an_intent(sender, harness.fresh_address(), token, some(harness)), tag=tag)
                (plan,) = await harness.chain.plan([wanted], sponsor=None)
                step = step_of(plan)
                assert step.tag == tag
                unsigned = await prepared(harness, sender, step)
                (movement,) = harness.family.effects(harness.chain.info, unsigned.payload).movements
                assert (movement.recipient, movement.tag) == (step.to_address, tag)
                assert (await mined(harness, sealed(harness, unsigned, sender))).state == "succeeded"

    async def test_what_is_paid_is_no_more_than_the_payload_allows(self, harness: ChainHarness) -> None:
        """Whatever is sent, and to whom: the signer counts the fee that it reads as if it were spent."""
        for token in harness.chain.info.tokens:
            sender = await funded(harness, *([] if token.is_native else [(token, some(harness))]))
            unsigned = await prepared(harness, sender, await planned(harness, sender, token, some(harness)))
            status = await mined(harness, sealed(harness, unsigned, sender))
            assert status.fee is not None
            assert status.fee <= harness.family.effects(harness.chain.info, unsigned.payload).fee_max

    async def test_a_payload_has_a_sequence_or_expires(self, harness: ChainHarness) -> None:
        """One of the two keeps a transfer from happening twice; what expires has an id before it is signed."""
        sender, info = await funded(harness), harness.chain.info
        assert harness.abilities.sequences != harness.abilities.expiry
        for token in info.tokens:
            unsigned = await prepared(harness, sender, await planned(harness, sender, token, some(harness)))
            effects = harness.family.effects(info, unsigned.payload)
            assert (effects.sequence, effects.valid_until) == (unsigned.sequence, unsigned.valid_until)
            if harness.abilities.sequences:
                assert (unsigned.sequence is not None, effects.valid_until, effects.tx_id) == (True, None, None)
            else:
                assert (unsigned.sequence, effects.tx_id) == (None, sealed(harness, unsigned, sender).tx_id)
                head = await head_of(harness)
                assert (unsigned.valid_until or 0) > (await block_at(harness, head.height)).time

    async def test_equal_steps_are_two_transactions(self, harness: ChainHarness) -> None:
        """Wanted twice, it happens twice, prepared at once or one after the other: no two payloads are ever alike."""
        native = harness.chain.info.native
        sender = await funded(harness)
        step = await planned(harness, sender, native, some(harness))
        first = sender.first_sequence
        sequences = range(first, first + 4) if harness.abilities.sequences else [None] * 4
        unsigned = [
            *await all_prepared(harness, sender, [(step, sequence) for sequence in sequences[:2]]),
            *await all_prepared(harness, sender, [(step, sequence) for sequence in sequences[2:]]),
        ]
        txs = [sealed(harness, one, sender) for one in unsigned]
        assert len({tx.tx_id for tx in txs}) == len({tx.raw for tx in txs}) == len(txs)
        assert (await mined(harness, *txs)).state == "succeeded"
        assert await harness.chain.balance(step.to_address, native) == len(txs) * some(harness)

    async def test_each_sender_is_prepared_for_with_its_own_key(self, harness: ChainHarness) -> None:
        """Several in one call, and one after the other: each payload takes its own sender's signature, and is mined."""
        native = harness.chain.info.native
        senders = [await funded(harness) for _ in range(3)]
        steps = [with_key(harness, one, await planned(harness, one, native, some(harness))) for one in senders]
        numbers = [await harness.chain.next_sequence(one.address) for one in senders]
        ready = list(zip(steps, numbers, strict=True))
        unsigned = [*await prepared_as_told(harness, ready[:2]), *await prepared_as_told(harness, ready[2:])]
        txs = [sealed(harness, tx, sender) for tx, sender in zip(unsigned, senders, strict=True)]
        await mined(harness, *txs)
        states = [status.state for status in await harness.chain.transactions([tx.tx_id for tx in txs])]
        assert states == ["succeeded"] * len(senders)

    async def test_what_comes_to_a_derived_address_can_be_sent(self, harness: ChainHarness) -> None:
        """With the key at the same path, as the signer derives it: the money of all customers is at such addresses."""
        native, family = harness.chain.info.native, harness.family
        account = master_node(SEED).hardened(44).hardened(family.coin_type).hardened(3)
        keys = [account.normal(change).normal(index).key for change, index in OWN_PATHS]
        addresses = [family.derive_address(account.xpub(), *path) for path in OWN_PATHS]
        needs(harness, "sending")
        for address in addresses:
            await harness.transfer(native, address, await harness.coins_held())
        await harness.mine()
        senders = [Sender(address=address, private_key=key) for address, key in zip(addresses, keys, strict=True)]
        steps = [await planned(harness, sender, native, some(harness)) for sender in senders]
        unsigned = [await prepared(harness, sender, step) for sender, step in zip(senders, steps, strict=True)]
        try:
            txs = [sealed(harness, tx, sender) for tx, sender in zip(unsigned, senders, strict=True)]
        except SignatureError as error:
            pytest.fail(f"the key of a path is not that of the address derived there: {error}")
        await mined(harness, *txs)
        arrived = [await harness.chain.balance(step.to_address, native) for step in steps]
        assert arrived == [some(harness)] * len(steps)

    async def test_a_payload_for_another_chain_is_unreadable(self, harness: ChainHarness) -> None:
        """What is signed for one chain must be worth nothing on any other."""
        needs(harness, "payload_names_chain")
        (_, _, unsigned), info = await _native(harness), harness.chain.info
        other = replace(info, id=f"{info.id}-other", chain_id_num=(info.chain_id_num or 0) + 1)
        with pytest.raises(UnreadablePayloadError):
            harness.family.effects(other, unsigned.payload)

    async def test_a_payload_that_calls_a_stranger_is_unreadable(self, harness: ChainHarness) -> None:
        """What a contract does that nobody registered cannot be told: at most, that it is called."""
        token, info = a_token(harness), harness.chain.info
        sender = await funded(harness)
        unsigned = await prepared(harness, sender, await planned(harness, sender, token, some(harness)))
        assert harness.family.effects(info, unsigned.payload).movements[0].contract == token.contract
        without = replace(info, tokens=tuple(known for known in info.tokens if known != token))
        try:
            effects = harness.family.effects(without, unsigned.payload)
        except UnreadablePayloadError:
            return
        assert (effects.movements, effects.allowance, effects.staking) == ((), None, None)
        assert effects.call is not None
        assert effects.call.to_address == token.contract

    async def test_a_payload_that_is_cut_or_longer_is_unreadable(self, harness: ChainHarness) -> None:
        """At every length; and one that has its signature already is no payload either."""
        sender = await funded(harness)
        for token in harness.chain.info.tokens[:2]:
            unsigned = await prepared(harness, sender, await planned(harness, sender, token, some(harness)))
            whole = unsigned.payload
            raw = sealed(harness, unsigned, sender).raw
            for wrong in (*(whole[:end] for end in range(len(whole))), whole + b"\0", b"\0" + whole, whole * 2, raw):
                with pytest.raises(UnreadablePayloadError):
                    harness.family.effects(harness.chain.info, wrong)

    async def test_garbage_is_unreadable(self, harness: ChainHarness) -> None:
        """It ends in this one error and no other, however close to a payload it comes."""
        (_, _, unsigned), chance = await _native(harness), Random(1)
        for wrong in (*GARBAGE, *(chance.randbytes(length) for length in range(1, 200))):
            with pytest.raises(UnreadablePayloadError):
                harness.family.effects(harness.chain.info, wrong)
        for _ in range(FLIPS_COUNT):
            try:
                position, bit = chance.randrange(len(unsigned.payload)), chance.randrange(8)
                harness.family.effects(harness.chain.info, _bit_flipped(unsigned.payload, position, bit))
            except UnreadablePayloadError:
                continue

    async def test_a_digest_is_of_the_whole_payload(self, harness: ChainHarness) -> None:
        """It is 32 bytes, the same each time, and another after any one bit is another."""
        digest, payload = harness.family.digest, (await _native(harness))[2].payload
        assert len(digest(payload)) == 32
        assert digest(payload) == digest(payload)
        others = [_bit_flipped(payload, position, 0) for position in range(len(payload))]
        assert len({digest(other) for other in (payload, *others)}) == len(payload) + 1

    async def test_sealing_again_gives_the_same_transaction(self, harness: ChainHarness) -> None:
        """After a crash the same bytes are stored and sent, under the same id; others have another."""
        sender, step, unsigned = await _native(harness)
        signature = signature_of(harness, unsigned, sender.private_key)
        once = harness.family.seal(unsigned, signature)
        assert once == harness.family.seal(unsigned, signature)
        assert unsigned.payload != once.raw
        more = await prepared(harness, sender, replace(step, amount=Units(some(harness) + 1)))
        assert sealed(harness, more, sender).tx_id != once.tx_id

    async def test_nothing_but_the_senders_signature_is_taken(self, harness: ChainHarness) -> None:
        """Of a stranger, over something else, or with a bit changed: sealing it fails, or sending it; nothing moves."""
        sender, step, unsigned = await _native(harness)
        stranger = await harness.sender()
        more = await prepared(harness, sender, replace(step, amount=Units(some(harness) + 1)))
        right = signature_of(harness, unsigned, sender.private_key)
        wrong = [
            signature_of(harness, unsigned, stranger.private_key),
            signature_of(harness, more, sender.private_key),
            *(_bit_flipped(right, position, position % 8) for position in range(0, len(right), 4)),
            right[:-1],
            b"",
        ]
        held = await native_of(harness, sender)
        for signature in wrong:
            await _refused(harness, unsigned, signature)
        await harness.mine()
        assert await native_of(harness, sender) == held
        assert await harness.chain.balance(step.to_address, step.token) == 0
        assert (await mined(harness, harness.family.seal(unsigned, right))).state == "succeeded"


def _varied(harness: ChainHarness, step: Step, chance: Random) -> Step:
    end = min(2 ** chance.choice((1, 8, 63, 64, 65, 128, 200)), harness.units_max(step.token) + 1)
    fee = step.fee
    if harness.abilities.fees_in_payload:
        fee = replace(
            fee,
            limit=chance.randrange(1, 10**7),
            price=chance.randrange(10**6, 10 ** chance.randrange(7, 13)),
            tip=None if fee.tip is None else chance.randrange(10**6),
        )
    return replace(step, to_address=harness.fresh_address(), amount=Units(chance.randrange(1, end)), fee=fee)


def _sequence(harness: ChainHarness, chance: Random) -> int | None:
    if not harness.abilities.sequences:
        return None
    return min(harness.sequence_max, chance.choice((0, 1, 127, 128, 255, 256, 2**32, 2**53 + 1)))


async def _native(harness: ChainHarness) -> tuple[Sender, Step, UnsignedTx]:
    sender = await funded(harness)
    step = await planned(harness, sender, harness.chain.info.native, some(harness))
    return sender, step, await prepared(harness, sender, step)


async def _refused(harness: ChainHarness, unsigned: UnsignedTx, signature: bytes) -> None:
    try:
        tx = harness.family.seal(unsigned, signature)
    except (PluginError, ValueError):
        return
    assert (await told(harness, tx)).state != "accepted"


def _bit_flipped(data: bytes, position: int, bit: int) -> bytes:
    return data[:position] + bytes((data[position] ^ 1 << bit,)) + data[position + 1 :]
