"""Sends back what a payment received: never more in sum, and what is held of it first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct, structs
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Payment
from cambist.db.structs import AnyRow
from cambist.domain import payments as machine
from cambist.domain.intents import IntentKind
from cambist.domain.money import format_units
from cambist.plugin import ChainInfo, Token, Units
from cambist.registry import Registry
from cambist.services.actor import Actor
from cambist.services.addresses.checks import check_tag, check_to_address
from cambist.services.errors import ConflictError, UnavailableError
from cambist.services.idempotency import Claim, Made, by_value, choose_key, claim_of, take_key
from cambist.services.identity.projects import require_active
from cambist.services.paging import read_one
from cambist.services.payouts.create import require_payouts
from cambist.services.payouts.queue import NewPayout, PayoutContext, debit_and_queue
from cambist.services.payouts.requests import AddressText, TagText
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.quotes import AmountText, Asset, read_units
from cambist.services.receiving.deposits.rows import DepositRow, lock_cursor, lock_payment_deposits
from cambist.services.receiving.payments.read import not_found

from . import parts
from .read import RefundView, get_refund

OPERATION = "refund"
REASON_CHARS_MAX = 500


class RefundRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/payment/{paymentId}/refund``. Without an amount, all that is left goes back."""

    to_address: AddressText
    to_tag: TagText | None = None
    amount: AmountText | None = None
    reason: Annotated[str, Meta(max_length=REASON_CHARS_MAX)] | None = None
    idempotency_key: str | None = None


async def create_refund(  # noqa: PLR0913, PLR0917  who asks for what
    conn: AsyncConnection,
    context: PayoutContext,
    actor: Actor,
    payment_id: str,
    request: RefundRequest,
    header_key: str | None,
) -> Made[RefundView]:
    """Queue a refund of a payment, or return the one that the same idempotency key made before.

    After the commit, publish the hint ``outbound``.
    """
    await require_active(conn, actor)
    refund_id = context.ids.new("ref")
    claim = claim_of_refund(actor, request, header_key, subject=payment_id)
    before = await take_key(conn, claim, refund_id, context.clock.now())
    if before is not None:
        return Made(await get_refund(conn, actor.project_pk, before), replayed=True)
    payment = await _find(conn, actor, payment_id)
    asset = asset_of(context.registry, payment)
    settings = await require_payouts(conn, actor, asset)
    to_address = check_to_address(context.registry, asset.chain, request.to_address)
    to_tag = check_tag(context.registry, asset.chain, request.to_tag)
    await lock_cursor(conn, payment.chain, payment.scope)
    deposits = await lock_payment_deposits(conn, payment.id)
    payment = await _find(conn, actor, payment_id, lock=True)
    units = _units(payment, deposits, request, asset.token)
    refund = NewPayout.of(actor, IntentKind.REFUND, refund_id, asset, to_address, units, to_tag)
    refund = structs.replace(refund, payment_pk=payment.id, reason=request.reason)
    return await queue_refund(conn, context, settings, refund, parts.held_parts(deposits, units))


async def queue_refund(
    conn: AsyncConnection,
    context: PayoutContext,
    settings: PlatformSettings,
    refund: NewPayout,
    held: Sequence[parts.Part],
) -> Made[RefundView]:
    """Set aside what a refund takes, of it the parts ``held`` from held, and queue it.

    It is of a payment, or of one deposit. Both are locked, and all was checked.
    """
    new = structs.replace(refund, held_units=Units(sum(part.units for part in held)))
    (payout,) = await debit_and_queue(conn, context, settings, [new])
    await parts.take(conn, payout.pk, held)
    if new.payment_pk is not None:
        counted = {"refunded_units": Payment.refunded_units + new.units, "updated_at": context.clock.now()}
        await conn.execute(update(Payment).where(Payment.id == new.payment_pk).values(counted))
    return Made(await get_refund(conn, new.project_pk, new.payout_id), replayed=False)


def claim_of_refund(actor: Actor, request: RefundRequest, header_key: str | None, *, subject: str) -> Claim | None:
    """Return the request's key, if it has one, as it is used for a refund of the subject."""
    asked = subject, by_value(request)
    return claim_of(actor, OPERATION, choose_key(header_key, request.idempotency_key), asked)


def asset_of(registry: Registry, row: AnyRow) -> Asset:
    """Return what a payment or a deposit is of, though it may be in the registry no more."""
    chain: ChainInfo | None = registry.chains.get(row.chain)
    if chain is None:
        raise UnavailableError("CHAIN_UNAVAILABLE", f"{row.chain} is not available right now.")
    token = Token(symbol=row.token, contract=row.contract, decimals=row.decimals, label=row.token)
    known = [one.least_units for one in chain.tokens if one.contract == token.contract]
    return Asset(chain, structs.replace(token, least_units=known[0]) if known else token)


async def _find(conn: AsyncConnection, actor: Actor, payment_id: str, *, lock: bool = False) -> AnyRow:
    wanted = select(Payment).where(Payment.payment_id == payment_id, Payment.project_pk == actor.project_pk)
    return await read_one(conn, wanted.with_for_update(key_share=True) if lock else wanted, not_found())


def _units(payment: AnyRow, deposits: Sequence[DepositRow], request: RefundRequest, token: Token) -> Units:
    """Return how much goes back. Raises ConflictError where that is more than was received and is still there."""
    if machine.Status(payment.status) not in machine.REFUNDABLE:
        raise ConflictError(
            "PAYMENT_NOT_REFUNDABLE",
            f"A payment that is {payment.status} cannot be refunded. What came too late or was never asked for is"
            " sent back from the resolution list.",
        )
    left = sum(deposit.units for deposit in deposits) - payment.refunded_units
    units = Units(left) if request.amount is None else read_units(request.amount, token)
    if units > left or left <= 0:
        raise ConflictError(
            "REFUND_EXCEEDS_RECEIVED",
            f"Of what this payment received, {format_units(max(0, left), token.decimals)} {token.symbol} are left to"
            " be refunded.",
        )
    return units
