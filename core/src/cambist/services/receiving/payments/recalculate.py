"""Gives an expired fiat payment a second chance: what remains of it, at the rate of now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Annotated

from msgspec import Meta, Struct
from sqlalchemy import exists, or_, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import Deposit, Payment
from cambist.db.structs import AnyRow
from cambist.domain.moments import moment
from cambist.domain.money import AmountError, fiat_to_units, format_rate, value_of
from cambist.domain.payments import Status
from cambist.plugin import ChainInfo, Units
from cambist.ports import Clock, Ids
from cambist.services import chain_pauses
from cambist.services.actor import Actor
from cambist.services.addresses.macs import AddressMacs
from cambist.services.chains.rules import TokenRules
from cambist.services.errors import ConflictError, InvalidError
from cambist.services.paging import read_one
from cambist.services.pricing.prices import RateBook
from cambist.services.pricing.quotes import FIAT, Asset, find_asset
from cambist.services.receiving.deposits.rows import SENT_BEFORE
from cambist.services.webhooks.outbox import enqueue

from .events import PAYMENTS, payment_event
from .read import not_found
from .requests import EXPIRES_IN_MINUTES
from .views import COLUMNS, PaymentView, payment_view

EVENT = "payment.rate_recalculated"


class Recalculate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of a rate refresh: how long the new rate holds."""

    expires_in_minutes: Annotated[int, Meta(ge=5, le=10_080)] = EXPIRES_IN_MINUTES


def fiat_remaining(*, amount: Decimal, rate: Decimal, expected: Units, received: Units, decimals: int) -> Decimal:
    """Return how much of a fiat price is still unpaid, at the rate at which it was last converted.

    Never above the whole price, which rounding up to enterable tokens would otherwise exceed by a hair.
    """
    return min(amount, value_of(expected - received, decimals, rate))


async def recalculate(  # noqa: PLR0913  what it needs, each by name
    conn: AsyncConnection,
    actor: Actor,
    payment_id: str,
    request: Recalculate,
    *,
    chains: Mapping[str, ChainInfo],
    token_rules: TokenRules,
    rates: RateBook,
    clock: Clock,
    ids: Ids,
    macs: AddressMacs,
) -> PaymentView:
    """Open the payment again, with the rate of now for what remains. After the commit, publish its hints.

    What came late under the old rate is counted as it came: in tokens.
    """
    # The price is asked for before the row is locked: a watcher must not wait for somebody else's server.
    known, asset = await _asked_for(conn, actor, payment_id, chains, token_rules)
    rate = await rates.rate(asset.token.symbol, known.fiat_currency, asked_by=actor.merchant_id)
    row = await _find(conn, actor.project_pk, payment_id, lock=True)
    await _refuse_set_aside(conn, row.id)
    expected, now = _expected_at(rate.value, row, asset), clock.now()
    reopened_until = now + timedelta(minutes=request.expires_in_minutes)
    reopened = {
        "status": Status.PENDING,
        "expected_units": expected,
        "exchange_rate": rate.value,
        "rate_source": rate.source,
        "expires_at": reopened_until,
        "updated_at": now,
        "dirty": True,  # money that came after the old expiry is in time for the new one
    }
    found = await conn.execute(update(Payment).where(Payment.id == row.id).values(reopened).returning(text(COLUMNS)))
    event = payment_event(
        (await conn.execute(PAYMENTS.where(Payment.id == row.id))).one(),
        event=EVENT,
        status=Status.PENDING,
        received=Units(row.received_units),
        tx_id=row.tx_id,
        at=now,
    )
    event.data["amount"] = format(row.amount, "f")
    event.data["fiatCurrency"] = row.fiat_currency
    event.data["exchangeRate"] = format_rate(rate.value)
    event.data["rateSource"] = rate.source
    event.data["expiresAt"] = moment(reopened_until)
    await enqueue(conn, [event], ids=ids, now=now)
    return payment_view(found.mappings().one(), macs)


def _expected_at(rate: Decimal, row: AnyRow, asset: Asset) -> Units:
    """Return the sum of what was received and what the rest of the payment costs at this rate. Raises ConflictError."""
    received = Units(row.received_units)
    remaining = fiat_remaining(
        amount=row.amount,
        rate=row.exchange_rate,
        expected=Units(row.expected_units),
        received=received,
        decimals=row.decimals,
    )
    if remaining <= 0:
        raise ConflictError("NOTHING_REMAINS", "This payment has received all that it asked for, only too late.")
    try:
        expected = Units(received + fiat_to_units(remaining, rate, row.decimals))
    except AmountError as error:
        raise ConflictError("AMOUNT_TOO_LARGE", f"At the rate of now the amount {error}.") from None
    if not received and expected < asset.token.least_units:
        raise ConflictError(
            "AMOUNT_TOO_SMALL", f"At the rate of now the amount is less than what arrives on {asset.chain.name}."
        )
    return expected


async def fetch_rate(  # noqa: PLR0913  what it needs, each by name
    db: Database,
    actor: Actor,
    payment_id: str,
    *,
    chains: Mapping[str, ChainInfo],
    token_rules: TokenRules,
    rates: RateBook,
) -> None:
    """Have the rate be known by the time that ``recalculate`` needs it, and raise as that does before it does.

    No connection is held while the price sources are asked: those who wait for them would leave none to others.
    """
    # Not a transaction: who waits in vain for the next connection is told that nothing was done.
    async with db.autocommit() as conn:
        known, asset = await _asked_for(conn, actor, payment_id, chains, token_rules)
    await rates.rate(asset.token.symbol, known.fiat_currency, asked_by=actor.merchant_id)


async def _asked_for(
    conn: AsyncConnection, actor: Actor, payment_id: str, chains: Mapping[str, ChainInfo], token_rules: TokenRules
) -> tuple[AnyRow, Asset]:
    """Return the payment, and what it is paid in. Raises what a new rate for it is refused with."""
    known = await _find(conn, actor.project_pk, payment_id)
    asset = find_asset(chains, known.chain, known.token, actor.mode)
    if asset.token.contract != known.contract:
        # Another contract goes by the symbol now, and nobody looks for the one that the customer would pay in.
        words = f"was replaced on {asset.chain.name}; make a new payment"
        raise InvalidError.field("token", words, "UNSUPPORTED_TOKEN")
    token_rules.check(actor.merchant_pk, asset.chain.id, asset.token)
    chain_pauses.refuse_payments(await chain_pauses.load(conn), asset.chain, actor.mode)
    return known, asset


async def _find(conn: AsyncConnection, project_pk: int, payment_id: str, *, lock: bool = False) -> AnyRow:
    wanted = PAYMENTS.where(Payment.payment_id == payment_id, Payment.project_pk == project_pk)
    if lock:
        wanted = wanted.with_for_update(key_share=True, of=Payment)
    row = await read_one(conn, wanted, not_found())
    if row.pricing_mode != FIAT:
        raise ConflictError("PAYMENT_NOT_FIAT", "Only a payment priced in fiat has a rate to refresh.")
    if row.status != Status.EXPIRED:
        raise ConflictError("PAYMENT_NOT_EXPIRED", "Only an expired payment can get a new rate.")
    return row


async def _refuse_set_aside(conn: AsyncConnection, payment_pk: int) -> None:
    """Refuse where part of what came does not count any more: nobody could tell the customer what remains."""
    set_aside = (
        Deposit.payment_pk == payment_pk,
        Deposit.matches,
        Deposit.status == "confirmed",
        or_(Deposit.released_units + Deposit.returned_units > 0, SENT_BEFORE),
    )
    if await conn.scalar(select(exists().where(*set_aside))):
        raise ConflictError(
            "MONEY_SET_ASIDE", "Money that came for this payment was released or sent back; make a new payment."
        )
