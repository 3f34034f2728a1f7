"""Which of several sources' prices to believe, if any.

::

    observations ── fresh? ── near the median of the fresh? ── enough of them? ── no wild jump? ── a rate
                      │ no            │ no                       │ no              │ no
                   left out        left out                   refused           refused

A price that is refused is not used; nothing is quoted until there is a better one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from enum import StrEnum
from typing import Literal, TypeAlias

from msgspec import Struct

from .money import RATE_DECIMALS_MAX

RATE_MAX = Decimal("1e12")
"""No token costs more, in any currency; a source that says so is wrong."""

CLOCK_SKEW_S = 60
"""How far in the future an observation may lie: sources' clocks are not ours. Beyond it would never grow old."""

_EXACT = Context(prec=200)
_STEP = Decimal(1).scaleb(-RATE_DECIMALS_MAX)


Verdict: TypeAlias = Literal["used", "too_old", "too_far", "impossible"]
"""Whether a price is believed: one may be older than its limit, far from the others, or no price at all."""


class Observation(Struct, frozen=True, kw_only=True):
    """What one source said, and when it says it was so."""

    source: str
    value: Decimal
    observed_at: datetime


class Rate(Struct, frozen=True, kw_only=True):
    """What one token costs: fiat per whole token, who says so, and as of when.

    ``source`` is one source's name, or ``median(coingecko,kraken)``. ``observed_at`` is the oldest of the
    observations behind it.
    """

    value: Decimal
    source: str
    observed_at: datetime


class RatePolicy(Struct, frozen=True, kw_only=True):
    """When a price may be used.

    ``max_age_s``: an older observation is left out. ``min_sources``: so many must agree. ``deviation_max``: an
    observation further than this part from the median is left out, and so many left out that no majority remains
    means that nobody can be believed. ``jump_factor_max``: a rate so many times above or below the last one is
    believed only from two sources, as long as the last one is not older than ``jump_memory_s``.
    """

    max_age_s: int = 300
    min_sources: int = 1
    deviation_max: Decimal = Decimal("0.1")
    jump_factor_max: int = 2
    jump_memory_s: int = 3600


class NoRate(StrEnum):
    """Why no price is used. `JUMP` is a single source that says something wildly different than just before."""

    NO_PRICE = "NO_PRICE"
    NONE_FRESH = "NONE_FRESH"
    TOO_FEW = "TOO_FEW"
    DISAGREE = "DISAGREE"
    JUMP = "JUMP"


class NoRateError(Exception):
    """The observations give no rate that may be used; the text says why, and ``why`` is its code.

    A rate from before is still as good as its age.
    """

    def __init__(self, why: NoRate, text: str) -> None:
        super().__init__(text)
        self.why = why


class DoubtfulRateError(NoRateError):
    """The observations speak against each other or against the rate from before, so that is doubtful, too."""


def is_fresh(observed_at: datetime, now: datetime, max_age_s: int) -> bool:
    """Whether an observation may still be used: not too old, and not from the future."""
    return -timedelta(seconds=CLOCK_SKEW_S) <= now - observed_at <= timedelta(seconds=max_age_s)


def median(values: Sequence[Decimal]) -> Decimal:
    """Return the middle value, or the middle of the two middle ones, with at most 18 decimals."""
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    middle = _EXACT.divide(_EXACT.add(low, high), Decimal(2))
    return middle.quantize(_STEP, rounding=ROUND_HALF_EVEN, context=_EXACT).normalize(_EXACT)


def judge_observations(
    observations: Sequence[Observation], *, now: datetime, policy: RatePolicy
) -> Sequence[tuple[Observation, Verdict]]:
    """Say of each observation whether it is believed, beside the others."""
    judged: list[tuple[Observation, Verdict]] = []
    fresh = [seen for seen in observations if _why_left_out(seen, now, policy) is None]
    middle = median([seen.value for seen in fresh]) if fresh else None
    for seen in observations:
        verdict = _why_left_out(seen, now, policy)
        if verdict is None and middle is not None and abs(seen.value - middle) > policy.deviation_max * middle:
            verdict = "too_far"
        judged.append((seen, verdict or "used"))
    return judged


def _why_left_out(seen: Observation, now: datetime, policy: RatePolicy) -> Verdict | None:
    if not seen.value.is_finite() or not _STEP <= seen.value <= RATE_MAX:
        return "impossible"
    return None if is_fresh(seen.observed_at, now, policy.max_age_s) else "too_old"


def outliers(judged: Sequence[tuple[Observation, Verdict]]) -> Sequence[Observation]:
    """Return the sources that are far off while at least two others agree: they are wrong, and not the market."""
    agreeing = [seen for seen, verdict in judged if verdict == "used"]
    return [seen for seen, verdict in judged if verdict == "too_far"] if len(agreeing) >= 2 else []  # noqa: PLR2004


def spread(values: Sequence[Decimal]) -> Decimal | None:
    """Return by which part of the lowest the highest is above it; None for fewer than two."""
    if len(values) < 2:  # noqa: PLR2004
        return None
    low, high = min(values), max(values)
    return _EXACT.divide(_EXACT.subtract(high, low), low).quantize(_STEP, context=_EXACT).normalize(_EXACT)


def agree_on_rate(
    observations: Sequence[Observation], *, now: datetime, policy: RatePolicy, last: Rate | None = None
) -> Rate:
    """Return the rate that the observations support, or raise NoRateError."""
    judged = judge_observations(observations, now=now, policy=policy)
    fresh = [seen for seen, verdict in judged if verdict in {"used", "too_far"}]
    agreeing = [seen for seen, verdict in judged if verdict == "used"]
    if not observations:
        raise NoRateError(NoRate.NO_PRICE, "no source has a price")
    if not fresh:
        raise NoRateError(NoRate.NONE_FRESH, f"none of {len(observations)} prices is fresh")
    if 2 * len(agreeing) <= len(fresh):
        raise DoubtfulRateError(NoRate.DISAGREE, "the sources disagree")
    if len(agreeing) < policy.min_sources:
        raise NoRateError(NoRate.TOO_FEW, f"{len(agreeing)} of the {policy.min_sources} sources needed have a price")
    names = sorted(seen.source for seen in agreeing)
    rate = Rate(
        value=median([seen.value for seen in agreeing]),
        source=names[0] if len(names) == 1 else f"median({','.join(names)})",
        observed_at=min(seen.observed_at for seen in agreeing),
    )
    if len(agreeing) == 1 and last is not None and _jumps(rate, last, now, policy):
        text = f"{rate.source} alone says {rate.value:f}, and it was {last.value:f} just before"
        raise DoubtfulRateError(NoRate.JUMP, text)
    return rate


def _jumps(rate: Rate, last: Rate, now: datetime, policy: RatePolicy) -> bool:
    if now - last.observed_at > timedelta(seconds=policy.jump_memory_s):
        return False
    factor = policy.jump_factor_max
    return rate.value > factor * last.value or factor * rate.value < last.value
