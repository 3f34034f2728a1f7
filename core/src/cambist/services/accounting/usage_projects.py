"""Whose project it was that credits were used for: a record names something, and that belongs to one project."""

from __future__ import annotations

from typing import Final, TypeVar

from sqlalchemy import ScalarSelect, Select, case, func, select

from cambist.db.models import (
    Account,
    Exchange,
    Payment,
    Payout,
    Project,
    Tracker,
    TrackerTransaction,
    UsageRecord,
    WebhookDelivery,
)

T = TypeVar("T")

# What gave credits back names the operation before what it was, an account's record the chain behind it.
_NAMED = func.split_part(UsageRecord.reference, ":", case((UsageRecord.operation == "return", 2), else_=1))


def _of_record(wanted: Select[T]) -> ScalarSelect[T]:
    """Return what is read for each record, of which ``wanted`` speaks."""
    return wanted.correlate(UsageRecord).scalar_subquery()


_PAYOUT = _of_record(select(Payout.project_pk).where(Payout.payout_id == _NAMED))
_DELIVERY = _of_record(select(WebhookDelivery.project_pk).where(WebhookDelivery.delivery_id == _NAMED))
_PROJECT_PK = case(
    {
        "pay": _of_record(select(Payment.project_pk).where(Payment.payment_id == _NAMED)),
        "acc": _of_record(select(Account.project_pk).where(Account.account_id == _NAMED)),
        "po": _PAYOUT,
        "ref": _PAYOUT,
        "wd": _PAYOUT,
        "xch": _of_record(select(Exchange.project_pk).where(Exchange.txn_id == _NAMED)),
        "dlv": _DELIVERY,
        "evt": _DELIVERY,
        "mov": _of_record(
            select(Tracker.project_pk)
            .join(TrackerTransaction, TrackerTransaction.tracker_pk == Tracker.id)
            .where(TrackerTransaction.transaction_id == _NAMED)
        ),
    },
    value=func.split_part(_NAMED, "_", 1),
)
PROJECT_ID: Final = _of_record(select(Project.project_id).where(Project.id == _PROJECT_PK))
"""The project's public id; null where it is the merchant's own, such as a collection, or is not kept any more."""
