"""The chain in memory: blocks that hash-link, and a node that judges what is to be sent as strictly as any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from cambist.plugin import (
    Broadcast,
    ChainUnavailableError,
    Fee,
    FoundTx,
    InconsistentChainError,
    Intent,
    InvalidAddressError,
    LendingChain,
    Plan,
    SignatureError,
    SignedTx,
    Stake,
    Staking,
    Step,
    Units,
    Unprepared,
    UnreadablePayloadError,
    UnsignedTx,
)

from .blocks import Output, Transaction
from .family import spell
from .fees import NATIVE_WORK
from .keys import SIGNATURE_BYTES
from .payload import DatedPayload, Payload, open_raw, tx_id_of, write_payload
from .planning import Planner
from .pool import WAITING_MAX
from .reading import MemoryReading
from .rules import LIFETIME_MAX_S


class MemoryChain(MemoryReading):
    """A network of one endpoint. The same calls on the same seed give the same hashes and ids.

    ``transfer`` and ``submit`` make transactions by hand, which need no signature and cost nothing, ``broadcast``
    takes signed ones; all wait until ``mine`` takes them. ``reorg`` replaces blocks, ``forget`` drops what waits.
    The faucet, who sends unless another sender is named, never runs dry; anybody else's transaction reverts where
    the money is missing. ``faults`` and ``fees`` are the test's to change.

    ``finality_lag_blocks`` is how far the finalized height is behind, None for a chain without one. ``block_time_s``
    lies between two blocks unless ``mine`` is told the time. With another family than MemoryFamily, name a ``faucet``
    address of that family; such a chain is only read. With ``rules`` its transactions have no sequences but expire, and
    its finalized height is 5 blocks behind unless that is said, too: without one nothing could be proven dead.
    """

    _prepared_count = 0

    async def next_sequence(self, sender: str) -> int | None:
        """Count the sender's mined transactions, as far as the endpoint knows them."""
        await self.met("next_sequence")
        if self.rules is not None:
            return None
        return self.accounts.sequence(sender, self.seen_height()) + self.faults.sequences_ahead

    async def plan(
        self, intents: Sequence[Intent], *, sponsor: str | None, promised: Mapping[str, int] | None = None
    ) -> Sequence[Plan]:
        """Plan one step each; the work it takes is the same for every transfer of a kind."""
        await self.met("plan")
        for intent in intents:
            if intent.source in self.faults.contradicted:
                raise InconsistentChainError(f"two balances of {intent.source}")
        if self.rules is None:
            return [self._planned(intent) for intent in intents]
        planner = Planner(self.rules, self.fees, self.accounts, time=self.seen_time(), sponsor=sponsor)
        planner.count_on(promised or {})
        return [self._refused(intent) or planner.plan(intent) for intent in intents]

    async def outbid(self, step: Step) -> Fee:
        await self.met("outbid")
        if self.rules is not None:
            raise ValueError(f"nothing is replaced on {self.info.id}")
        return self.fees.outbidding(step.fee)

    async def outbid_within(self, step: Step, price_max: int) -> Fee:
        await self.met("outbid")
        return self.fees.outbidding(step.fee, price_max)

    async def prepare(self, steps: Sequence[tuple[Step, int | None]]) -> Sequence[UnsignedTx | Unprepared]:
        await self.met("prepare")
        valid_until = self.seen_time() + (0 if self.rules is None else self.rules.lifetime_s)
        return [self._prepared(step, sequence, valid_until) for step, sequence in steps]

    def _prepared(self, step: Step, sequence: int | None, valid_until: int) -> UnsignedTx | Unprepared:
        if step.to_address in self.faults.impossible:
            return Unprepared(reason=f"nothing can be prepared for {step.to_address}")
        return self._unsigned(step, sequence) if self.rules is None else self._dated(step, sequence, valid_until)

    async def find_tx(self, tx_id: str) -> FoundTx | None:
        """Return what was broadcast under an id, as long as it waits or is mined; what tests make nobody has signed."""
        await self.met("transaction")
        raw = self._raws.get(tx_id)
        if raw is None or self._status(tx_id).state == "unknown":
            return None
        read = self._read(raw)
        assert read.fee is not None
        return FoundTx(
            tx=SignedTx(tx_id=tx_id, raw=raw),
            sender=read.sender,
            sequence=read.sequence,
            payload=raw[:-SIGNATURE_BYTES],
            fee=replace(read.fee, covered=0),
            valid_until=read.valid_until,
        )

    async def broadcast(self, txs: Sequence[SignedTx]) -> Sequence[Broadcast]:
        try:
            await self.met("broadcast")
        except ChainUnavailableError as error:
            return [Broadcast(state="unknown", reason=str(error)) for _ in txs]
        return [self._heard(tx) for tx in txs]

    def _refused(self, intent: Intent) -> Plan | None:
        if intent.action in {"approve", "call"}:
            return Plan(refused=f"no contracts are called on {self.info.id}")
        refuses = (intent.token.contract, intent.to_address) in self.faults.refusing
        if refuses:
            return Plan(refused=f"{intent.token.symbol} refuses {intent.to_address}")
        if self.accounts.is_too_little(intent.token.contract, intent.to_address, intent.amount):
            return Plan(
                refused=f"{intent.to_address} holds no {intent.token.symbol}, and {intent.amount} is too little"
            )
        return None

    def _planned(self, intent: Intent) -> Plan:
        if (refused := self._refused(intent)) is not None:
            return refused
        fee = self.fees.current(self.fees.limit(intent.token))
        return Plan(step=intent.step(fee), sponsoring=Units(NATIVE_WORK * fee.price))

    def _unsigned(self, step: Step, sequence: int | None) -> UnsignedTx:
        if sequence is None:
            raise ValueError(f"transactions of {self.info.id} need a sequence")
        payload = Payload(
            chain=self.info.id,
            sequence=sequence,
            contract=step.token.contract,
            recipient=step.to_address,
            amount=step.amount,
            limit=step.fee.limit,
            price=step.fee.price,
            tip=step.fee.tip,
            tag=step.tag,
        )
        return UnsignedTx(sender=step.sender, sequence=sequence, payload=write_payload(payload), fee=step.fee)

    def _dated(self, step: Step, sequence: int | None, valid_until: int) -> UnsignedTx:
        if sequence is not None:
            raise ValueError(f"transactions of {self.info.id} have no sequence")
        self._prepared_count += 1
        payload = DatedPayload(
            chain=self.info.id,
            valid_until=valid_until,
            serial=self._prepared_count,
            action=step.action,
            contract=step.token.contract,
            recipient=step.to_address,
            amount=step.amount,
            limit=step.fee.limit,
            price=step.fee.price,
            extra=step.fee.extra,
            tag=step.tag,
        )
        raw = write_payload(payload)
        return UnsignedTx(sender=step.sender, sequence=None, payload=raw, fee=step.fee, valid_until=valid_until)

    def _heard(self, tx: SignedTx) -> Broadcast:
        """Judge a transaction, and let the faults come between the node and the one who asks."""
        if self.faults.takes_one("lost_txs"):
            return Broadcast(state="unknown", reason="the node did not answer")
        if self.faults.rejection is not None:
            return Broadcast(state="rejected", reason=self.faults.rejection)
        answer = self._judged(tx.raw)
        if answer.state == "accepted" and tx_id_of(tx.raw) in self.pool and self._forgets():
            self.pool.remove(tx_id_of(tx.raw))
        if self.faults.takes_one("unanswered_txs"):
            return Broadcast(state="unknown", reason="the node did not answer in time")
        return answer

    def _forgets(self) -> bool:
        return self.faults.takes_one("forgotten_txs") or self.chance.random() < self.faults.dropped_share

    def _judged(self, raw: bytes) -> Broadcast:
        tx_id = tx_id_of(raw)
        try:
            if tx_id in self.pool or (self.rules is not None and self.is_mined(tx_id)):
                return Broadcast(state="accepted", reason="already known")
            transaction = self._read(raw)
        except (UnreadablePayloadError, SignatureError, InvalidAddressError) as error:
            return Broadcast(state="rejected", reason=str(error))
        refusal = self._refusal(transaction)
        if refusal is not None:
            return refusal
        self.pool.add(transaction)
        self._raws[tx_id] = raw
        return Broadcast(state="accepted")

    def _read(self, raw: bytes) -> Transaction:
        payload, key = open_raw(raw)
        if payload.chain != self.info.id:
            raise UnreadablePayloadError(f"this is {self.info.id}, not {payload.chain!r}")
        output = Output(contract=payload.contract, recipient=payload.recipient, amount=payload.amount)
        if self.family.normalize_address(output.recipient) != output.recipient:
            raise InvalidAddressError(f"{output.recipient!r} is not how an address is written")
        sender = spell(key)
        transaction = Transaction(id=tx_id_of(raw), sender=sender, outputs=(output,), fee=payload.fee)
        if isinstance(payload, Payload):
            if self.rules is not None:
                raise UnreadablePayloadError("transactions have no sequence here")
            return replace(transaction, sequence=payload.sequence)
        if self.rules is None:
            raise UnreadablePayloadError("transactions do not expire here")
        fee = replace(payload.fee, covered=self.accounts.stakes.covered(sender, self.seen_time()))
        outputs = (output,) if payload.staking is None else ()
        return replace(transaction, outputs=outputs, fee=fee, valid_until=payload.valid_until, staking=payload.staking)

    def _refusal(self, new: Transaction) -> Broadcast | None:
        """Return why a node would not keep it."""
        return self._dated_refusal(new) if new.valid_until is not None else self._numbered_refusal(new)

    def _dated_refusal(self, new: Transaction) -> Broadcast | None:
        assert new.valid_until is not None
        time = self.seen_time()
        if new.has_expired(time):
            return Broadcast(state="expired", reason=f"it expired at {new.valid_until}")
        if (refusal := self.accounts.refusal(new, time)) is not None:
            return Broadcast(state="rejected", reason=refusal)
        if new.valid_until > time + LIFETIME_MAX_S:
            return Broadcast(state="rejected", reason=f"it expires more than {LIFETIME_MAX_S} s from now")
        if not self.accounts.is_active(new.sender):
            return Broadcast(state="unfunded", reason=f"{new.sender} is not activated")
        return self._unfunded(new, 0) or self._full()

    def _numbered_refusal(self, new: Transaction) -> Broadcast | None:
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
        return self._unfunded(new, replaced) or (self._full() if waiting is None else None)

    def _unfunded(self, new: Transaction, replaced: int) -> Broadcast | None:
        needed = self.pool.native_needed(new.sender) - replaced + new.native_needed
        if needed <= self.accounts.balance(new.sender, None):
            return None
        return Broadcast(state="unfunded", reason=f"all that waits needs {needed} of the native coin")

    def _full(self) -> Broadcast | None:
        return Broadcast(state="unknown", reason="too many wait already") if len(self.pool) >= WAITING_MAX else None


class MemoryLendingChain(MemoryChain, LendingChain):
    """Needs ``rules`` with a ``stake_per_work``."""

    async def stake(self, address: str) -> Stake:
        await self.met("stake")
        return self.accounts.stakes.stake(address, self.seen_time())

    def endow(self, address: str, units: int) -> None:
        """Give an address a stake out of nowhere, in a block of its own."""
        self.mine()
        staking = Staking(action="stake", amount=Units(units))
        self.accounts.stakes.carry_out(address, staking, self.height, self.seen_time())
