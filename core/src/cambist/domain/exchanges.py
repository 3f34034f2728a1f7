"""What becomes of an exchange: a swap on one chain, or a bridge to another; and what an output has to be worth.

::

    status    step
    pending   queued      its call waits to be sent: for money, for gas, for an allowance, to be built
              sent        the call is on its way
              arriving    a swap: the call is final, and what came of it has to be confirmed
              filling     a bridge: the deposit is final, and nobody has paid it out yet
              refunding   a bridge: nobody can pay it out any more, and the deposit has to come back
    succeeded clearing    an allowance is left, and is taken back
    or failed ended

A reorg can take each step back: to ``sent`` where the call is gone, to ``arriving`` or ``filling`` where the output is.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field

from cambist.plugin import Token, Units

from .usage import Group, UsdText

BPS = 10_000
AWAY_MAX_S = 2 * 86_400
"""How long a bridge's deposit may be away before it comes back."""
_EXACT = Context(prec=400)

FeeBps = Annotated[int, Meta(ge=0, le=1_000)]
SlippageBps = Annotated[int, Meta(ge=1, le=5_000)]
GuardBps = Annotated[int, Meta(ge=0, le=5_000)]
ValidMinutes = Annotated[int, Meta(ge=1, le=1_440)]
LeastRates = Annotated[
    Mapping[Annotated[str, Meta(max_length=300)], Annotated[str, Meta(min_length=1, max_length=80)]],
    Meta(max_length=1_000),
]
Switches = Annotated[Mapping[Annotated[str, Meta(min_length=1, max_length=64)], bool], Meta(max_length=100)]


class Kind(StrEnum):
    """Whether both tokens are on one chain."""

    SWAP = "swap"
    BRIDGE = "bridge"


class MadeFor(StrEnum):
    """Who wanted it: a merchant who asked for it, a coin's rule, or a payout that sends what comes out.

    Merchants read it as the exchange's ``mode``.
    """

    MANUAL = "manual"
    AUTO = "auto"
    PAYOUT = "payout"


class Status(StrEnum):
    """What merchants are told."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Step(StrEnum):
    """How far it has come: see the module."""

    QUEUED = "queued"
    SENT = "sent"
    ARRIVING = "arriving"
    FILLING = "filling"
    REFUNDING = "refunding"
    CLEARING = "clearing"
    ENDED = "ended"


FINISHED_STEPS = frozenset({Step.CLEARING, Step.ENDED})


class ExchangeRule(Group, frozen=True, kw_only=True):
    """What merchants' swaps and bridges cost and how bad their price may be; shares are in hundredths of a percent.

    The platform's fees are shares of the output of swaps, and of what is given into bridges;
    ``auto_convert_markup_bps`` comes on top where a coin's rule converts. ``price_guard_bps`` is by how much the output
    may be worth less than what is given, by the gateway's own prices. ``least_rates`` are by
    ``<chain>/<SYMBOL>><chain>/<SYMBOL>``: how many whole tokens there must be at least for each that is given; where a
    token has no price, nothing else is a bargain. ``providers`` switches single ones off by name. ``valid_minutes`` is
    how long an exchange may wait to be sent, at the least output that was promised. What a coin's rule converts is
    worth ``auto_convert_min_usd``.
    """

    swap_enabled: bool = True
    bridge_enabled: bool = True
    swap_fee_bps: FeeBps = 0
    bridge_fee_bps: FeeBps = 0
    auto_convert_markup_bps: FeeBps = 0
    default_slippage_bps: SlippageBps = 100
    price_guard_bps: GuardBps = 300
    least_rates: LeastRates = field(default_factory=dict)
    providers: Switches = field(default_factory=dict)
    valid_minutes: ValidMinutes = 60
    auto_convert_min_usd: UsdText = "10"

    @property
    def auto_convert_min(self) -> Decimal:
        """The least worth that a coin's rule converts, in US dollars."""
        return Decimal(self.auto_convert_min_usd)

    def is_enabled(self, provider: str) -> bool:
        return self.providers.get(provider, True)


class Side(Struct, frozen=True, kw_only=True):
    """So much of a token. ``usd`` is what one whole token is worth, None where nobody knows."""

    token: Token
    units: Units
    usd: Decimal | None


def least_worth(sold: Side, bought: Token, usd: Decimal, guard_bps: int) -> Units:
    """Return how many units of ``bought``, a token of this worth, are no bad bargain for what is sold.

    ``guard_bps`` is by how much the output may be worth less. ``sold.usd`` is known.
    """
    if sold.usd is None or usd <= 0:
        raise ValueError("a bargain is judged by two prices")
    worth = _EXACT.multiply(_EXACT.scaleb(Decimal(sold.units), -sold.token.decimals), sold.usd)
    fair = _EXACT.divide(_EXACT.scaleb(worth, bought.decimals), usd)
    least = _EXACT.divide(_EXACT.multiply(fair, Decimal(BPS - guard_bps)), Decimal(BPS))
    return Units(int(least.to_integral_value(ROUND_CEILING, context=_EXACT)))


def least_at_rate(sold: Side, bought: Token, rate: Decimal) -> Units:
    """Return how many units of ``bought`` there must be at a rate: whole tokens bought for each whole one sold."""
    tokens = _EXACT.multiply(_EXACT.scaleb(Decimal(sold.units), -sold.token.decimals), rate)
    return Units(int(_EXACT.scaleb(tokens, bought.decimals).to_integral_value(ROUND_CEILING, context=_EXACT)))


def share_of(units: Units, bps: int) -> Units:
    """Return a share in hundredths of a percent, rounded down."""
    return Units(units * bps // BPS)


def to_bps(percent: Decimal) -> int:
    """Return a percentage in hundredths of a percent, rounded down: a fee is never more than was told."""
    return int((percent * 100).to_integral_value(ROUND_FLOOR))
