"""The sending half of a chain in memory: what its node answers when something is to be sent."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from random import Random

from cambist.plugin import (
    AddressFamily,
    Broadcast,
    Chain,
    ChainUnavailableError,
    Fee,
    Intent,
    InvalidAddressError,
    Plan,
    SignatureError,
    SignedTx,
    Step,
    UnreadablePayloadError,
    UnsignedTx,
)

from .accounts import Accounts
from .blocks import Output, Transaction
from .faults import Call, MemoryFaults
from .fees import NATIVE_WORK, MemoryFees
from .payload import Payload, open_raw, tx_id_of, write_payload
from .pool import WAITING_MAX, Pool


class MemorySending(Chain):
    """Plans, prepares, and judges what is broadcast as a strict node of an account chain does."""

    family: AddressFamily
    faults: MemoryFaults
    fees: MemoryFees
    accounts: Accounts
    pool: Pool
    chance: Random

    @abstractmethod
    async def met(self, call: Call, *, span_length: int = 0) -> None:
        """Count a call and let the faults have their say."""

    @abstractmethod
    def seen_height(self) -> int:
        """Return the newest height that the endpoint knows of."""

    @abstractmethod
    def spell(self, key: bytes) -> str:
        """Return the address of a signer."""

    async def next_sequence(self, sender: str) -> int | None:
        """Count the sender's mined transactions, as far as the endpoint knows them."""
        await self.met("next_sequence")
        return self.accounts.sequence(sender, self.seen_height()) + self.faults.sequences_ahead

    async def plan(self, intents: Sequence[Intent], *, sponsor: str | None) -> Sequence[Plan]:
        """Plan one step each; the work it takes is the same for every transfer of a kind."""
        del sponsor  # who pays for gas is sent it by the gateway
        await self.met("plan")
        return [self._planned(intent) for intent in intents]

    async def outbid(self, step: Step) -> Fee:
        """Ask for what replaces the fee."""
        await self.met("outbid")
        return self.fees.outbidding(step.fee)

    async def prepare(self, steps: Sequence[tuple[Step, int | None]]) -> Sequence[UnsignedTx]:
        """Write payloads."""
        await self.met("prepare")
        return [self._unsigned(step, sequence) for step, sequence in steps]

    async def broadcast(self, txs: Sequence[SignedTx]) -> Sequence[Broadcast]:
        """Hand the transactions over, one after the other."""
        try:
            await self.met("broadcast")
        except ChainUnavailableError as error:
            return [Broadcast(state="unknown", reason=str(error)) for _ in txs]
        return [self._heard(tx) for tx in txs]

    def _planned(self, intent: Intent) -> Plan:
        if (intent.token.contract, intent.target) in self.faults.refusing:
            return Plan(refused=f"{intent.token.symbol} refuses {intent.target}")
        fee = self.fees.current(self.fees.limit(intent.token))
        step = Step(sender=intent.source, target=intent.target, token=intent.token, amount=intent.amount, fee=fee)
        return Plan(steps=(step,))

    def _unsigned(self, step: Step, sequence: int | None) -> UnsignedTx:
        if sequence is None:
            raise ValueError(f"transactions of {self.info.id} need a sequence")
        payload = Payload(
            chain=self.info.id,
            sequence=sequence,
            contract=step.token.contract,
            recipient=step.target,
            amount=step.amount,
            limit=step.fee.limit,
            price=step.fee.price,
            tip=step.fee.tip,
        )
        return UnsignedTx(sender=step.sender, sequence=sequence, payload=write_payload(payload), fee=step.fee)

    def _heard(self, tx: SignedTx) -> Broadcast:
        """Judge a transaction, and let the faults come between the node and the one who asks."""
        if self.faults.takes_one("lost_txs"):
            return Broadcast(state="unknown", reason="the node did not answer")
        if self.faults.rejection is not None:
            return Broadcast(state="rejected", reason=self.faults.rejection)
        answer = self._judged(tx.raw)
        if answer.state == "accepted" and self._forgets():
            self.pool.remove(tx_id_of(tx.raw))
        if self.faults.takes_one("unanswered_txs"):
            return Broadcast(state="unknown", reason="the node did not answer in time")
        return answer

    def _forgets(self) -> bool:
        return self.faults.takes_one("forgotten_txs") or self.chance.random() < self.faults.dropped_share

    def _judged(self, raw: bytes) -> Broadcast:
        if tx_id_of(raw) in self.pool:
            return Broadcast(state="accepted", reason="already known")
        try:
            transaction = self._read(raw)
        except (UnreadablePayloadError, SignatureError, InvalidAddressError) as error:
            return Broadcast(state="rejected", reason=str(error))
        refusal = self._refusal(transaction)
        if refusal is not None:
            return refusal
        self.pool.add(transaction)
        return Broadcast(state="accepted")

    def _read(self, raw: bytes) -> Transaction:
        payload, key = open_raw(raw)
        if payload.chain != self.info.id:
            raise UnreadablePayloadError(f"this is {self.info.id}, not {payload.chain!r}")
        output = Output(contract=payload.contract, recipient=payload.recipient, amount=payload.amount)
        if self.family.normalize_address(output.recipient) != output.recipient:
            raise InvalidAddressError(f"{output.recipient!r} is not how an address is written")
        return Transaction(
            id=tx_id_of(raw), sender=self.spell(key), outputs=(output,), sequence=payload.sequence, fee=payload.fee
        )

    def _refusal(self, new: Transaction) -> Broadcast | None:
        """Return why a node would not keep it."""
        assert new.fee is not None
        assert new.sequence is not None
        used = self.accounts.sequence(new.sender)
        if new.sequence < used:
            return Broadcast(state="sequence_used", reason=f"the next sequence is {used}")
        if new.fee.limit < NATIVE_WORK:
            return Broadcast(state="rejected", reason=f"nothing takes less work than {NATIVE_WORK}")
        waiting = self.pool.at(new.sender, new.sequence)
        if new.fee.price < self.fees.price_min:
            return Broadcast(state="underpriced", reason=f"the price is below {self.fees.price_min}")
        if waiting is not None and (waiting.fee is None or not self.fees.replaces(new.fee, waiting.fee)):
            return Broadcast(state="underpriced", reason=f"{waiting.id} waits under this sequence")
        replaced = 0 if waiting is None else waiting.native_needed
        needed = self.pool.native_needed(new.sender) - replaced + new.native_needed
        if needed > self.accounts.balance(new.sender, None):
            return Broadcast(state="unfunded", reason=f"all that waits needs {needed} of the native coin")
        if len(self.pool) >= WAITING_MAX and waiting is None:
            return Broadcast(state="unknown", reason="too many wait already")
        return None
