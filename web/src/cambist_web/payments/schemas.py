"""Answers about payments."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from cambist.services.payments.views import PaymentDetail, PaymentView, PublicPayment
from cambist_web.schemas import Answer


class PaymentMade(Answer, frozen=True, kw_only=True):
    """A payment, and where its customer pays. `idempotent` is there, and true, where it was made before."""

    payment: PaymentView
    checkout_url: str
    idempotent: bool | UnsetType = UNSET


class PaymentList(Answer, frozen=True, kw_only=True):
    """One page of payments, newest first. `total` counts all pages."""

    payments: Sequence[PaymentView]
    page: int
    limit: int
    total: int


class PaymentAnswer(Answer, frozen=True, kw_only=True):
    """A payment in full."""

    payment: PaymentDetail


class PaymentChanged(Answer, frozen=True, kw_only=True):
    """A payment after something was done with it."""

    payment: PaymentView


class ReceiptLinks(Answer, frozen=True, kw_only=True):
    """Pages to send a customer to."""

    payment_id: str
    public_id: str
    status: str
    receipt_url: str
    checkout_url: str


class PublicAnswer(Answer, frozen=True, kw_only=True):
    """A payment as its customer sees it."""

    payment: PublicPayment
