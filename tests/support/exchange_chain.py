"""A chain in memory with a router that swaps and bridges, as far as exchanges need one; its calls are their effects."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import structs

from cambist.plugin import (
    BridgeDeposit,
    Call,
    CallTrial,
    ChainInfo,
    ExchangeEffects,
    Fee,
    Log,
    Movement,
    Receipt,
    Token,
    Transfer,
    Units,
    UnreadablePayloadError,
    Watch,
)
from cambist.testing.memory import Output
from cambist.testing.memory.accounts import Accounts
from cambist.testing.memory.blocks import MinedBlock, Transaction
from cambist.testing.memory.family import named_address, spell
from cambist.testing.memory.keys import SIGNATURE_BYTES, signer_of
from cambist.testing.memory.payload import digest_of, tx_id_of
from cambist.testing.memory.view import MemoryView

from .exchanges import ROUTER
from .fair import FillData, RefundData, topic
from .memory_calls import WORK, MemoryContractChain, approval_of, read_call, said

RELAYER = named_address("relayer")


class RouterTransaction(Transaction, frozen=True, kw_only=True):
    """A transaction that calls a contract, or a contract's own payments: ``paid`` goes from the router."""

    call: Call | None = None
    paid: tuple[Output, ...] = ()
    logs: tuple[Log, ...] = ()


def effects_of(call: Call) -> ExchangeEffects | None:
    if call.to_address != ROUTER:
        return None
    try:
        return msgspec.json.decode(call.data, type=ExchangeEffects)
    except msgspec.MsgspecError:
        return None


class RouterAccounts(Accounts):
    """Accounts, and what each has allowed whom to take of which token."""

    refuses: str | None = None
    takes_less: int = 0
    """How much less than its call says the router takes, so that an allowance is left."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        self.allowed: list[tuple[int, tuple[str, str, str], int]] = []
        self.picky: set[str] = set()

    def allowance(self, owner: str, spender: str, contract: str) -> int:
        key = (owner, spender, contract)
        return next((amount for _, other, amount in reversed(self.allowed) if other == key), 0)

    def allow(self, owner: str, spender: str, contract: str, amount: int, height: int) -> None:
        self.allowed.append((height, (owner, spender, contract), amount))

    def rewind(self, height: int) -> None:
        super().rewind(height)
        self.allowed = [one for one in self.allowed if one[0] <= height]

    def reason(self, sender: str, call: Call, allowed: int | None = None) -> str | None:
        """Return why a call fails, if another amount is allowed than is."""
        words = said(call)
        if "approve" in words:
            spender, amount = words["approve"]
            before = self.allowance(sender, spender, call.to_address) if allowed is None else allowed
            return "allow zero first" if call.to_address in self.picky and before and amount else None
        effects = effects_of(call)
        if effects is None:
            return "no such function"
        if self.refuses is not None:
            return self.refuses
        contract = effects.sold_contract
        if contract is None:
            return None if call.value == effects.sold else "no coin came along"
        there = self.allowance(sender, ROUTER, contract) if allowed is None else allowed
        if there < effects.sold:
            return "not allowed"
        return "not held" if self.balance(sender, contract) < effects.sold else None

    def _fails(self, transaction: Transaction) -> bool:
        call = transaction.call if isinstance(transaction, RouterTransaction) else None
        return super()._fails(transaction) or (call is not None and self.reason(transaction.sender, call) is not None)

    def _move(self, transaction: Transaction, height: int, time: int) -> None:
        super()._move(transaction, height, time)
        if not isinstance(transaction, RouterTransaction):
            return
        for output in transaction.paid:
            self._held.add((output.recipient, output.contract), height, output.amount)
        call = transaction.call
        if call is None:
            return
        words = said(call)
        if "approve" in words:
            self.allow(transaction.sender, words["approve"][0], call.to_address, words["approve"][1], height)
        effects = effects_of(call)
        if effects is not None and effects.sold_contract is not None:
            key = (transaction.sender, ROUTER, effects.sold_contract)
            self.allow(*key, self.allowance(*key) - effects.sold + self.takes_less, height)


class RouterView(MemoryView):
    """Also tells what the router pays, unless nobody tells of coin that moves within transactions."""

    def _transfers(self, block: MinedBlock, watch: Watch) -> Iterator[Transfer]:
        yield from super()._transfers(block, watch)
        chain = self.chain
        for transaction in block.transactions:
            paid = transaction.paid if isinstance(transaction, RouterTransaction) else ()
            for number, output in enumerate(paid if transaction.id not in block.reverted else ()):
                if output.contract is None and not chain.tells_inner_coin:
                    continue
                if chain.family.address_key(output.recipient) not in watch:
                    continue
                yield Transfer(
                    tx_id=transaction.id,
                    position=f"trace:9{number}" if output.contract is None else f"log:9{number}",
                    height=block.header.height,
                    block_hash=block.header.hash,
                    sender=ROUTER,
                    recipient=output.recipient,
                    contract=output.contract,
                    amount=Units(output.amount),
                )


class RouterChain(MemoryContractChain):
    """Swaps at what a call says plus ``bonus``; deposits of its bridge are paid out by ``fill`` of the other chain."""

    view_type = RouterView

    def __init__(self, info: ChainInfo, **more) -> None:
        super().__init__(structs.replace(info, runs_contracts=True), **more)
        self.accounts = RouterAccounts(self.faucet, self.fees, self.faults, self.rules)
        self.bonus = 7
        self.tells_inner_coin = True
        self.pays_nothing = False
        self.skims_percent = 0
        self.fees_paid: list[Output] = []
        """What the router pays beside the output."""

    # What tests do to it.

    def deposits(self) -> list[BridgeDeposit]:
        """Return the bridge's deposits that stand in its blocks."""
        logs = [log for receipt in self._receipts(0, self.height) for log in receipt.logs]
        return [
            msgspec.json.decode(log.data, type=BridgeDeposit) for log in logs if log.topics[:1] == (topic("deposit"),)
        ]

    def fill(self, deposit: BridgeDeposit, *, recipient: str | None = None, units: int | None = None) -> str:
        """Pay a deposit of another chain out; a wrong recipient or amount is a stranger's lie."""
        to_address, amount = recipient or deposit.recipient, deposit.units_out if units is None else units
        data = FillData(deposit_id=deposit.deposit_id, recipient=to_address, units=Units(amount))
        return self._by_hand(
            topic(deposit.deposit_id),
            (),
            data,
            [Output(contract=deposit.contract, recipient=to_address, amount=self._arriving(amount))],
        )

    def pay_back(self, contract: str | None, recipient: str, units: int) -> str:
        """Pay expired deposits back, as many as the units cover."""
        data = RefundData(contract=contract, recipient=recipient, units=Units(units))
        output = Output(contract=contract, recipient=recipient, amount=units)
        return self._by_hand(topic("refund"), (topic(recipient),), data, [output])

    def _by_hand(self, first: bytes, topics: tuple[bytes, ...], data: object, paid: list[Output]) -> str:
        log = Log(address=ROUTER, topics=(first, *topics), data=msgspec.json.encode(data), position="log:0")
        made = RouterTransaction(
            id=self._digest("by hand"), sender=self.faucet, outputs=(), paid=tuple(paid), logs=(log,)
        )
        self.pool.add(made)
        return made.id

    # What the gateway asks.

    async def simulate(self, sender: str, calls: Sequence[Call]) -> Sequence[CallTrial]:
        await self.met("plan")
        trials: list[CallTrial] = []
        allowed: int | None = None
        for call in calls:
            before = trials[-1].refused if trials else None
            refused = before or self.accounts.reason(sender, call, allowed)
            done = CallTrial(work=WORK, moved=self._moved(sender, call))
            trials.append(done if refused is None else CallTrial(refused=refused))
            words = said(call)
            if "approve" in words:
                allowed = words["approve"][1]
        return trials

    def _moved(self, sender: str, call: Call) -> tuple[Movement, ...]:
        effects = effects_of(call)
        if effects is None:
            return ()
        paid = [] if effects.chain != self.info.id else [self._paid(effects)]
        return tuple(
            Movement(contract=one.contract, source=source, recipient=one.recipient, amount=Units(one.amount))
            for source, one in [(sender, self._taken(effects)), *((ROUTER, one) for one in [*paid, *self.fees_paid])]
            if one.contract is not None
        )

    def _taken(self, effects: ExchangeEffects) -> Output:
        amount = effects.sold - self.accounts.takes_less
        return Output(contract=effects.sold_contract, recipient=ROUTER, amount=amount)

    def _paid(self, effects: ExchangeEffects) -> Output:
        """Return what the router pays."""
        amount = self._arriving(effects.bought_min + self.bonus)
        return Output(contract=effects.bought_contract, recipient=effects.recipient, amount=amount)

    def _arriving(self, amount: int) -> int:
        """Return what arrives: a token that keeps a share of each transfer brings less than was sent."""
        return amount * (100 - self.skims_percent) // 100

    async def allowance(self, owner: str, spender: str, token: Token) -> Units:
        await self.met("balance")
        return Units(self.accounts.allowance(owner, spender, str(token.contract)))

    def approval(self, token: Token, spender: str, amount: Units) -> Call:
        return approval_of(str(token.contract), spender, amount)

    def receipt_of(self, tx_id: str) -> Receipt:
        block = self._blocks[self._mined[tx_id]]
        transaction = next(one for one in block.transactions if one.id == tx_id)
        done = tx_id not in block.reverted
        logs = transaction.logs if done and isinstance(transaction, RouterTransaction) else ()
        return Receipt(tx_id=tx_id, block=block.header, succeeded=done, logs=logs)

    def _receipts(self, first: int, last: int) -> Iterator[Receipt]:
        for block in self._blocks[first : last + 1]:
            for transaction in block.transactions:
                yield self.receipt_of(transaction.id)

    def _read(self, raw: bytes) -> Transaction:
        payload, signature = raw[:-SIGNATURE_BYTES], raw[-SIGNATURE_BYTES:]
        try:
            read = read_call(payload)
        except UnreadablePayloadError:
            return super()._read(raw)
        sender, call = spell(signer_of(digest_of(payload), signature)), read.call
        effects = effects_of(call)
        fee = Fee(limit=read.limit, price=read.price, tip=read.tip)
        made = RouterTransaction(
            id=tx_id_of(raw), sender=sender, outputs=(), fee=fee, sequence=read.sequence, call=call
        )
        if effects is None:
            return made
        made = structs.replace(made, outputs=(self._taken(effects),))
        if effects.chain == self.info.id:
            return structs.replace(made, paid=() if self.pays_nothing else (self._paid(effects), *self.fees_paid))
        return structs.replace(made, logs=(_deposit_log(made.id, sender, effects),))


def _deposit_log(tx_id: str, sender: str, effects: ExchangeEffects) -> Log:
    deposit = BridgeDeposit(
        deposit_id=hashlib.sha256(tx_id.encode()).hexdigest()[:12],
        tx_id=tx_id,
        units=effects.sold,
        chain=effects.chain,
        contract=effects.bought_contract,
        units_out=effects.bought_min,
        recipient=effects.recipient,
        refund_to=sender,
        refund_contract=effects.sold_contract,
        fill_deadline=effects.valid_until or 0,
    )
    return Log(address=ROUTER, topics=(topic("deposit"),), data=msgspec.json.encode(deposit), position="log:0")
