"""Sends back what a payment received: never more in sum, and what is held of it first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain import payments as machine
from cambist.domain.money import format_units
from cambist.domain.payouts import Kind
from cambist.plugin import ChainInfo, Token, Units
from cambist.registry import Registry
from cambist.services.api_keys import Actor
from cambist.services.deposits.deciding import hold_chain, lock_payment_deposits
from cambist.services.deposits.rows import DepositRow
from cambist.services.errors import ConflictError, UnavailableError
from cambist.services.idempotency import Claim, choose_key, find_replayed, hash_request
from cambist.services.payments.read import not_found
from cambist.services.payouts.create import insert_claim, require_payouts
from cambist.services.payouts.queue import Desk, NewPayout, debit_and_queue
from cambist.services.payouts.targets import check_target
from cambist.services.platform import PlatformSettings
from cambist.services.quotes import Asset, read_units

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
    target: str
    units: Units
    held: Sequence[parts.Part]
    payment_row: int | None
    deposit_row: int | None
    reason: str | None


async def create_refund(  # noqa: PLR0913, PLR0917  who asks for what
    conn: AsyncConnection, desk: Desk, actor: Actor, payment_id: str, request: RefundRequest, header_key: str | None
) -> Made:
    """Queue a refund of a payment, or return the one that the same idempotency key made before.

    After the commit, publish the hint ``outbound``.
    """
    refund_id = desk.ids.new("ref")
    before = await claim(conn, desk, actor, refund_id, request, header_key, subject=payment_id)
    if before is not None:
        return Made(before, replayed=True)
    payment = await _find(conn, actor, payment_id)
    asset = asset_of(desk.registry, payment)
    settings = await require_payouts(conn, actor, asset)
    target = check_target(desk.registry, asset.chain, request.to_address)
    await hold_chain(conn, payment.chain, payment.scope)
    deposits = await lock_payment_deposits(conn, payment.id)
    payment = await _find(conn, actor, payment_id, lock=True)
    units = _units(payment, deposits, request, asset.token)
    held = parts.held_parts(deposits, units)
    order = NewRefund(
        refund_id=refund_id,
        asset=asset,
        target=target,
        units=units,
        held=held,
        payment_row=payment.id,
        deposit_row=None,
        reason=request.reason,
    )
    return await queue_refund(conn, desk, actor, settings, order)


async def queue_refund(
    conn: AsyncConnection, desk: Desk, actor: Actor, settings: PlatformSettings, order: NewRefund
) -> Made:
    """Set aside what a refund takes, and queue it. Its payment and deposits are locked."""
    new = NewPayout(
        kind=Kind.REFUND,
        payout_id=order.refund_id,
        project_row=actor.project_row,
        merchant_row=actor.merchant_row,
        mode=actor.mode,
        chain=order.asset.chain,
        token=order.asset.token,
        target=order.target,
        units=order.units,
        held_units=parts.total(order.held),
        payment_row=order.payment_row,
        deposit_row=order.deposit_row,
        reason=order.reason,
    )
    (payout,) = await debit_and_queue(conn, desk, settings, [new])
    await parts.take(conn, payout.row, order.held)
    if order.payment_row is not None:
        await _count(conn, desk, order.payment_row, order.units)
    return Made(await get_refund(conn, actor.project_row, order.refund_id), replayed=False)


async def claim(  # noqa: PLR0913, PLR0917  whose key, for what
    conn: AsyncConnection,
    desk: Desk,
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
    found = Claim(
        merchant_row=actor.merchant_row,
        project_row=actor.project_row,
        mode=actor.mode,
        operation=OPERATION,
        key=key,
        request_hash=hash_request((subject, asked)),
    )
    if await insert_claim(conn, found, refund_id, desk):
        return None
    before = await find_replayed(conn, found)
    if before is None:
        raise AssertionError("the key is there: that is why it could not be inserted")
    return await get_refund(conn, actor.project_row, before)


async def _count(conn: AsyncConnection, desk: Desk, payment_row: int, units: Units) -> None:
    """Add to what was sent back of a payment, which is locked."""
    await conn.exec_driver_sql(
        "UPDATE payments SET refunded_units = refunded_units + $2, updated_at = $3 WHERE id = $1",
        (payment_row, units, desk.clock.now()),
    )


def asset_of(registry: Registry, row: Row[Any]) -> Asset:
    """Return what a payment or a deposit is of, though it may be in the registry no more."""
    chain: ChainInfo | None = registry.chains.get(row.chain)
    if chain is None:
        raise UnavailableError("CHAIN_UNAVAILABLE", f"{row.chain} is not available right now.")
    return Asset(chain, Token(symbol=row.token, contract=row.contract, decimals=row.decimals, label=row.token))


_FIND = """
SELECT id, chain, scope, token, contract, decimals, status, refunded_units FROM payments
WHERE payment_id = $1 AND project_id = $2
"""


async def _find(conn: AsyncConnection, actor: Actor, payment_id: str, *, lock: bool = False) -> Row[Any]:
    found = await conn.exec_driver_sql(_FIND + (" FOR NO KEY UPDATE" if lock else ""), (payment_id, actor.project_row))
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
