"""Sends back what a payment received: never more in sum, and what is held of it first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain import payments as machine
from cambist.domain.intents import IntentKind
from cambist.domain.money import format_units
from cambist.plugin import ChainInfo, Token, Units
from cambist.registry import Registry
from cambist.services.actor import Actor
from cambist.services.addresses.checks import check_to_address
from cambist.services.errors import ConflictError, UnavailableError
from cambist.services.idempotency import choose_key, claim_of, take_key
from cambist.services.payouts.create import require_payouts
from cambist.services.payouts.queue import NewPayout, PayoutContext, debit_and_queue
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.quotes import Asset, read_units
from cambist.services.receiving.deposits.locks import lock_cursor, lock_payment_deposits
from cambist.services.receiving.deposits.rows import DepositRow
from cambist.services.receiving.payments.read import not_found

from . import parts
from .read import RefundView, get_refund
from .requests import RefundRequest

OPERATION = "refund"


class Made(Struct, frozen=True):
    """A refund, and whether it was there before."""

    refund: RefundView
    replayed: bool


class NewRefund(Struct, frozen=True, kw_only=True):
    """A refund that was checked: of a payment, or of one deposit. ``held`` are the parts that come from held."""

    refund_id: str
    asset: Asset
    to_address: str
    units: Units
    held: Sequence[parts.Part]
    payment_pk: int | None
    deposit_pk: int | None
    reason: str | None


async def create_refund(  # noqa: PLR0913, PLR0917  who asks for what
    conn: AsyncConnection,
    context: PayoutContext,
    actor: Actor,
    payment_id: str,
    request: RefundRequest,
    header_key: str | None,
) -> Made:
    """Queue a refund of a payment, or return the one that the same idempotency key made before.

    After the commit, publish the hint ``outbound``.
    """
    refund_id = context.ids.new("ref")
    before = await claim(conn, context, actor, refund_id, request, header_key, subject=payment_id)
    if before is not None:
        return Made(before, replayed=True)
    payment = await _find(conn, actor, payment_id)
    asset = asset_of(context.registry, payment)
    settings = await require_payouts(conn, actor, asset)
    to_address = check_to_address(context.registry, asset.chain, request.to_address)
    await lock_cursor(conn, payment.chain, payment.scope)
    deposits = await lock_payment_deposits(conn, payment.id)
    payment = await _find(conn, actor, payment_id, lock=True)
    units = _units(payment, deposits, request, asset.token)
    held = parts.held_parts(deposits, units)
    order = NewRefund(
        refund_id=refund_id,
        asset=asset,
        to_address=to_address,
        units=units,
        held=held,
        payment_pk=payment.id,
        deposit_pk=None,
        reason=request.reason,
    )
    return await queue_refund(conn, context, actor, settings, order)


async def queue_refund(
    conn: AsyncConnection, context: PayoutContext, actor: Actor, settings: PlatformSettings, order: NewRefund
) -> Made:
    """Set aside what a refund takes, and queue it. Its payment and deposits are locked."""
    new = NewPayout(
        kind=IntentKind.REFUND,
        payout_id=order.refund_id,
        project_pk=actor.project_pk,
        merchant_pk=actor.merchant_pk,
        mode=actor.mode,
        chain=order.asset.chain,
        token=order.asset.token,
        to_address=order.to_address,
        units=order.units,
        held_units=parts.total(order.held),
        payment_pk=order.payment_pk,
        deposit_pk=order.deposit_pk,
        reason=order.reason,
    )
    (payout,) = await debit_and_queue(conn, context, settings, [new])
    await parts.take(conn, payout.pk, order.held)
    if order.payment_pk is not None:
        await _count(conn, context, order.payment_pk, order.units)
    return Made(await get_refund(conn, actor.project_pk, order.refund_id), replayed=False)


async def claim(  # noqa: PLR0913, PLR0917  whose key, for what
    conn: AsyncConnection,
    context: PayoutContext,
    actor: Actor,
    refund_id: str,
    request: RefundRequest,
    header_key: str | None,
    *,
    subject: str,
) -> RefundView | None:
    """Take the request's key for a new refund of the subject; return what it led to where it was taken before."""
    key = choose_key(header_key, request.idempotency_key)
    if key is None:
        return None
    asked = msgspec.structs.replace(request, idempotency_key=None)
    before = await take_key(conn, claim_of(actor, OPERATION, key, (subject, asked)), refund_id, context.clock.now())
    return None if before is None else await get_refund(conn, actor.project_pk, before)


async def _count(conn: AsyncConnection, context: PayoutContext, payment_pk: int, units: Units) -> None:
    """Add to what was sent back of a payment, which is locked."""
    await conn.exec_driver_sql(
        "UPDATE payments SET refunded_units = refunded_units + $2, updated_at = $3 WHERE id = $1",
        (payment_pk, units, context.clock.now()),
    )


def asset_of(registry: Registry, row: Row[Any]) -> Asset:
    """Return what a payment or a deposit is of, though it may be in the registry no more."""
    chain: ChainInfo | None = registry.chains.get(row.chain)
    if chain is None:
        raise UnavailableError("CHAIN_UNAVAILABLE", f"{row.chain} is not available right now.")
    return Asset(chain, Token(symbol=row.token, contract=row.contract, decimals=row.decimals, label=row.token))


_FIND = """
SELECT id, chain, scope, token, contract, decimals, status, refunded_units FROM payments
WHERE payment_id = $1 AND project_pk = $2
"""


async def _find(conn: AsyncConnection, actor: Actor, payment_id: str, *, lock: bool = False) -> Row[Any]:
    found = await conn.exec_driver_sql(_FIND + (" FOR NO KEY UPDATE" if lock else ""), (payment_id, actor.project_pk))
    row = found.one_or_none()
    if row is None:
        raise not_found()
    return row


def _units(payment: Row[Any], deposits: Sequence[DepositRow], request: RefundRequest, token: Token) -> Units:
    """Return how much goes back. Raises ConflictError where that is more than was received and is still there."""
    if machine.Status(payment.status) not in machine.REFUNDABLE:
        raise ConflictError(
            "PAYMENT_NOT_REFUNDABLE",
            f"A payment that is {payment.status} cannot be refunded. What came too late or was never asked for is"
            " sent back from the resolution list.",
        )
    left = sum(deposit.units for deposit in deposits) - int(payment.refunded_units)
    units = Units(left) if request.amount is None else read_units(request.amount, token)
    if units > left or left <= 0:
        raise ConflictError(
            "REFUND_EXCEEDS_RECEIVED",
            f"Of what this payment received, {format_units(max(0, left), token.decimals)} {token.symbol} are left to"
            " be refunded.",
        )
    return units
