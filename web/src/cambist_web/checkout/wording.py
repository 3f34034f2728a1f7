"""The sentences of the pages: what each state of a payment is called, and what its customer should know."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from cambist.domain.payments import Status

from .view import Tone

HOURS_A_DAY = 24

Late = Literal["nothing", "part", "all"]
"""How much of what arrived did so after the time had run out. ``part`` may be all, where not all of it is known."""


class Words(Struct, frozen=True, kw_only=True):
    """How one situation is told."""

    chip: str
    tone: Tone
    headline: str
    message: str


class Amounts(Struct, frozen=True, kw_only=True):
    """The amounts that sentences are made of, with their symbol: ``2.5 USDC``; ``share`` is ``2.5 of 10 USDC``.

    ``is_whole`` says that all arrived that was expected, whenever it did.
    """

    expected: str
    received: str
    missing: str
    excess: str
    share: str
    any_received: bool
    is_whole: bool
    late: Late


def words(status: Status, amounts: Amounts, *, shop: str, network: str, time_is_up: bool) -> Words:
    """Say where the payment stands. ``time_is_up``: past expiry, but not yet judged."""
    if status is Status.PENDING:
        return _pending(amounts, network, time_is_up=time_is_up)
    if status in (Status.EXPIRED, Status.UNDERPAID):
        return _too_little(status, amounts, shop)
    return _underway_or_over(status, amounts, shop, network)


def closed(shop: str) -> Words:
    """Say that nobody shall begin to pay: the operator has suspended the merchant."""
    return Words(
        chip="Closed",
        tone="care",
        headline="No payments at present",
        message=f"{shop} takes no payments at present. Please do not send anything. If you have sent something already,"
        " it is not lost: this page shows it when it arrives.",
    )


def _underway_or_over(status: Status, amounts: Amounts, shop: str, network: str) -> Words:
    """Tell of what runs by itself, and of how it ended."""
    said: dict[Status, tuple[str, Tone, str, str]] = {
        Status.DETECTED: (
            "Detected",
            "work",
            "Payment detected",
            f"Your transfer is on {network}. Nothing more to do: it gets confirmed, and you may close this page.",
        ),
        Status.CONFIRMING: (
            "Confirming",
            "work",
            "Confirming your payment",
            f"{network} is confirming your transfer. Nothing more to do, and you may close this page.",
        ),
        Status.PAID: ("Paid", "good", "Payment complete", f"{shop} has received your payment. Thank you."),
        Status.OVERPAID: (
            "Paid, with excess",
            "good",
            "Payment complete",
            (
                f"You sent {amounts.excess} more than needed. Your order is paid, and the excess is held for you:"
                f" please contact {shop} to get it back."
            ),
        ),
        Status.FAILED: (
            "Failed",
            "bad",
            "Payment failed",
            (
                f"{network} took the transfer back, so nothing arrived. Please look into your wallet, and contact"
                f" {shop} if the money has left it."
            ),
        ),
        Status.REFUNDED: (
            "Refunded",
            "care",
            "Payment refunded",
            f"{shop} has sent a refund. Depending on the network it takes some minutes to reach the wallet.",
        ),
    }
    chip, tone, headline, message = said[status]
    return Words(chip=chip, tone=tone, headline=headline, message=message)


def _pending(amounts: Amounts, network: str, *, time_is_up: bool) -> Words:
    if time_is_up:
        return Words(
            chip="Time is up",
            tone="care",
            headline="Time is up",
            message="We are checking whether your payment arrived in time. If you have not sent it yet, please do"
            " not send it now.",
        )
    if amounts.any_received:
        return Words(
            chip="Partly paid",
            tone="care",
            headline=f"Send {amounts.missing} more",
            message=f"{amounts.share} received, send {amounts.missing} more.",
        )
    return Words(
        chip="Waiting",
        tone="wait",
        headline=f"Send {amounts.expected}",
        message=f"Send exactly this amount on {network}. This page follows your payment by itself.",
    )


def _too_little(status: Status, amounts: Amounts, shop: str) -> Words:
    stop = "Please do not send anything to this address any more."
    if not amounts.any_received:
        return Words(
            chip="Expired",
            tone="bad",
            headline="This payment has expired",
            message=f"No transfer arrived in time. {stop} Start again at {shop} if you still want to pay.",
        )
    arrived = {
        "nothing": f"{amounts.share} arrived before the time ran out.",
        "part": f"{amounts.share} arrived, but not all of it before the time ran out.",
        "all": f"{amounts.share} arrived after the time had run out.",
    }[amounts.late]
    contact = f"The money is safe: contact {shop}, who can accept or refund it."
    if status is Status.UNDERPAID:
        return Words(
            chip="Underpaid",
            tone="care",
            headline="Only a part arrived" if amounts.late == "nothing" else "Only a part arrived in time",
            message=f"{arrived} {contact} {stop}",
        )
    return Words(chip="Expired", tone="bad", headline="This payment has expired", message=f"{arrived} {contact} {stop}")


def clock_text(left: timedelta) -> str:
    """Write a duration as a clock does: ``59:12``, ``1:05:09``, and ``6 d 23 h`` from a day on."""
    seconds = max(0, int(left.total_seconds()))
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    if days := hours // HOURS_A_DAY:
        return f"{days} d {hours % HOURS_A_DAY} h"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute:02}:{second:02}"


def moment_text(moment: datetime, *, from_day: datetime | None = None) -> str:
    """Write a time for people, without the date where it is within the same day.

    Always in UTC, for the server does not know where they are.
    """
    clock = f"{moment:%H:%M} UTC"
    same_day = from_day is not None and from_day.date() == moment.date()
    return clock if same_day else f"{moment.day} {moment:%b %Y}, {clock}"
