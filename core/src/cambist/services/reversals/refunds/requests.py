"""What a merchant says to send money back."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from cambist.services.payouts.requests import AddressText
from cambist.services.pricing.quotes import AmountText

REASON_CHARS_MAX = 500


class RefundRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/payment/{paymentId}/refund``. Without an amount, all that is left goes back."""

    to_address: AddressText
    amount: AmountText | None = None
    reason: Annotated[str, Meta(max_length=REASON_CHARS_MAX)] | None = None
    idempotency_key: str | None = None
