"""When it is worth it to bring a deposit to the main wallet: never for more than it is worth itself."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from .usage import Group, UsdText

BPS = 10_000
RETRY_PAUSES = tuple(timedelta(minutes=each) for each in (1, 4, 16, 64, 256, 360))
"""So long what has failed once, twice and so on is not collected again, unless somebody asks for it.

A transfer is tried before it is sent. One that fails all the same was mostly overtaken by another, and payouts may wait
for it; one that goes on failing costs a fee each time.
"""
FAILURES_COUNT_FOR = timedelta(days=7)
"""How far back failures are counted: longer than all pauses together."""

ESTIMATE_AGE_PARTS = 20
"""An estimate holds for that part of the time for which something has lain there."""
ESTIMATE_HOLDS_MAX = timedelta(hours=2)
"""However long it has: when a fee falls counts no later."""


class UncollectedReason(StrEnum):
    """Why confirmed money on an address is not brought to the main wallet. Each is explained to operators."""

    NOT_SENDABLE = "token_not_sendable"
    FAILED_LATELY = "failed_lately"
    OFF = "collecting_off"
    FEES_ABOVE_CEILING = "fees_above_ceiling"
    REFUSED = "refused"
    PRICE_MISSING = "price_missing"
    FEE_ABOVE_VALUE = "fee_above_value"
    BELOW_MINIMUM = "below_minimum"
    FEE_ABOVE_SHARE = "fee_above_share"


class Hindrance(StrEnum):
    """Why the engine's last check gave a wish no answer. The wish stays, and is checked again with all else."""

    NO_GAS_STATION = "no_gas_station"
    NO_NODE_ANSWERS = "no_node_answers"
    COST_UNKNOWN = "cost_unknown"


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


class Holding(Struct, frozen=True, kw_only=True):
    """What is known of one token on one address before anything is asked of the chain.

    ``oldest_at`` is when the oldest of it was confirmed, ``retry_at`` until when it rests after failures.
    """

    oldest_at: datetime
    retry_at: datetime | None = None
    is_sendable: bool = True


def estimate_holds_for(one: Holding, now: datetime) -> timedelta:
    """Return for how long it is not asked again what a collection costs: the longer something lies, the less often."""
    return min((now - one.oldest_at) / ESTIMATE_AGE_PARTS, ESTIMATE_HOLDS_MAX)


class Cost(Struct, frozen=True, kw_only=True):
    """What the chain says of a collection, in US dollars: what it brings, and the most that it may cost.

    None where a price is missing. ``refused`` is why the chain would not have the transfer.
    """

    value: Decimal | None = None
    fee: Decimal | None = None
    refused: str | None = None
    above_ceiling: bool = False


class Wish(Struct, frozen=True, kw_only=True):
    """An operator wants it now, whatever its size and age, for a fee of at most this share, below the whole.

    None: the rule's own share.
    """

    max_fee_share_bps: int | None = None


class Judgement(Struct, frozen=True, kw_only=True):
    """Why something is not collected, with what was known then. ``detail`` is in the chain's words.

    ``until`` is when the reason ends by itself.
    """

    reason: UncollectedReason
    detail: str | None = None
    value: Decimal | None = None
    fee: Decimal | None = None
    until: datetime | None = None

    def is_news_to(self, before: Judgement | None) -> bool:
        """Whether it has to be written down: another reason, or figures that moved by more than a tenth."""
        if before is None or (self.reason, self.detail, self.until) != (before.reason, before.detail, before.until):
            return True
        return _moved(before.value, self.value) or _moved(before.fee, self.fee)


def _moved(before: Decimal | None, now: Decimal | None) -> bool:
    if before is None or now is None:
        return before is not now
    return abs(now - before) * 10 > abs(before)


def judge_unplanned(one: Holding, rule: CollectionRule, wish: Wish | None, now: datetime) -> Judgement | None:
    """Say why something is not collected whatever it costs; None where the chain is to be asked what it costs."""
    if not one.is_sendable:
        return Judgement(reason=UncollectedReason.NOT_SENDABLE)
    if wish is None and one.retry_at is not None and now < one.retry_at:
        return Judgement(reason=UncollectedReason.FAILED_LATELY, until=one.retry_at)
    if wish is None and not rule.enabled:
        return Judgement(reason=UncollectedReason.OFF)
    return None


def judge(one: Holding, cost: Cost, rule: CollectionRule, wish: Wish | None, now: datetime) -> Judgement | None:
    """Say why something is not collected; None where it is to be collected now.

    Never for a fee as high as what it is worth, whoever asks. Where a price is missing nobody can say, and it stays
    where it is safe.
    """
    before = judge_unplanned(one, rule, wish, now)
    if before is not None:
        return before
    if cost.above_ceiling:
        return Judgement(reason=UncollectedReason.FEES_ABOVE_CEILING)
    reason = UncollectedReason.REFUSED if cost.refused is not None else _why_not_worth_it(one, cost, rule, wish, now)
    if reason is None:
        return None
    return Judgement(reason=reason, detail=cost.refused, value=cost.value, fee=cost.fee)


def _why_not_worth_it(
    one: Holding, cost: Cost, rule: CollectionRule, wish: Wish | None, now: datetime
) -> UncollectedReason | None:
    value, fee = cost.value, cost.fee
    if value is None or fee is None:
        return UncollectedReason.PRICE_MISSING
    if fee >= value:
        return UncollectedReason.FEE_ABOVE_VALUE
    if wish is not None:
        share = rule.max_fee_share_bps if wish.max_fee_share_bps is None else wish.max_fee_share_bps
        return None if fee * BPS <= value * share else UncollectedReason.FEE_ABOVE_SHARE
    if now - one.oldest_at >= timedelta(hours=rule.max_age_hours):
        return None
    if value < rule.min_value:
        return UncollectedReason.BELOW_MINIMUM
    return None if fee * BPS <= value * rule.max_fee_share_bps else UncollectedReason.FEE_ABOVE_SHARE
