"""Answers about quotes."""

from __future__ import annotations

from datetime import datetime

from cambist_web.schemas import Answer


class QuoteAnswer(Answer, frozen=True, kw_only=True):
    """What a payment made now would ask for. `rate` is null where the price is in tokens."""

    rate: str | None
    expected_amount: str
    expected_amount_raw: str
    decimals: int
    source: str
    valid_until: datetime
