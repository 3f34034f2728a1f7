"""What the operator allows to leave: limits per transfer and per day, and the list of addresses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from fractions import Fraction

import msgspec
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Exchange, Payout
from cambist.db.structs import literally
from cambist.domain import exchanges
from cambist.domain.intents import IntentKind
from cambist.domain.money import UNITS_MAX, format_units
from cambist.domain.payouts import GIVEN_BACK, Limits
from cambist.plugin import ChainInfo, Token, Units
from cambist.services.errors import FieldProblem, ForbiddenError, InvalidError
from cambist.services.outgoing_limits import MerchantLimit, OutgoingLimit
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.quotes import Asset

from . import minimums

DAY = timedelta(hours=24)
AMOUNT = "amount"
"""The field of requests that says how much is sent, where it has no other name."""


_OWN = f"""
SELECT nullif(limits -> ($2::text || '/' || $3::text), 'null')::text AS own,
    ({minimums.COST.format(chain="$2", symbol="$3", since="$4")}) AS cost
FROM merchants WHERE id = $1
"""  # noqa: S608  constants


async def limits_of(  # noqa: PLR0913, PLR0917  whose, of what, and when
    conn: AsyncConnection, settings: PlatformSettings, merchant_pk: int, mode: str, asset: Asset, now: datetime
) -> Limits:
    """Return a merchant's limits of a token in its units: its own, and where it has none those that hold for all.

    Where the operator sets no minimum, it is what a transfer costs.
    """
    chain, token = asset
    found = settings.limit_of(chain.id, token.symbol) or OutgoingLimit()
    values = (merchant_pk, chain.id, token.symbol, now - minimums.AGE_MAX)
    row = (await conn.exec_driver_sql(_OWN, values)).one()
    if row.own is not None:
        found = found.for_one(msgspec.json.decode(row.own, type=MerchantLimit))
    if found.minimum is None:
        minimum = minimums.by_cost(settings, mode, row.cost)
    else:
        minimum = _units(found.minimum, token, math.ceil)
    return Limits(
        least=token.least_units,
        minimum=minimum,
        per_transaction=None if found.per_transaction is None else _units(found.per_transaction, token, math.floor),
        per_day=None if found.per_day is None else _units(found.per_day, token, math.floor),
    )


def _units(text: str, token: Token, rounded: Callable[[Fraction], int]) -> Units:
    """Return a limit in the token's units. It is kept by symbol: a token that came later may have fewer decimals."""
    return Units(min(rounded(Fraction(text) * 10**token.decimals), UNITS_MAX))


def check_one(  # noqa: PLR0913, PLR0917  what is judged of one transfer
    settings: PlatformSettings, limits: Limits, kind: IntentKind, asset: Asset, destination: str, units: Units
) -> None:
    """Refuse what cannot be sent whatever else was. Raises ForbiddenError, and InvalidError PAYOUT_BELOW_MINIMUM.

    ``destination`` is the address, with its tag behind a ``#`` where it has one. The list of addresses holds for
    everything; limits hold for what a merchant decides on, refunds among it. The least that arrives holds for all, too.
    """
    if not settings.allows_address(asset.chain.id, destination):
        raise address_error(asset.chain)
    check_units(limits, kind, asset, units)


def check_units(limits: Limits, kind: IntentKind, asset: Asset, units: Units, *, field: str | None = AMOUNT) -> None:
    """Refuse an amount that is too small or too large by itself, as ``check_one`` does.

    ``field`` is what says it in the request; None where nothing does.
    """
    chain, token = asset
    if limits.is_too_small(kind, units):
        raise minimum_error(limits, kind, chain, token, field=field)
    if limits.refuses(units):
        assert limits.per_transaction is not None  # noqa: S101  it has just refused
        most = format_units(limits.per_transaction, token.decimals)
        raise ForbiddenError(
            "PAYOUT_LIMIT_EXCEEDED",
            f"At most {most} {token.symbol} may leave in one transfer.",
            _problem(field, f"must be at most {most}"),
        )


def address_error(chain: ChainInfo) -> ForbiddenError:
    return ForbiddenError(
        "TARGET_NOT_ALLOWED",
        f"The operator has listed the addresses that {chain.name} is sent to, without this.",
        _problem("toAddress", "is not among the addresses that the operator has listed"),
    )


def minimum_error(
    limits: Limits, kind: IntentKind, chain: ChainInfo, token: Token, *, field: str | None = AMOUNT
) -> InvalidError:
    least, what = format_units(limits.least_of(kind), token.decimals), kind if kind is IntentKind.REFUND else "payout"
    return InvalidError(
        "PAYOUT_BELOW_MINIMUM",
        f"A {what} of {token.symbol} on {chain.name} is at least {least}.",
        _problem(field, f"must be at least {least}"),
    )


def day_limit_error(limits: Limits, token: Token, *, field: str | None = AMOUNT) -> ForbiddenError:
    most = format_units(limits.per_day or Units(0), token.decimals)
    return ForbiddenError(
        "PAYOUT_LIMIT_EXCEEDED",
        f"At most {most} {token.symbol} may leave within 24 hours.",
        _problem(field, f"is more than what is left of {most} within 24 hours"),
    )


def _problem(field: str | None, message: str) -> Sequence[FieldProblem]:
    return [] if field is None else [FieldProblem(field, message)]


async def sent_today(  # noqa: PLR0913, PLR0917  whose, of what, until when
    conn: AsyncConnection, merchant_pk: int, mode: str, chain: ChainInfo, token: Token, now: datetime
) -> Units:
    """Return what the limits count of the last 24 hours: what was asked for and has not failed.

    A payout with a swap counts in both tokens: as what is given, and as what its recipient gets.
    """
    sent = select(func.sum(Payout.units)).where(
        Payout.merchant_pk == merchant_pk,
        Payout.mode == mode,
        Payout.chain == chain.id,
        Payout.contract.is_not_distinct_from(token.contract),
        Payout.created_at > now - DAY,
        Payout.status.not_in(GIVEN_BACK),
    )
    given = select(func.sum(Exchange.units)).where(
        literally(Exchange.made_for, exchanges.MadeFor.PAYOUT),
        Exchange.merchant_pk == merchant_pk,
        Exchange.mode == mode,
        Exchange.source_chain == chain.id,
        Exchange.source_contract.is_not_distinct_from(token.contract),
        Exchange.created_at > now - DAY,
        Exchange.status != exchanges.Status.FAILED,
    )
    return Units((await conn.scalar(sent) or 0) + (await conn.scalar(given) or 0))
