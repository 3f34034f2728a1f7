"""Which of the intents that wait on one address are sent now, and what the others lack: facts in, allocation out.

::

    waiting ──fund──> funded ──(the chain plans them)──allocate──> ready, needs a loan, needs gas, too dear, refused
                 └──> short: the address has not received it     └──> maybe spent
                 └──> maybe spent: a balance may be older than what has just left

Amounts are in smallest units, by the contract of their token; None stands for native coin. An address is a gas station
(``gas``), a merchant's main wallet (``wallet``), a one-time address (``payment``) or a permanent one (``account``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct, structs

from cambist.plugin import Fee, Plan, Step, Units

RECEIVING = frozenset({"payment", "account"})
"""Addresses that customers pay to: what comes there is collected, and no more gas is sent there than that takes."""

UNPLANNED = "The chain has no plan for it."


class Outgoing(Protocol):
    """What is asked of an intent: the token that it sends, and how much of it leaves the address."""

    @property
    def contract(self) -> str | None: ...
    @property
    def outgoing_units(self) -> int: ...


T = TypeVar("T", bound=Outgoing)


class PendingOutflow(Struct, frozen=True):
    """What an address is sending: how many nonce slots are open, and what may still leave it, by contract.

    ``covered`` is the work that it counts on not to pay for. ``just_mined`` has left it in a block so new that a
    balance may be older. ``coin`` is what of the native coin is sent, without the fees.
    """

    slots: int
    covered: int
    units: Mapping[str | None, int]
    just_mined: Mapping[str | None, int]
    coin: int = 0


class SpendableBalance(Struct, kw_only=True):
    """What an address can spend: what the chain says, less what is already on its way out.

    ``gas`` is the part of its native coin that may be spent on fees; None: all of it. Of that, ``kept`` is for nothing
    else, as there is something to collect in its place. ``maybe_spent`` is what it may have beyond ``units``, unless
    the balance is older than the latest that left. ``counted_twice`` is the part of it, in native coin, that the
    balance may lack already because it waits to be mined. ``lacks_coin``: a reorg has taken what is being sent, so that
    no gas that comes would be left for fees. ``reserved`` is what was set aside of it for the address to keep: once,
    however many transactions name it, for none of them spends it.
    """

    units: dict[str | None, int]
    gas: int | None
    maybe_spent: Mapping[str | None, int]
    counted_twice: int = 0
    kept: int = 0
    lacks_coin: bool = False
    reserved: int = 0

    @property
    def for_fees(self) -> int:
        """How much there is for fees; never below zero unless fees were paid out of what is not for fees."""
        native = max(0, self.units[None])
        return native if self.gas is None else min(native, self.gas)

    def copy(self) -> SpendableBalance:
        """Return one that can be reserved from without changing this."""
        return structs.replace(self, units=dict(self.units))

    def lacking(self, contract: str | None, units: int) -> int:
        """Return how many units there are too few to send so many; zero or less where there are enough."""
        kept = self.kept if contract is None and units else 0
        return units + kept - self.units[contract]

    def reserve(self, contract: str | None, units: int) -> bool:
        """Set units aside, or return False where there are not enough."""
        if self.lacking(contract, units) > 0:
            return False
        self.units[contract] -= units
        return True

    def reserve_fee(self, cost: int) -> bool:
        """Set a fee aside, or return False where there is not enough for fees."""
        if self.for_fees < cost:
            return False
        self.units[None] -= cost
        if self.gas is not None:
            self.gas -= cost
        return True


def spendable_balance(
    held: Mapping[str | None, int],
    outflow: PendingOutflow,
    gas: int | None,
    *,
    kept: int = 0,
    balances_count_waiting: bool,
) -> SpendableBalance:
    """Return what can be spent of what the chain says is held; native coin is always among it.

    Where balances count what waits to be mined, that is subtracted twice: too little is known, until it is mined.
    """
    twice = outflow.units if balances_count_waiting else {}
    return SpendableBalance(
        units={
            contract: units - outflow.units.get(contract, 0) - outflow.just_mined.get(contract, 0)
            for contract, units in held.items()
        },
        gas=gas,
        maybe_spent={contract: outflow.just_mined.get(contract, 0) + twice.get(contract, 0) for contract in held},
        counted_twice=twice.get(None, 0),
        kept=kept,
        lacks_coin=not balances_count_waiting and held[None] < outflow.coin,
    )


class Funding(Struct, Generic[T], frozen=True, kw_only=True):
    """Whether there are enough units for each intent. ``left`` is the balance without those of the funded ones."""

    left: SpendableBalance
    funded: list[T] = []
    short: list[T] = []
    maybe_spent: list[T] = []


def fund(intents: Sequence[T], balance: SpendableBalance, room: int) -> Funding[T]:
    """Give units to intents in their order, until ``room`` of them have theirs. What is short takes no room."""
    left = balance.copy()
    found: Funding[T] = Funding(left=left)
    for intent in intents:
        if len(found.funded) >= room:
            break
        if left.reserve(intent.contract, intent.outgoing_units):
            found.funded.append(intent)
        elif left.lacking(intent.contract, intent.outgoing_units) <= left.maybe_spent.get(intent.contract, 0):
            found.maybe_spent.append(intent)
        else:
            found.short.append(intent)
    return found


class Allocation(Struct, Generic[T], frozen=True, kw_only=True):
    """What becomes of each funded intent. ``left`` is the balance without what the ready ones send and cost."""

    left: SpendableBalance
    ready: list[tuple[T, Step]] = []
    refused: list[tuple[T, str]] = []
    above_ceiling: list[tuple[T, str]] = []
    needs_gas: list[tuple[T, Fee]] = []
    needs_loan: list[tuple[T, Units]] = []
    maybe_spent: list[T] = []


def allocate(purpose: str, funding: Funding[T], plans: Sequence[Plan]) -> Allocation[T]:
    """Classify the funded intents by their plans, in their order.

    Behind one that has to wait for its fee, the others of the address wait, too: first come, first served. One that
    costs more than the operator allows has none of them wait for its fee.
    """
    left = funding.left.copy()
    if purpose == "gas":
        # What a gas station sends and the fees of that come out of one balance: both for the first, then for the next.
        left.units[None] += sum(intent.outgoing_units for intent in funding.funded)
    found: Allocation[T] = Allocation(left=left)
    for intent, plan in zip(funding.funded, plans, strict=True):
        step = plan.step
        if plan.above_ceiling is not None:
            found.above_ceiling.append((intent, plan.above_ceiling))
            continue
        if plan.refused is not None or step is None:
            found.refused.append((intent, plan.refused or UNPLANNED))
            continue
        more = max(0, step.fee.reserve - left.reserved)
        if purpose in RECEIVING:
            step = structs.replace(step, fee=fee_within(step.fee, left.for_fees - more))
        cost = step.fee.cost_max + more + (intent.outgoing_units if purpose == "gas" else 0)
        if found.needs_gas or left.for_fees + left.counted_twice < cost:
            found.needs_gas.append((intent, step.fee))
        elif not left.reserve_fee(cost):
            found.maybe_spent.append(intent)
        else:
            left.reserved += more
            if plan.loan:
                found.needs_loan.append((intent, plan.loan))
            else:
                found.ready.append((intent, step))
    if not (found.needs_gas or found.maybe_spent):
        # While it waits to be mined, that coin is missing to those that come next: they have theirs beside it.
        following = sum(step.fee.cost_max for _, step in found.ready)
        found.ready[:] = [(intent, _with_spare(step, left, following)) for intent, step in found.ready]
    return found


def _with_spare(step: Step, left: SpendableBalance, following: int) -> Step:
    """Return the step with its spare work allowed, where what is left when all have their fees pays for it.

    ``following`` is how much is left even then.
    """
    fee = structs.replace(step.fee, limit=step.fee.limit + step.fee.spare, spare=0)
    more = fee.cost_max - step.fee.cost_max
    enough = more and left.for_fees >= more + following and left.reserve_fee(more)
    return structs.replace(step, fee=fee) if enough else step


def fee_within(fee: Fee, units: int) -> Fee:
    """Return the fee with the highest price that so much pays, if the next block takes it at that price."""
    paid = fee.limit - fee.covered
    price = fee.price if paid <= 0 else min(fee.price, (units - fee.extra) // paid)
    return fee if fee.price_now is None or price < fee.price_now else structs.replace(fee, price=price)


def lean_price(fee: Fee) -> int:
    """Return a price with a quarter of the headroom that the plan offers.

    What a one-time address has left after its collection lies there for good. So it gets no more than lets prices
    rise a little until its transaction is mined; where they rise more, it gets the rest when it needs it.
    """
    least = fee.price if fee.price_now is None else fee.price_now
    return least + (fee.price - least) // 4


def gas_needed(
    purpose: str, fees: Sequence[Fee], left: SpendableBalance, *, short_of_native: bool, wallet_transfers: int
) -> int:
    """Return how much native coin an address lacks for these fees; zero or less is nothing.

    A main wallet gets enough for ``wallet_transfers`` of them, for those to come. Where native coin is short because
    fees were paid out of it, that is replaced. What is being sent and not there any more is not: gas is for fees.
    """
    if left.lacks_coin:
        return 0
    if not fees:
        return -left.for_fees if short_of_native else 0
    needed: int = sum(fee.cost_max for fee in fees)
    if purpose in RECEIVING:
        needed = sum(fee.cost_at(lean_price(fee)) for fee in fees)
    if purpose == "wallet":
        needed = max(needed, needed // len(fees) * wallet_transfers)
    return needed + max(0, max(fee.reserve for fee in fees) - left.reserved) - left.for_fees
