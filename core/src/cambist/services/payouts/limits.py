"""What the operator allows to leave: limits per transfer and per day, and the list of addresses."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Payout
from cambist.domain.intents import IntentKind
from cambist.domain.money import format_units, parse_units
from cambist.domain.payouts import Limits, Status
from cambist.plugin import ChainInfo, Token, Units
from cambist.services.errors import ForbiddenError, InvalidError
from cambist.services.platform import OutgoingLimit, PlatformSettings
from cambist.services.pricing.quotes import Asset

from . import minimums

DAY = timedelta(hours=24)


async def limits_of(
    conn: AsyncConnection, settings: PlatformSettings, mode: str, asset: Asset, now: datetime
) -> Limits:
    """Return the limits of a token in its units. Where the operator sets no minimum, it is what a transfer costs."""
    chain, token = asset
    found = settings.limit_of(chain.id, token.symbol) or OutgoingLimit()

    def units(text: str | None) -> Units | None:
        return None if text is None else parse_units(text, token.decimals)

    minimum = units(found.minimum)
    if minimum is None:
        minimum = await minimums.find(conn, settings, mode, asset, now)
    return Limits(minimum=minimum, per_transaction=units(found.per_transaction), per_day=units(found.per_day))


def check_one(  # noqa: PLR0913, PLR0917  what is judged of one transfer
    settings: PlatformSettings, limits: Limits, kind: IntentKind, asset: Asset, to_address: str, units: Units
) -> None:
    """Refuse what cannot be sent whatever else was. Raises ForbiddenError, and InvalidError PAYOUT_BELOW_MINIMUM.

    The list of addresses holds for everything; limits hold for what a merchant decides on, refunds among it.
    """
    chain, token = asset
    if not settings.allows_address(chain.id, to_address):
        raise ForbiddenError(
            "TARGET_NOT_ALLOWED", f"The operator has listed the addresses that {chain.name} is sent to, without this."
        )
    if limits.is_too_small(kind, units):
        raise minimum_error(limits, chain, token)
    if limits.refuses(units):
        assert limits.per_transaction is not None  # noqa: S101  it has just refused
        most = format_units(limits.per_transaction, token.decimals)
        raise ForbiddenError("PAYOUT_LIMIT_EXCEEDED", f"At most {most} {token.symbol} may leave in one transfer.")


def minimum_error(limits: Limits, chain: ChainInfo, token: Token) -> InvalidError:
    least = format_units(limits.minimum or Units(0), token.decimals)
    return InvalidError("PAYOUT_BELOW_MINIMUM", f"A payout of {token.symbol} on {chain.name} is at least {least}.")


def day_limit_error(limits: Limits, token: Token) -> ForbiddenError:
    most = format_units(limits.per_day or Units(0), token.decimals)
    return ForbiddenError("PAYOUT_LIMIT_EXCEEDED", f"At most {most} {token.symbol} may leave within 24 hours.")


async def sent_today(  # noqa: PLR0913, PLR0917  whose, of what, until when
    conn: AsyncConnection, merchant_pk: int, mode: str, chain: ChainInfo, token: Token, now: datetime
) -> Units:
    """Return what the limits count of the last 24 hours: what was asked for and has not failed."""
    sent = select(func.sum(Payout.units)).where(
        Payout.merchant_pk == merchant_pk,
        Payout.mode == mode,
        Payout.chain == chain.id,
        Payout.contract.is_not_distinct_from(token.contract),
        Payout.created_at > now - DAY,
        Payout.status != Status.FAILED,
    )
    return Units(await conn.scalar(sent) or 0)
