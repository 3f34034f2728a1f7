"""Gives an expired fiat payment a second chance: what remains of it, at the rate of now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Context, Decimal
from typing import Annotated

from msgspec import Meta, Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.direct import Record
from cambist.domain.money import AmountError, fiat_to_units
from cambist.domain.payments import Status
from cambist.plugin import ChainInfo, Units
from cambist.ports import Clock, Ids
from cambist.services.actor import Actor
from cambist.services.errors import ConflictError
from cambist.services.pricing.prices import RateBook
from cambist.services.pricing.quotes import FIAT, find_asset
from cambist.services.webhooks.outbox import enqueue

from .events import PaymentFacts, payment_event
from .read import not_found
from .requests import EXPIRES_IN_MINUTES
from .views import COLUMNS, PaymentView, payment_view

EVENT = "payment.rate_recalculated"

_EXACT = Context(prec=400)


class Recalculate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of a rate refresh: how long the new rate holds."""

    expires_in_minutes: Annotated[int, Meta(ge=5, le=10_080)] = EXPIRES_IN_MINUTES


def fiat_remaining(*, amount: Decimal, rate: Decimal, expected: Units, received: Units, decimals: int) -> Decimal:
    """Return how much of a fiat price is still unpaid, at the rate at which it was last converted.

    Never above the whole price, which rounding up to enterable tokens would otherwise exceed by a hair.
    """
    missing = _EXACT.multiply(_EXACT.scaleb(Decimal(expected - received), -decimals), rate)
    return min(amount, missing)


async def recalculate(  # noqa: PLR0913  what it needs, each by name
    conn: AsyncConnection,
    actor: Actor,
    payment_id: str,
    request: Recalculate,
    *,
    chains: Mapping[str, ChainInfo],
    rates: RateBook,
    clock: Clock,
    ids: Ids,
) -> PaymentView:
    """Open the payment again, with the rate of now for what remains. After the commit, publish its hints.

    What came late under the old rate is counted as it came: in tokens.
    """
    # The price is asked for before the row is locked: a watcher must not wait for somebody else's server.
    known = await _find(conn, actor.project_pk, payment_id)
    asset = find_asset(chains, known["chain"], known["token"], actor.mode)
    rate = await rates.rate(asset.token.symbol, known["fiat_currency"])
    row = await _find(conn, actor.project_pk, payment_id, lock=True)
    await _refuse_set_aside(conn, row["id"])
    received = Units(int(row["received_units"]))
    remaining = fiat_remaining(
        amount=row["amount"],
        rate=row["exchange_rate"],
        expected=Units(int(row["expected_units"])),
        received=received,
        decimals=row["decimals"],
    )
    if remaining <= 0:
        raise ConflictError("NOTHING_REMAINS", "This payment has received all that it asked for, only too late.")
    try:
        expected = Units(received + fiat_to_units(remaining, rate.value, row["decimals"]))
    except AmountError as error:
        raise ConflictError("AMOUNT_TOO_LARGE", f"At the rate of now the amount {error}.") from None
    now = clock.now()
    expires_at = now + timedelta(minutes=request.expires_in_minutes)
    found = await conn.exec_driver_sql(
        _REOPEN, (row["id"], Decimal(expected), rate.value, rate.source, expires_at, now)
    )
    updated = found.mappings().one()
    event = payment_event(
        _facts(updated, actor, row["webhook_url"]),
        event=EVENT,
        status=updated["status"],
        received=received,
        tx_id=updated["tx_id"],
        at=now,
    )
    await enqueue(conn, [event], ids=ids, now=now)
    return payment_view(updated)


_FIND = """
SELECT p.id, p.chain, p.token, p.decimals, p.status, p.pricing_mode, p.amount, p.fiat_currency, p.exchange_rate,
       p.expected_units, p.received_units, coalesce(p.webhook_url, j.payment_webhook_url) AS webhook_url
FROM payments p JOIN projects j ON j.id = p.project_pk WHERE p.payment_id = $1 AND p.project_pk = $2
"""
_LOCK = f"{_FIND} FOR NO KEY UPDATE OF p"


async def _find(conn: AsyncConnection, project_pk: int, payment_id: str, *, lock: bool = False) -> Record:
    found = await conn.exec_driver_sql(
        _LOCK if lock else _FIND,
        (payment_id, project_pk),
    )
    row = found.mappings().one_or_none()
    if row is None:
        raise not_found()
    if row["pricing_mode"] != FIAT:
        raise ConflictError("PAYMENT_NOT_FIAT", "Only a payment priced in fiat has a rate to refresh.")
    if row["status"] != Status.EXPIRED:
        raise ConflictError("PAYMENT_NOT_EXPIRED", "Only an expired payment can get a new rate.")
    return row


async def _refuse_set_aside(conn: AsyncConnection, payment_pk: int) -> None:
    """Refuse where part of what came does not count any more: nobody could tell the customer what remains."""
    found = await conn.exec_driver_sql(
        "SELECT EXISTS (SELECT FROM deposits WHERE payment_pk = $1 AND matches AND status = 'confirmed'"
        " AND released_units + returned_units > 0)",
        (payment_pk,),
    )
    if found.scalar_one():
        raise ConflictError(
            "MONEY_SET_ASIDE", "Money that came for this payment was released or sent back; make a new payment."
        )


# Dirty, because money that came after the old expiry is in time for the new one.
_REOPEN = f"""
UPDATE payments SET status = 'pending', expected_units = $2, exchange_rate = $3, rate_source = $4, expires_at = $5,
    updated_at = $6, dirty = true
WHERE id = $1 RETURNING {COLUMNS}
"""  # noqa: S608  constants


def _facts(row: Record, actor: Actor, webhook_url: str | None) -> PaymentFacts:
    return PaymentFacts(
        project_pk=actor.project_pk,
        project_public_id=actor.project_id,
        payment_id=row["payment_id"],
        public_id=row["public_id"],
        chain=row["chain"],
        token=row["token"],
        decimals=row["decimals"],
        expected=Units(int(row["expected_units"])),
        order_id=row["order_id"],
        webhook_url=webhook_url,
    )
