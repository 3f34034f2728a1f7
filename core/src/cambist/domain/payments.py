"""The payment machine: one pure table that says what a payment becomes, given its deposits and the time.

E is what has to arrive: expected less the project's tolerance. *Seen* deposits stand in a block, *confirmed* ones
have the required confirmations. *Timely* deposits were mined before the payment's deadline (its expiry, plus
the project's grace for payments priced in the token itself), or were accepted by the merchant. *The deposits needed
for E* are the first ones in chain order that reach it. What was set aside (sent back, or released to the merchant
without regard to the order) counts for nothing but ``receivedAmount``.

======================  ==================================================  ==================  ===================
from                    when                                                to                  event
======================  ==================================================  ==================  ===================
pending                 seen before expiry ≥ E                              detected            payment.detected
pending                 expiry has passed                                   expired             payment.expired
detected, confirming    seen < E, expired, nothing left                     failed              (payment.failed)
detected, confirming    seen < E                                            pending
detected                every deposit needed has ≥ 1 confirmation           confirming          payment.confirming
confirming              confirmed > expected                                overpaid            payment.overpaid
confirming              confirmed ≥ E                                       paid                payment.paid
paid, overpaid          seen < E                                            failed              (payment.failed)
underpaid               seen < what was credited to the order               failed              (payment.failed)
expired, underpaid      timely ≥ E                                          detected            payment.detected
expired                 every timely deposit confirmed, 0 < sum < E         underpaid           (payment.underpaid)
failed                  seen ≥ E                                            detected            payment.detected
paid, overpaid          a refund of it was sent                             refunded            payment.refunded
underpaid               a refund of it was sent                             refunded            payment.refunded
======================  ==================================================  ==================  ===================

A payment is judged only when its chain has been scanned to the head, so the order in which blocks were read
cannot show; and it is judged until nothing more follows, so no state is ever skipped on the way to the merchant.
A refunded payment stays refunded, whatever becomes of its deposits; ``after_failed_refund`` is the way back. One whose
money a reorg takes before its refund is sent, and brings again after it, becomes refunded here. Its merchant is told
that, and not that it is paid: nothing is left to be delivered for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from cambist.plugin import Units


class Status(StrEnum):
    """Where a payment stands."""

    PENDING = "pending"
    DETECTED = "detected"
    CONFIRMING = "confirming"
    PAID = "paid"
    UNDERPAID = "underpaid"
    OVERPAID = "overpaid"
    EXPIRED = "expired"
    FAILED = "failed"
    REFUNDED = "refunded"


OPEN = frozenset({Status.PENDING, Status.DETECTED, Status.CONFIRMING})
"""States in which the order still waits for its money."""

CLOSED_WITH_FUNDS = frozenset({Status.PAID, Status.OVERPAID, Status.UNDERPAID})
"""States in which what belongs to the order is the merchant's to spend."""

STEPS_MAX = 8
"""A judgement longer than the table's longest path is a cycle, and a bug."""


class Deposit(Struct, frozen=True, kw_only=True):
    """A transfer of the right token on the right chain, standing in the chain now.

    ``set_aside`` of its units do not count for the order. ``accepted`` says that the merchant took it for the order,
    however late it came.
    """

    units: Units
    confirmations: int
    confirmed: bool
    mined_at: datetime
    tx_id: str
    set_aside: Units = Units(0)
    accepted: bool = False

    @property
    def counted(self) -> int:
        """What is left of it for the order."""
        return self.units - self.set_aside


class Terms(Struct, frozen=True, kw_only=True):
    """What a payment asks for, and where it stands.

    ``order_units`` is what an ended payment credited to its order, 0 before; ``accepted`` is how far beyond what was
    expected the merchant took surplus for it. ``grace`` is how long after ``expires_at`` money is still taken; zero
    for payments whose exchange rate was locked. ``refund_sent`` says that a refund of it is on its way or has arrived.
    """

    status: Status
    expected: Units
    tolerance_bps: int
    expires_at: datetime
    grace: timedelta
    order_units: Units = Units(0)
    accepted: Units = Units(0)
    refund_sent: bool = False

    @property
    def enough(self) -> Units:
        """E: what has to arrive, rounded so that the tolerance never exceeds its share."""
        return Units(self.expected - self.expected * self.tolerance_bps // 10_000)


class Transition(Struct, frozen=True, kw_only=True):
    """One step of a payment. ``event`` is None where the merchant is not told."""

    status: Status
    event: str | None
    received: Units
    order_units: Units
    tx_id: str | None


class _Facts(Struct, frozen=True, kw_only=True):
    terms: Terms
    deposits: Sequence[Deposit]
    now: datetime

    @property
    def seen(self) -> int:
        return _sum(self.deposits)

    @property
    def confirmed(self) -> int:
        return sum(deposit.counted for deposit in self.deposits if deposit.confirmed)

    @property
    def expired(self) -> bool:
        return self.now >= self.terms.expires_at

    def until(self, deadline: datetime) -> Sequence[Deposit]:
        return [deposit for deposit in self.deposits if deposit.accepted or deposit.mined_at <= deadline]

    @property
    def timely(self) -> Sequence[Deposit]:
        return self.until(self.terms.expires_at + self.terms.grace)

    def needed(self) -> Sequence[Deposit]:
        """Return the first deposits in chain order that reach E; all of them where they do not."""
        total = 0
        for count, deposit in enumerate(self.deposits, start=1):
            total += deposit.counted
            if total >= self.terms.enough:
                return self.deposits[:count]
        return self.deposits


def _sum(deposits: Sequence[Deposit]) -> int:
    return sum(deposit.counted for deposit in deposits)


def _pending(facts: _Facts) -> Status | None:
    # Before expiry the gateway's clock decides, not the block's: miners' clocks run a little ahead.
    in_time = facts.until(facts.terms.expires_at) if facts.expired else facts.deposits
    if _sum(in_time) >= facts.terms.enough:
        return Status.DETECTED
    return Status.EXPIRED if facts.expired else None


def _vanished(facts: _Facts) -> Status | None:
    if facts.seen >= facts.terms.enough:
        return None
    return Status.FAILED if facts.expired and not facts.seen else Status.PENDING


def _detected(facts: _Facts) -> Status | None:
    if (vanished := _vanished(facts)) is not None:
        return vanished
    return Status.CONFIRMING if all(deposit.confirmations >= 1 for deposit in facts.needed()) else None


def _confirming(facts: _Facts) -> Status | None:
    if (vanished := _vanished(facts)) is not None:
        return vanished
    if facts.confirmed < facts.terms.enough:
        return None
    return Status.OVERPAID if facts.confirmed > facts.terms.expected else Status.PAID


def _paid(facts: _Facts) -> Status | None:
    return Status.FAILED if facts.seen < facts.terms.enough else _refunded(facts)


def _refunded(facts: _Facts) -> Status | None:
    return Status.REFUNDED if facts.terms.refund_sent else None


def _late(facts: _Facts) -> Status | None:
    return Status.DETECTED if _sum(facts.timely) >= facts.terms.enough else None


def _underpaid(facts: _Facts) -> Status | None:
    if facts.seen < facts.terms.order_units:
        return Status.FAILED
    return _refunded(facts) or _late(facts)


def _expired(facts: _Facts) -> Status | None:
    if (late := _late(facts)) is not None:
        return late
    timely = facts.timely
    return Status.UNDERPAID if timely and all(deposit.confirmed for deposit in timely) else None


def _failed(facts: _Facts) -> Status | None:
    return Status.DETECTED if facts.seen >= facts.terms.enough else None


_TABLE: dict[Status, Callable[[_Facts], Status | None]] = {
    Status.PENDING: _pending,
    Status.DETECTED: _detected,
    Status.CONFIRMING: _confirming,
    Status.PAID: _paid,
    Status.OVERPAID: _paid,
    Status.UNDERPAID: _underpaid,
    Status.EXPIRED: _expired,
    Status.FAILED: _failed,
    Status.REFUNDED: lambda _: None,
}

REFUNDED_EVENT = "payment.refunded"

EVENTS = {
    Status.DETECTED: "payment.detected",
    Status.CONFIRMING: "payment.confirming",
    Status.PAID: "payment.paid",
    Status.OVERPAID: "payment.overpaid",
    Status.EXPIRED: "payment.expired",
    Status.REFUNDED: REFUNDED_EVENT,
}
"""What the merchant is told on entering a state."""

EXTENDED_EVENTS = {Status.UNDERPAID: "payment.underpaid", Status.FAILED: "payment.failed"}
"""Told only where the project has extended events on: the specification's catalogue has no such names."""

PARTIAL_EVENT = "payment.partial"
"""A deposit came, and the payment still waits for more. Told as the one above."""

HELD_EVENT = "payment.held"
"""A deposit is held until somebody decides about it. Told as the ones above."""


class HeldReason(StrEnum):
    """Why somebody has to decide about a deposit."""

    SURPLUS = "surplus"
    LATE = "late"
    WRONG_TOKEN = "wrong_token"  # noqa: S105  a token on a chain
    WRONG_CHAIN = "wrong_chain"
    FAILED = "failed"
    UNEXPECTED = "unexpected"
    BELOW_MINIMUM = "below_minimum"


def held_reason(status: Status) -> HeldReason:
    """Return why a deposit of the right token is held, by what its payment became."""
    if status is Status.FAILED:
        return HeldReason.FAILED
    return HeldReason.LATE if status in (Status.EXPIRED, Status.UNDERPAID) else HeldReason.SURPLUS


def received(status: Status, deposits: Sequence[Deposit]) -> Units:
    """Return receivedAmount: what was seen while the order waits, what is confirmed once it ended."""
    counts_all = status not in CLOSED_WITH_FUNDS and status is not Status.REFUNDED
    return Units(sum(deposit.units for deposit in deposits if counts_all or deposit.confirmed))


def _order_units(status: Status, facts: _Facts) -> Units:
    if status in (Status.PAID, Status.OVERPAID):
        return Units(min(facts.confirmed, facts.terms.expected + facts.terms.accepted))
    if status is Status.UNDERPAID:
        return Units(_sum(facts.timely))
    return facts.terms.order_units if status is Status.REFUNDED else Units(0)


def _enter(status: Status, facts: _Facts, all_deposits: Sequence[Deposit], *, extended_events: bool) -> Transition:
    event = EVENTS.get(status)
    if event is None and extended_events:
        event = EXTENDED_EVENTS.get(status)
    if facts.terms.refund_sent and status in CLOSED_WITH_FUNDS:
        event = None
    needed = facts.needed()
    return Transition(
        status=status,
        event=event,
        received=received(status, all_deposits),
        order_units=_order_units(status, facts),
        tx_id=needed[-1].tx_id if needed else None,
    )


def judge(
    terms: Terms, deposits: Sequence[Deposit], now: datetime, *, extended_events: bool = False
) -> list[Transition]:
    """Return every step the payment takes now, in order; empty when it stays where it is.

    ``deposits`` are those standing in the chain, in chain order; the chain has been scanned to its head.
    """
    steps: list[Transition] = []
    facts = _Facts(terms=terms, deposits=[deposit for deposit in deposits if deposit.counted], now=now)
    while (status := _TABLE[facts.terms.status](facts)) is not None:
        step = _enter(status, facts, deposits, extended_events=extended_events)
        steps.append(step)
        if len(steps) > STEPS_MAX:
            raise AssertionError(f"the payment machine does not come to rest: {[str(s.status) for s in steps]}")
        facts = replace(facts, terms=replace(facts.terms, status=status, order_units=step.order_units))
    return steps


REFUNDABLE = CLOSED_WITH_FUNDS | {Status.REFUNDED}
"""States in which what was received can be sent back."""


def after_refund(status: Status) -> Status:
    """Return what a payment becomes when a refund of it is on its way.

    One that a reorg took the money from in the meantime stays what it is, until the money comes again.
    """
    return Status.REFUNDED if status in REFUNDABLE else status


def after_failed_refund(status: Status, before: Status | None, *, others: bool) -> Status:
    """Return what a payment becomes when a refund failed for good; ``others`` of it were sent."""
    if status is Status.REFUNDED and before is not None and not others:
        return before
    return status


def accepted_units(expected: Units, order_units: Units, accepted: Units, more: Units) -> Units:
    """Return how far beyond what was expected an order goes that takes ``more`` of its surplus."""
    return Units(max(accepted, order_units + more - expected, 0))
