"""When it is worth it to bring a deposit to the main wallet: never for more than it is worth itself."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated

from msgspec import Meta

from .usage import Group, UsdText

BPS = 10_000


class CollectionRule(Group, frozen=True, kw_only=True):
    """When moving a confirmed deposit to the main wallet is worth it.

    It is collected when it is worth ``min_value_usd`` and the fee is at most ``max_fee_share_bps`` of it, or when it
    has lain there for ``max_age_hours``. ``batched`` lets chains that can (EIP-7702) move many at once.
    """

    enabled: bool = True
    min_value_usd: UsdText = "5"
    max_fee_share_bps: Annotated[int, Meta(ge=0, le=10_000)] = 500
    max_age_hours: Annotated[int, Meta(ge=1, le=87_600)] = 168
    batched: bool = False

    @property
    def min_value(self) -> Decimal:
        """The least worth, in US dollars."""
        return Decimal(self.min_value_usd)


def is_worth_it(
    value: Decimal | None, fee: Decimal | None, oldest_at: datetime, rule: CollectionRule, now: datetime
) -> bool:
    """Return whether to collect now what is worth ``value`` and costs ``fee`` to fetch, both in US dollars.

    Never for a fee as high as what it is worth. Where a price is missing (None) nobody can say, and it stays where it
    is safe.
    """
    if value is None or fee is None or fee >= value:
        return False
    large = value >= rule.min_value
    cheap = fee * BPS <= value * rule.max_fee_share_bps
    old = now - oldest_at >= timedelta(hours=rule.max_age_hours)
    return (large and cheap) or old
