"""Which numbers can be a price at all."""

from __future__ import annotations

from decimal import Decimal

PRICE_MIN = Decimal("1e-15")
PRICE_MAX = Decimal("1e12")


def is_sane(value: Decimal) -> bool:
    """Whether one token may cost this in any currency: finite, above zero, and not absurd."""
    return value.is_finite() and PRICE_MIN <= value <= PRICE_MAX
