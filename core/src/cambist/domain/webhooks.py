"""What webhooks are: the catalogue of events, the signature, and when a failed attempt is repeated."""

from __future__ import annotations

import hmac
from datetime import datetime, timedelta
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

_ALL_EVENTS = {**EVENTS, **EXTENDED_EVENTS}


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
