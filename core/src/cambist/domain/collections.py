"""When it is worth it to bring a deposit to the main wallet: never for more than it is worth itself."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from msgspec import Struct

BPS = 10_000


class WorthRule(Struct, frozen=True, kw_only=True):
    """The operator's rule. ``fee_share_bps_max`` is the most that the fee may be of the amount."""

    value_min: Decimal
    fee_share_bps_max: int
    age_max: timedelta


class Holding(Struct, frozen=True, kw_only=True):
    """What lies on an address, and what fetching it costs, both in one currency; None where no price is known."""

    value: Decimal | None
    fee: Decimal | None
    oldest_at: datetime


def is_worth_it(holding: Holding, rule: WorthRule, now: datetime) -> bool:
    """Return whether to collect it now.

    It is, when it is large and the fee a small share of it. It also is when it has lain there long enough, if the
    fee is below what it is worth. Where a price is missing nobody can say, and it stays where it is safe.
    """
    if holding.value is None or holding.fee is None or holding.fee >= holding.value:
        return False
    large = holding.value >= rule.value_min
    cheap = holding.fee * BPS <= holding.value * rule.fee_share_bps_max
    old = now - holding.oldest_at >= rule.age_max
    return (large and cheap) or old
