"""A chain in memory that runs contracts, as far as the conformance kit calls them: what the kit itself is tested on.

Calls are JSON. Tokens understand ``approve``, and one contract takes tokens by allowance, keeps coin, and refuses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cambist.plugin import (
    LOGS_MAX,
    Allowance,
    Call,
    CallTrial,
    ContractChain,
    Effects,
    Fee,
    FoundLog,
    InconsistentChainError,
    Log,
    LogQuery,
    Movement,
    Plan,
    Receipt,
    SpanTooWideError,
    Token,
    Units,
    UnreadablePayloadError,
    UnsignedTx,
)
from cambist.testing.harness import Callee
from cambist.testing.memory import MemoryChain, MemoryFamily, MemoryHarness, Output, memory_chain_info
from cambist.testing.memory.accounts import Accounts
from cambist.testing.memory.blocks import Transaction
from cambist.testing.memory.family import named_address, spell
from cambist.testing.memory.keys import SIGNATURE_BYTES, signer_of
from cambist.testing.memory.payload import digest_of, tx_id_of

CALLEE = named_address("callee")
INFO = replace(memory_chain_info(), runs_contracts=True)
TOKEN = INFO.tokens[1]
WORK = 60_000


class CallPayload(Struct, frozen=True, tag="memory/call", array_like=True, forbid_unknown_fields=True, kw_only=True):
    """What is signed to call a contract."""

    chain: str
    sequence: int
    call: Call
    limit: int
    price: int
    tip: int | None


class CallTransaction(Transaction, frozen=True, kw_only=True):
    """A transaction that calls a contract; what it moves stands in its outputs."""

    call: Call


def said(call: Call) -> Mapping[str, Any]:
    """Return what a call says, nothing where it says it in other words."""
    try:
        return msgspec.json.decode(call.data, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}


def a_call(to_address: str, value: int = 0, **words: object) -> Call:
    return Call(to_address=to_address, data=msgspec.json.encode(words), value=Units(value))


def outputs_of(call: Call) -> tuple[Output, ...]:
    given = (Output(contract=None, recipient=call.to_address, amount=call.value),) if call.value else ()
    taken = said(call).get("take")
    return given if taken is None else (*given, Output(contract=TOKEN.contract, recipient=CALLEE, amount=taken))


def moved_by(sender: str, call: Call) -> tuple[Movement, ...]:
    return tuple(
        Movement(contract=one.contract, source=sender, recipient=one.recipient, amount=Units(one.amount))
        for one in outputs_of(call)
        if one.contract is not None
    )


def logs_of(sender: str, call: Call) -> tuple[Log, ...]:
    """Return what a call that succeeds writes down."""
    found: list[tuple[str, tuple[object, ...]]] = []
    match said(call):
        case {"approve": [spender, amount]}:
            found = [(call.to_address, ("Approval", sender, spender, amount))]
        case {"take": amount}:
            found = [(TOKEN.contract, ("Transfer", sender, CALLEE)), (CALLEE, ("Taken", sender, amount))]
        case {"pay": amount}:
            found = [(CALLEE, ("Paid", sender, amount))]
    return tuple(
        Log(
            address=address,
            topics=tuple(hashlib.sha256(str(one).encode()).digest() for one in words),
            data=call.data,
            position=f"log:{number}",
        )
        for number, (address, words) in enumerate(found)
    )


class CallAccounts(Accounts):
    """Accounts, and what they have allowed the contract to take: the newest that was written down counts."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        self.allowed: list[tuple[int, tuple[str, str, str], int]] = []

    def allowance(self, owner: str, spender: str, contract: str) -> int:
        key = (owner, spender, contract)
        return next((amount for _, other, amount in reversed(self.allowed) if other == key), 0)

    def rewind(self, height: int) -> None:
        super().rewind(height)
        self.allowed = [one for one in self.allowed if one[0] <= height]

    def reason(self, sender: str, call: Call, taken: int = 0, allowed: int | None = None) -> str | None:
        """Return why a call fails, where so much was taken before, and another amount is allowed."""
        allowed = self.allowance(sender, CALLEE, TOKEN.contract) if allowed is None else allowed
        match said(call):
            case {"refuse": reason}:
                return reason
            case {"take": amount} if amount > allowed:
                return "not allowed"
            case {"take": amount} if amount > self.balance(sender, TOKEN.contract) - taken:
                return "not held"
        return None

    def _fails(self, transaction: Transaction) -> bool:
        called = isinstance(transaction, CallTransaction)
        return super()._fails(transaction) or (called and self.reason(transaction.sender, transaction.call) is not None)

    def _move(self, transaction: Transaction, height: int, time: int) -> None:
        super()._move(transaction, height, time)
        if not isinstance(transaction, CallTransaction):
            return
        key = (transaction.sender, CALLEE, TOKEN.contract)
        match said(transaction.call):
            case {"approve": [spender, amount]}:
                self.allowed.append((height, (key[0], spender, transaction.call.to_address), amount))
            case {"take": amount}:
                self.allowed.append((height, key, self.allowance(*key) - amount))


class MemoryCallFamily(MemoryFamily):
    """Reads approvals, and tells calls as they are."""

    def effects(self, chain, payload) -> Effects:
        try:
            read = read_call(payload)
        except UnreadablePayloadError:
            return super().effects(chain, payload)
        if read.chain != chain.id:
            raise UnreadablePayloadError("another chain's")
        allowance, call = self.told(chain, read.call)
        fee_max = Units(read.limit * read.price)
        return Effects(movements=(), fee_max=fee_max, sequence=read.sequence, allowance=allowance, call=call)

    def told(self, chain, call: Call) -> tuple[Allowance | None, Call | None]:
        if all(token.contract != call.to_address for token in chain.tokens):
            return None, call
        match said(call):
            case {"approve": [spender, amount]} if call == approval_of(call.to_address, spender, amount):
                return Allowance(contract=call.to_address, spender=spender, amount=Units(amount)), None
        raise UnreadablePayloadError("tokens are told to do something else")


def approval_of(contract: str, spender: str, amount: int) -> Call:
    return a_call(contract, approve=[spender, amount])


def read_call(raw: bytes) -> CallPayload:
    try:
        read = msgspec.json.decode(raw, type=CallPayload)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnreadablePayloadError("no call") from error
    if msgspec.json.encode(read) != raw:
        raise UnreadablePayloadError("not the one way to write it")
    return read


class MemoryContractChain(MemoryChain, ContractChain):
    """Needs sequences."""

    def __init__(self, info=INFO, *, family=None, **more) -> None:
        super().__init__(info, family=family or MemoryCallFamily(), **more)
        self.accounts = CallAccounts(self.faucet, self.fees, self.faults, self.rules)

    async def simulate(self, sender: str, calls: Sequence[Call]) -> Sequence[CallTrial]:
        await self.met("plan")
        trials: list[CallTrial] = []
        allowed, taken = self.accounts.allowance(sender, CALLEE, TOKEN.contract), 0
        for call in calls:
            before = trials[-1].refused if trials else None
            refused = before or self.accounts.reason(sender, call, taken, allowed)
            done = CallTrial(work=WORK, logs=logs_of(sender, call), moved=moved_by(sender, call))
            trials.append(done if refused is None else CallTrial(refused=refused))
            match said(call):
                case {"approve": [spender, amount]} if spender == CALLEE:
                    allowed = amount
                case {"take": amount}:
                    allowed, taken = allowed - amount, taken + amount
        return trials

    async def receipt(self, tx_id: str) -> Receipt | None:
        await self.met("transaction")
        return self.receipt_of(tx_id) if self.is_mined(tx_id) else None

    def receipt_of(self, tx_id: str) -> Receipt:
        block = self._blocks[self._mined[tx_id]]
        transaction = next(one for one in block.transactions if one.id == tx_id)
        done = tx_id not in block.reverted
        called = done and isinstance(transaction, CallTransaction)
        logs = logs_of(transaction.sender, transaction.call) if called else ()
        return Receipt(tx_id=tx_id, block=block.header, succeeded=done, logs=logs)

    async def logs(self, query: LogQuery) -> Sequence[FoundLog]:
        await self.met("scan")
        if query.last > self.height:
            raise InconsistentChainError("there is no such block")
        receipts = [
            self.receipt_of(transaction.id)
            for block in self._blocks[query.first : query.last + 1]
            for transaction in block.transactions
        ]
        found = [
            FoundLog(tx_id=one.tx_id, height=one.block.height, block_hash=one.block.hash, log=log)
            for one in receipts
            for log in one.logs
            if self.matches(log, query)
        ]
        if len(found) > LOGS_MAX:
            raise SpanTooWideError
        return found

    def matches(self, log: Log, query: LogQuery) -> bool:
        alike = all(wanted in {None, topic} for wanted, topic in zip(query.topics, log.topics, strict=False))
        return log.address == query.address and len(query.topics) <= len(log.topics) and alike

    async def allowance(self, owner: str, spender: str, token: Token) -> Units:
        await self.met("balance")
        return Units(self.accounts.allowance(owner, spender, str(token.contract)))

    def approval(self, token: Token, spender: str, amount: Units) -> Call:
        return approval_of(str(token.contract), spender, amount)

    def call_of(self, one) -> Call | None:
        """Return what an intent or a step calls."""
        return self.approval(one.token, one.to_address, one.amount) if one.action == "approve" else one.call

    def _planned(self, intent) -> Plan:
        call = self.call_of(intent)
        if call is None:
            return super()._planned(intent)
        refused = self.accounts.reason(intent.source, call)
        return Plan(refused=refused) if refused else Plan(step=intent.step(self.fees.current(WORK)))

    def _unsigned(self, step, sequence) -> UnsignedTx:
        call = self.call_of(step)
        if call is None:
            return super()._unsigned(step, sequence)
        fee = {"limit": step.fee.limit, "price": step.fee.price, "tip": step.fee.tip}
        payload = msgspec.json.encode(CallPayload(chain=self.info.id, sequence=sequence, call=call, **fee))
        return UnsignedTx(sender=step.sender, sequence=sequence, payload=payload, fee=step.fee)

    def _read(self, raw: bytes) -> Transaction:
        payload, signature = raw[:-SIGNATURE_BYTES], raw[-SIGNATURE_BYTES:]
        try:
            read = read_call(payload)
        except UnreadablePayloadError:
            return super()._read(raw)
        return CallTransaction(
            id=tx_id_of(raw),
            sender=spell(signer_of(digest_of(payload), signature)),
            outputs=outputs_of(read.call),
            fee=Fee(limit=read.limit, price=read.price, tip=read.tip),
            sequence=read.sequence,
            call=read.call,
        )


class MemoryCallHarness(MemoryHarness):
    """The harness of a chain in memory, with a contract to call."""

    def __init__(self, chain: MemoryContractChain | None = None) -> None:
        super().__init__(chain or MemoryContractChain(INFO, finality_lag_blocks=5))
        self.abilities = replace(self.abilities, calls=True)

    async def callee(self) -> Callee:
        return Callee(
            address=CALLEE,
            token=TOKEN,
            take=lambda amount: a_call(CALLEE, take=amount),
            pay=lambda amount: a_call(CALLEE, amount, pay=amount),
            refuse=a_call(CALLEE, refuse="not today"),
            reason="not today",
        )
