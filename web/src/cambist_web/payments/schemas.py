"""Answers about payments."""

from __future__ import annotations

from collections.abc import Sequence

from cambist.services.receiving.payments.views import PaymentDetail, PaymentView, PublicPayment
from cambist_web.schemas import Answer, MadeAnswer, PageAnswer


class PaymentMade(MadeAnswer, frozen=True, kw_only=True):
    """A payment, and where its customer pays. `idempotent` is there, and true, where it was made before."""

    payment: PaymentView
    checkout_url: str


class PaymentList(PageAnswer, frozen=True, kw_only=True):
    """One page of payments, newest first. `total` counts all pages."""

    payments: Sequence[PaymentView]


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
