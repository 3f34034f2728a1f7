"""Who holds what on a chain in memory, and how many transactions everybody sent: now, and at every height."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cambist.plugin import Fee, Token

from .blocks import Transaction
from .faults import MemoryFaults
from .fees import MemoryFees, work_of
from .rules import MemoryRules
from .stakes import Stakes
from .sums import Sums


class Receipt(Struct, frozen=True):
    """What became of a transaction in its block."""

    reverted: bool
    fee: int


class Charge(Struct, frozen=True):
    """What a transaction costs in a block: native coin, and work that a stake covers. It may be too much to succeed."""

    burned: int
    covered: int = 0
    activating: int = 0
    fails: bool = False


class Accounts:
    """The state of one chain. The faucet, who never runs dry, is asked nothing and counts nothing."""

    def __init__(
        self,
        faucet: str,
        fees: MemoryFees,
        faults: MemoryFaults,
        rules: MemoryRules | None = None,
        tokens: Sequence[Token] = (),
    ) -> None:
        self._faucet = faucet
        self._least = {token.contract: token.least_units for token in tokens}
        self._fees = fees
        self._faults = faults
        self._rules = rules or MemoryRules()
        self._held: Sums[tuple[str, str | None]] = Sums()
        self._sent: Sums[str] = Sums()
        self._paid: Sums[str] = Sums()
        self.stakes = Stakes(self._rules)
        self.first_sequence = 0

    def balance(self, address: str, contract: str | None, height: int | None = None) -> int:
        return self._held.at((address, contract), height)

    def sequence(self, address: str, height: int | None = None) -> int:
        """Return the sequence of the address' next transaction: how many are mined, and where counting begins."""
        return self.first_sequence + self._sent.at(address, height)

    def is_too_little(self, contract: str | None, recipient: str, amount: int) -> bool:
        """Whether so much of a token does not arrive, as its recipient holds none."""
        return 0 < amount < self._least.get(contract, 1) and not self.balance(recipient, contract)

    def is_active(self, address: str) -> bool:
        """Whether the address can send: it was sent native coin, or needs not have been."""
        return not self._rules.activation_price or address == self._faucet or self._paid.at(address) > 0

    def rewind(self, height: int) -> None:
        for sums in (self._held, self._sent, self._paid):
            sums.rewind(height)
        self.stakes.rewind(height)

    def run(self, transaction: Transaction, height: int, time: int) -> Receipt | None:
        """Carry out a transaction in the newest block; None where no block may hold it as things stand."""
        sender = transaction.sender
        if transaction.sequence is not None and transaction.sequence != self.sequence(sender):
            return None
        charge = self._charge(transaction, time)
        if charge is None or self.refusal(transaction, time) is not None:
            return None
        fails = charge.fails or transaction.reverts or self._fails(transaction)
        fee = charge.burned + (0 if fails else charge.activating)
        if fee:
            self._held.add((sender, None), height, -fee)
        if charge.covered:
            self.stakes.use(sender, charge.covered, height, time)
        if sender != self._faucet:
            self._sent.add(sender, height, 1)
        if not fails:
            self._move(transaction, height, time)
        return Receipt(reverted=fails, fee=fee)

    def refusal(self, transaction: Transaction, time: int) -> str | None:
        """Say why no block of this time may hold a transaction whatever its sender pays."""
        if transaction.has_expired(time):
            return f"it expired at {transaction.valid_until}"
        staking = transaction.staking
        if staking is None:
            return None
        if staking.borrower is not None and not self.is_active(staking.borrower):
            return f"{staking.borrower} is not activated"
        return self.stakes.refusal(transaction.sender, staking, time)

    def _move(self, transaction: Transaction, height: int, time: int) -> None:
        sender = transaction.sender
        for output in transaction.outputs:
            self._held.add((sender, output.contract), height, -output.amount)
            self._held.add((output.recipient, output.contract), height, output.amount)
            if output.contract is None and output.amount:
                self._paid.add(output.recipient, height, 1)
        if transaction.staking is not None:
            gained = self.stakes.carry_out(sender, transaction.staking, height, time)
            self._held.add((sender, None), height, gained)

    def _charge(self, transaction: Transaction, time: int) -> Charge | None:
        """Return what it costs; None where the sender cannot pay, or offers less than a block takes."""
        fee, held = transaction.fee, self.balance(transaction.sender, None)
        if fee is None:
            return Charge(0)
        if transaction.valid_until is None:
            enough = fee.price >= self._fees.base_price and transaction.native_needed <= held
            return Charge(min(work_of(transaction), fee.limit) * self._fees.price_paid(fee)) if enough else None
        charge = self._flat_charge(transaction, fee, time)
        pays = self.is_active(transaction.sender) and transaction.given + charge.burned + charge.activating <= held
        return charge if pays else None

    def _flat_charge(self, transaction: Transaction, fee: Fee, time: int) -> Charge:
        price, work = self._fees.flat_price, work_of(transaction)
        done = min(work, fee.limit, fee.limit * fee.price // price)
        covered = min(done, self.stakes.covered(transaction.sender, time))
        newcomers = {one.recipient for one in transaction.outputs if one.contract is None}
        activating = self._rules.activation_price * sum(not self.is_active(one) for one in newcomers)
        fails = done < work or activating > fee.extra
        return Charge((done - covered) * price, covered, activating, fails)

    def _fails(self, transaction: Transaction) -> bool:
        if transaction.fee is not None and transaction.fee.limit < work_of(transaction):
            return True
        if any((output.contract, output.recipient) in self._faults.refusing for output in transaction.outputs):
            return True
        if any(self.is_too_little(one.contract, one.recipient, one.amount) for one in transaction.outputs):
            return True
        return transaction.sender != self._faucet and any(
            transaction.sum_of(contract) > self.balance(transaction.sender, contract)
            for contract in {output.contract for output in transaction.outputs}
        )
