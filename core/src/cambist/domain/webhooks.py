"""What webhooks are: the catalogue of events, the signature, and when a failed attempt is repeated."""

from __future__ import annotations

import hmac
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct

EVENTS = MappingProxyType(
    {
        "payment.detected": "payment",
        "payment.confirming": "payment",
        "payment.paid": "payment",
        "payment.overpaid": "payment",
        "payment.refunded": "payment",
        "payment.rate_recalculated": "payment",
        "payment.expired": "payment",
        "payout.completed": "payout",
        "payout.failed": "payout",
        "withdrawal.completed": "withdrawal",
        "withdrawal.failed": "withdrawal",
        "account.deposit.received": "account_deposit",
        "account.deposit.confirmed": "account_deposit",
    }
)
"""Every event of the catalogue, and the kind of resource it is about."""

EXTENDED_EVENTS = MappingProxyType(
    {
        "payment.underpaid": "payment",
        "payment.failed": "payment",
        "payment.partial": "deposit",
        "payment.held": "deposit",
        "refund.sent": "refund",
        "refund.completed": "refund",
        "refund.failed": "refund",
        "account.deposit.orphaned": "account_deposit",
        "account.deposit.held": "account_deposit",
        "exchange.succeeded": "exchange",
        "exchange.failed": "exchange",
    }
)
"""Told only where a project has extended events on: the specification's catalogue has no such names.

What can happen to a payment more than once is about its deposit or refund: receivers keep one event of a name for each
resource.
"""

TRACKER_EVENTS = MappingProxyType(
    {
        "transaction.detected": "transaction",
        "transaction.confirmed": "transaction",
        "transaction.orphaned": "transaction",
    }
)
"""What trackers are told, each at its own URL and signed with its own secret. No project is told these."""

TEST_EVENT = "webhook.test"
"""What is sent to see whether a receiver checks signatures. It tells of nothing, so nobody acts on it by mistake."""

_ALL_EVENTS = {**EVENTS, **EXTENDED_EVENTS}


TOLD = frozenset({*_ALL_EVENTS, *TRACKER_EVENTS})
"""Every name of what projects and trackers are told."""


def check_event(event: str) -> str:
    """Return the event's name, or raise ValueError where no catalogue has it."""
    if event not in _ALL_EVENTS:
        raise ValueError(f"{event!r} is no webhook event")
    return event


def resource_of(event: str) -> str:
    """Return the kind of resource an event is about: ``data.resource`` in its body."""
    return _ALL_EVENTS[check_event(event)]


def sign_webhook(secret: str | None, timestamp_ms: int, body: bytes) -> str:
    """Return the lower-case hex HMAC-SHA256 over timestamp, dot and body; empty without a secret.

    The key is the 64-character hex text itself, as ASCII, which is what Stripe-style verifiers take.
    """
    if not secret:
        return ""
    return hmac.digest(secret.encode(), b"%d.%b" % (timestamp_ms, body), "sha256").hex()


class SignatureCheck(StrEnum):
    """What a receiver does with signatures, as its answers to a genuine and a forged one show."""

    VERIFIED = "verified"
    UNCHECKED = "unchecked"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    UNCLEAR = "unclear"


_REFUSES_EVERYBODY = frozenset({408, 425, 429})
"""Of the 4xx, those that say nothing of the signature."""


def judge_signature_check(genuine: int | None, forged: int | None) -> SignatureCheck:
    """Say what two statuses show, each None where no answer came: of what was signed rightly, and what was not.

    ``REFUSED`` is one that does not take what is genuine. ``UNCLEAR`` is one that takes it, and neither takes nor
    refuses what is forged.
    """
    if genuine is None:
        return SignatureCheck.UNREACHABLE
    if not _is_success(genuine):
        return SignatureCheck.REFUSED
    if forged is not None and _is_success(forged):
        return SignatureCheck.UNCHECKED
    refuses = forged is not None and forged // 100 == 4 and forged not in _REFUSES_EVERYBODY  # noqa: PLR2004  4xx
    return SignatureCheck.VERIFIED if refuses else SignatureCheck.UNCLEAR


def _is_success(status: int) -> bool:
    return 200 <= status < 300  # noqa: PLR2004  the 2xx of HTTP


class RetrySchedule(Struct, frozen=True, kw_only=True):
    """How often an event is tried again after the first attempt, and how long each wait is."""

    retries: int = 5
    base_delay_ms: int = 1000

    def next_due(self, attempts: int, now: datetime) -> datetime | None:
        """Return when to try again after so many failed attempts; None when it is time to give up.

        Retry number n, counted from 0, waits ``base_delay_ms * 2**n`` from the moment the attempt before failed.
        """
        if attempts > self.retries:
            return None
        return now + timedelta(milliseconds=self.base_delay_ms << (attempts - 1))
