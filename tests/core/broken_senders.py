"""Chains in memory that are sent on, each broken in one way, beside those that are broken in reading."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence

from msgspec.structs import replace

from cambist.plugin import (
    Broadcast,
    ChainUnavailableError,
    Effects,
    Plan,
    SignedTx,
    Step,
    TxStatus,
    Units,
    UnreadablePayloadError,
    UnsignedTx,
)
from cambist.testing.memory import MemoryChain, MemoryFamily, MemoryFees, MemoryKeyedChain
from cambist.testing.memory.fees import TOKEN_WORK
from cambist.testing.memory.keys import SIGNATURE_BYTES
from cambist.testing.memory.payload import digest_of, read_payload, tx_id_of
from tests.core.broken_chains import BROKEN, caught_by

__all__ = ["BROKEN"]


# What the signer reads, and signs.


@caught_by("test_effects_are_what_the_step_says")
class SmallNumbers(MemoryFamily):
    def effects(self, chain, payload) -> Effects:
        effects = super().effects(chain, payload)
        (movement,) = effects.movements
        return replace(effects, movements=(replace(movement, amount=Units(movement.amount % 2**64)),))


@caught_by("test_a_tag_is_part_of_what_is_signed")
class SilentAboutTags(MemoryFamily):
    def effects(self, chain, payload) -> Effects:
        effects = super().effects(chain, payload)
        return replace(effects, movements=tuple(replace(movement, tag=None) for movement in effects.movements))


@caught_by("test_every_tag_has_one_normal_form")
class TagsAsTheyCome(MemoryFamily):
    def normalize_tag(self, text) -> str:
        super().normalize_tag(text)
        return text


@caught_by("test_what_is_paid_is_no_more_than_the_payload_allows")
class FreeOfCharge(MemoryFamily):
    def effects(self, chain, payload) -> Effects:
        return replace(super().effects(chain, payload), fee_max=Units(0))


@caught_by("test_a_payload_has_a_sequence_or_expires")
class HasBoth(MemoryFamily):
    def effects(self, chain, payload) -> Effects:
        return replace(super().effects(chain, payload), valid_until=2**31)


@caught_by("test_each_sender_is_prepared_for_with_its_own_key")
class KeepsTheFirstKey(MemoryKeyedChain):
    def _unsigned(self, step, sequence) -> UnsignedTx:
        key = self.__dict__.setdefault("key", step.public_key)
        return super()._unsigned(replace(step, public_key=key), sequence)


@caught_by("test_a_payload_for_another_chain_is_unreadable")
class EveryChainsPayload(MemoryFamily):
    def effects(self, chain, payload) -> Effects:
        with contextlib.suppress(UnreadablePayloadError):
            chain = replace(chain, id=read_payload(payload).chain)
        return super().effects(chain, payload)


@caught_by("test_a_payload_that_calls_a_stranger_is_unreadable")
class CallsAnybody(MemoryFamily):
    def effects(self, chain, payload) -> Effects:
        contract = read_payload(payload).contract
        return super().effects(
            replace(chain, tokens=(*chain.tokens, replace(chain.native, contract=contract))), payload
        )


@caught_by("test_a_payload_that_is_cut_or_longer_is_unreadable")
class PatientReader(MemoryFamily):
    def effects(self, chain, payload) -> Effects:
        return super().effects(chain, payload.strip(b"\0"))


@caught_by("test_garbage_is_unreadable")
class SeesNoHarm(MemoryFamily):
    def effects(self, chain, payload) -> Effects:
        try:
            return super().effects(chain, payload)
        except UnreadablePayloadError:
            return Effects(movements=(), fee_max=Units(0), sequence=None)


@caught_by("test_a_digest_is_of_the_whole_payload")
class DigestOfTheBeginning(MemoryFamily):
    def digest(self, payload) -> bytes:
        return digest_of(payload[:-1])


@caught_by("test_sealing_again_gives_the_same_transaction")
class NumberedIds(MemoryFamily):
    numbers = itertools.count()

    def seal(self, tx: UnsignedTx, signature: bytes) -> SignedTx:
        return replace(super().seal(tx, signature), tx_id=f"{next(self.numbers):064x}")


@caught_by("test_nothing_but_the_senders_signature_is_taken")
class YesMan(MemoryChain):
    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, family=Sealer(), **kwargs)

    async def broadcast(self, txs) -> Sequence[Broadcast]:
        await super().broadcast(txs)
        return [Broadcast(state="accepted") for _ in txs]


class Sealer(MemoryFamily):
    """Which puts anything together, and trusts the node to judge."""

    def seal(self, tx: UnsignedTx, signature: bytes) -> SignedTx:
        raw = tx.payload + signature.rjust(SIGNATURE_BYTES, b"\0")
        return SignedTx(tx_id=tx_id_of(raw), raw=raw)


@caught_by("test_a_sent_transaction_is_known_by_its_id")
class IdsOfPayloads(MemoryFamily):
    def seal(self, tx: UnsignedTx, signature: bytes) -> SignedTx:
        return replace(super().seal(tx, signature), tx_id=digest_of(tx.payload).hex())


# What is planned.


class ChangedSteps(MemoryChain):
    """Whose plans have other steps."""

    async def plan(self, intents, **more) -> Sequence[Plan]:
        plans = await super().plan(intents, **more)
        return [replace(plan, step=plan.step and self.change(plan.step)) for plan in plans]

    def change(self, step: Step) -> Step:
        raise NotImplementedError


@caught_by("test_what_is_sent_arrives")
class CutTaken(ChangedSteps):
    def change(self, step):
        return replace(step, amount=Units(step.amount - step.amount // 1000))


@caught_by("test_the_least_that_can_be_sent_arrives")
class SaysTooLittle(MemoryChain):
    def __init__(self, info, **kwargs) -> None:
        native, *others = info.tokens
        super().__init__(replace(info, tokens=(replace(native, least_units=Units(1_000)), *others)), **kwargs)
        self.info = info


@caught_by("test_what_is_brought_for_a_fee_is_enough")
class PaysForEachCoin(MemoryChain):
    """As where all outputs of an address are spent by each transaction, and each of them costs."""

    async def plan(self, intents, **more) -> Sequence[Plan]:
        plans = await super().plan(intents, **more)
        held = await self.balances([(intent.source, self.info.native) for intent in intents])
        return [
            replace(plan, step=plan.step and replace(plan.step, fee=replace(plan.step.fee, extra=amount)))
            for plan, amount in zip(plans, held, strict=True)
        ]


@caught_by("test_a_plan_is_the_intent_and_no_more")
class PlansBackwards(MemoryChain):
    async def plan(self, intents, **more) -> Sequence[Plan]:
        return [*reversed(await super().plan(intents, **more))]


@caught_by("test_money_that_has_yet_to_come_is_no_reason_to_refuse")
class CashOnly(MemoryChain):
    async def plan(self, intents, **more) -> Sequence[Plan]:
        plans = await super().plan(intents, **more)
        held = await self.balances([(intent.source, intent.token) for intent in intents])
        return [
            plan if amount >= intent.amount else Plan(refused="the balance is too low")
            for plan, intent, amount in zip(plans, intents, held, strict=True)
        ]


@caught_by("test_who_is_emptied_before_the_block_is_paid_where_that_may_be")
class CountsOnWhatIsHeld(MemoryChain):
    """Which allows less for a recipient that holds some of the token."""

    def _planned(self, intent) -> Plan:
        plan = super()._planned(intent)
        if intent.token.is_native or not self.accounts.balance(intent.to_address, intent.token.contract):
            return plan
        return replace(plan, step=replace(plan.step, fee=replace(plan.step.fee, limit=TOKEN_WORK * 2 // 3)))


@caught_by("test_a_transfer_that_would_fail_is_not_planned")
class Sanguine(MemoryChain):
    def _planned(self, intent) -> Plan:
        return super()._planned(replace(intent, to_address=self.faucet))


@caught_by("test_nothing_asked_is_nothing_answered")
class NeedsOne(MemoryChain):
    async def plan(self, intents, **more) -> Sequence[Plan]:
        assert intents
        return await super().plan(intents, **more)


# What it costs.


class ChangedFees(MemoryChain):
    """Whose network asks for other prices."""

    fees_type: type[MemoryFees]

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, fees=self.fees_type(), **kwargs)


class HiddenCharge(MemoryFees):
    def price_paid(self, fee):
        return fee.price + 1


class TooTimid(MemoryFees):
    def outbidding(self, old):
        return replace(old, price=old.price + 1)


@caught_by("test_a_fee_is_what_the_sender_lost_and_no_more_than_planned")
class Overcharging(ChangedFees):
    fees_type = HiddenCharge


@caught_by("test_a_transaction_is_found_as_it_was_signed")
class CountsFromOne(MemoryChain):
    """Counts a sender's transactions from one."""

    async def find_tx(self, tx_id):
        found = await super().find_tx(tx_id)
        return None if found is None else replace(found, sequence=(found.sequence or 0) + 1)


@caught_by("test_all_but_the_fee_can_be_sent")
class WantsMore(MemoryChain):
    def _refusal(self, new):
        if new.native_needed + 1 > self.accounts.balance(new.sender, None):
            return Broadcast(state="unfunded")
        return super()._refusal(new)


@caught_by("test_a_higher_fee_replaces")
class Timid(ChangedFees):
    fees_type = TooTimid


# What a broadcast is told.


class ChangedAnswers(MemoryChain):
    """Which says something else to what is broadcast."""

    answers: dict[str, str]

    async def broadcast(self, txs) -> Sequence[Broadcast]:
        told = await super().broadcast(txs)
        return [replace(answer, state=self.answers.get(answer.state, answer.state)) for answer in told]


@caught_by("test_a_sender_who_cannot_pay_is_told")
class Vague(ChangedAnswers):
    answers = {"unfunded": "rejected"}  # noqa: RUF012 - a test's own


@caught_by("test_a_used_sequence_is_told")
class LateIsLate(ChangedAnswers):
    answers = {"sequence_used": "rejected"}  # noqa: RUF012 - a test's own


@caught_by("test_a_higher_fee_is_offered_exactly_where_it_replaces")
class Resigned(MemoryChain):
    async def outbid(self, step):
        return step.fee


@caught_by("test_the_same_fee_does_not_replace")
class Polite(ChangedAnswers):
    answers = {"underpriced": "accepted"}  # noqa: RUF012 - a test's own


@caught_by("test_sending_twice_moves_once")
class NotAgain(MemoryChain):
    def _judged(self, raw) -> Broadcast:
        if tx_id_of(raw) in self.pool:
            return Broadcast(state="rejected", reason="already known")
        return super()._judged(raw)


@caught_by("test_answers_come_in_the_order_of_the_questions")
class StopsAtTheFirst(MemoryChain):
    async def broadcast(self, txs) -> Sequence[Broadcast]:
        answers: list[Broadcast] = []
        for tx in txs:
            failed = answers and answers[-1].state != "accepted"
            answers += answers[-1:] if failed else await super().broadcast([tx])
        return answers


@caught_by("test_an_outage_leaves_a_broadcast_unknown")
class RaisesInstead(MemoryChain):
    async def broadcast(self, txs) -> Sequence[Broadcast]:
        answers = await super().broadcast(txs)
        if any(answer.state == "unknown" for answer in answers):
            raise ChainUnavailableError
        return answers


@caught_by("test_an_outage_is_no_answer")
class CountsByItself(MemoryChain):
    async def next_sequence(self, sender: str) -> int:
        return self.accounts.sequence(sender)


# What is counted, mined and looked up.


@caught_by("test_nothing_is_dead_where_nothing_expires")
class UnknownIsDead(MemoryChain):
    async def expired(self, txs) -> Sequence[bool]:
        return [(await self.transaction(tx.tx_id)).state == "unknown" for tx in txs]


@caught_by("test_a_sequence_counts_what_is_mined")
class CountsWhatWaits(MemoryChain):
    async def next_sequence(self, sender: str) -> int:
        return (await super().next_sequence(sender) or 0) + sum(waiting.sender == sender for waiting in self.pool)


@caught_by("test_a_reorg_takes_back_what_was_sent")
class RemembersSequences(MemoryChain):
    async def next_sequence(self, sender: str) -> int:
        memory = self.__dict__.setdefault("memory", {})
        memory[sender] = max(memory.get(sender, 0), await super().next_sequence(sender) or 0)
        return memory[sender]

    def reorg(self, depth, **kwargs) -> None:
        for block in self._blocks[-depth:]:
            for transaction in block.transactions:
                self.__dict__.setdefault("memory", {})[transaction.sender] = (transaction.sequence or 0) + 1
        super().reorg(depth, **kwargs)


@caught_by("test_many_of_one_sender_are_mined_in_order")
class OneAtATime(MemoryChain):
    def _refusal(self, new):
        if new.sequence != self.accounts.sequence(new.sender):
            return Broadcast(state="rejected", reason="one after the other")
        return super()._refusal(new)


@caught_by("test_an_intent_of_nothing_uses_up_a_sequence")
class NothingForNothing(MemoryChain):
    def _planned(self, intent) -> Plan:
        if intent.action == "nothing":
            return Plan(refused="nothing is staked or lent here")
        return super()._planned(intent)


@caught_by("test_a_gap_waits")
class SkipsGaps(MemoryChain):
    def _read(self, raw):
        read = super()._read(raw)
        return replace(read, sequence=self.accounts.sequence(read.sender))


@caught_by("test_a_failed_transaction_costs_its_fee_and_moves_nothing")
class AllIsWell(MemoryChain):
    async def transactions(self, tx_ids) -> Sequence[TxStatus]:
        found = await super().transactions(tx_ids)
        return [replace(status, state="succeeded") if status.block else status for status in found]


@caught_by("test_what_comes_to_a_derived_address_can_be_sent")
class Neighbours(MemoryFamily):
    def derive_address(self, account_xpub, change, index) -> str:
        return super().derive_address(account_xpub, change, index ^ 1)


@caught_by("test_several_balances_are_the_single_ones")
class EachOnce(MemoryChain):
    async def balances(self, wanted, at=None) -> Sequence[Units]:
        return await super().balances(list(dict.fromkeys(wanted)), at)


@caught_by("test_several_states_are_the_single_ones")
class NewestFirst(MemoryChain):
    async def transactions(self, tx_ids) -> Sequence[TxStatus]:
        return await super().transactions(sorted(tx_ids))
