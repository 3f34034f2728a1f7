"""The timeline: seen, confirmed, paid, or where and why it stopped."""

from __future__ import annotations

from typing import Protocol

from cambist.domain.payments import Status
from cambist.services.chain_scope import deepest
from cambist.services.receiving.checkout import CheckoutDeposit, CheckoutPayment

from .view import Step
from .wording import Amounts


class Confirming(Protocol):
    """What has confirmations: a transfer in the chain, whatever it is for."""

    @property
    def height(self) -> int: ...
    @property
    def head(self) -> int | None: ...
    @property
    def finalized(self) -> int | None: ...
    @property
    def required_confirmations(self) -> int: ...
    @property
    def confirmed(self) -> bool: ...


def confirmations(deposit: Confirming, *, finality_required: bool = False) -> int:
    """Return how many confirmations the transfer has, at most as many as it needs.

    The last one is shown when the block is final, where that is asked for.
    """
    if deposit.confirmed:
        return deposit.required_confirmations
    if deposit.head is None:
        return 0
    final = deposit.height <= deepest(deposit.height, deposit.finalized, finality_required=finality_required)
    most = deposit.required_confirmations if final else deposit.required_confirmations - 1
    return max(0, min(deposit.head - deposit.height, most))


def needed(payment: CheckoutPayment) -> list[CheckoutDeposit]:
    """Return the first transfers that make up the amount: later dust must not turn the progress back."""
    found: list[CheckoutDeposit] = []
    total = 0
    for deposit in payment.deposits:
        if not deposit.matches:
            continue
        found.append(deposit)
        total += deposit.units
        if total >= payment.expected:
            break
    return found


def steps(
    payment: CheckoutPayment, amounts: Amounts, network: str, *, time_is_up: bool, finality_required: bool
) -> tuple[Step, ...]:
    if payment.status is Status.PENDING:
        return _waiting(amounts, network, time_is_up=time_is_up)
    if payment.status in (Status.DETECTED, Status.CONFIRMING):
        return _under_way(payment, network, finality_required=finality_required)
    if payment.status in (Status.EXPIRED, Status.UNDERPAID):
        return _out_of_time(amounts)
    seen = Step(label="Payment detected", state="done")
    if payment.status is Status.FAILED:
        return (seen, Step(label=f"Taken back by {network}", state="stopped"))
    refunded = payment.status is Status.REFUNDED
    last = Step(label="Refunded", state="done") if refunded else _paid(amounts)
    return (seen, Step(label=f"Confirmed on {network}", state="done"), last)


def _paid(amounts: Amounts) -> Step:
    return Step(label="Paid", detail=amounts.received, state="done")


def _out_of_time(amounts: Amounts) -> tuple[Step, ...]:
    if not amounts.any_received:
        return ()
    seen = "Payment detected" if amounts.is_whole else "Part of the payment detected"
    if amounts.is_whole:
        last = Step(label="It came too late" if amounts.late == "all" else "Not all of it in time", state="stopped")
    else:
        last = Step(label="Time ran out", detail=f"{amounts.missing} missing", state="stopped")
    return (Step(label=seen, detail=amounts.received, state="done"), last)


def _waiting(amounts: Amounts, network: str, *, time_is_up: bool) -> tuple[Step, ...]:
    todo = (Step(label=f"Confirmed on {network}", state="todo"), Step(label="Paid", state="todo"))
    label = "Checking for your payment" if time_is_up else "Waiting for your payment"
    if amounts.any_received:
        return (
            Step(label="First part detected", detail=amounts.received, state="done"),
            Step(label="Waiting for the rest", detail=amounts.missing, state="now"),
            *todo,
        )
    return (Step(label=label, state="now"), *todo)


def _under_way(payment: CheckoutPayment, network: str, *, finality_required: bool) -> tuple[Step, ...]:
    required = payment.required_confirmations
    found = [confirmations(deposit, finality_required=finality_required) for deposit in needed(payment)]
    reached = min(found, default=0)
    return (
        Step(label="Payment detected", state="done"),
        Step(
            label=f"Confirming on {network}",
            detail=f"{reached} of {required}",
            state="now",
            done=reached,
            whole=required,
        ),
        Step(label="Paid", state="todo"),
    )
