"""What happened to one thing: what an operator needs to answer a merchant's question about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import (
    Cursor,
    Deposit,
    OutboundIntent,
    OutboundSlot,
    OutboundTx,
    Payment,
    Payout,
    WebhookDelivery,
    WebhookEvent,
)
from cambist.db.structs import columns_of, to_struct
from cambist.domain.money import format_units

SHOWN_MAX = 100
"""Of each part of a story."""


class Customer(Struct, frozen=True, kw_only=True, rename="camel"):
    """Who paid, as the merchant told it. Auditors do not see it."""

    name: str | None
    email: str | None


class DepositOfPayment(Struct, frozen=True, kw_only=True, rename="camel"):
    """A transfer to the payment's address. `heldAmount` waits for a decision, or for the payment to end."""

    deposit_id: str
    status: str
    chain: str
    token: str
    amount: str
    held_amount: str
    counted: bool
    resolution: str | None
    tx_hash: str
    block_number: int
    confirmations: int
    required_confirmations: int
    first_seen_at: datetime
    confirmed_at: datetime | None


class EventTold(Struct, frozen=True, kw_only=True, rename="camel"):
    """An event, and how far its deliveries are: how many there are, delivered, and waiting."""

    event_id: str
    event: str
    created_at: datetime
    deliveries: int
    delivered: int
    waiting: int


class SentForPayment(Struct, frozen=True, kw_only=True, rename="camel"):
    """A refund of the payment's."""

    refund_id: str
    status: str
    amount: str
    tx_hash: str | None
    created_at: datetime


class PaymentStory(Struct, frozen=True, kw_only=True, rename="camel"):
    """What happened to a payment, each part oldest first. `customer` is null for who may not see it."""

    customer: Customer | None
    deposits: Sequence[DepositOfPayment]
    refunds: Sequence[SentForPayment]
    events: Sequence[EventTold]


class TransactionOfSent(Struct, frozen=True, kw_only=True, rename="camel"):
    """A transaction that was signed for it, whatever became of it."""

    tx_hash: str
    role: str
    state: str
    nonce: int | None
    block_number: int | None
    created_at: datetime
    sent_at: datetime | None


class SentStory(Struct, frozen=True, kw_only=True, rename="camel"):
    """What was done to send it. `state`, `reason` and `dueAt` are the queue's: what it waits for, and until when."""

    state: str | None
    reason: str | None
    due_at: datetime | None
    transactions: Sequence[TransactionOfSent]
    events: Sequence[EventTold]


async def of_payment(conn: AsyncConnection, payment_id: str, *, with_people: bool) -> PaymentStory:
    """Return what happened to a payment that there is."""
    wanted = select(Payment.id, Payment.customer_name, Payment.customer_email).where(Payment.payment_id == payment_id)
    payment = (await conn.execute(wanted)).one()
    customer = Customer(name=payment.customer_name, email=payment.customer_email) if with_people else None
    return PaymentStory(
        customer=customer,
        deposits=await _deposits(conn, payment.id),
        refunds=await _refunds(conn, payment.id),
        events=await _events(conn, payment_id),
    )


async def _deposits(conn: AsyncConnection, payment_pk: int) -> Sequence[DepositOfPayment]:
    rows = await conn.execute(
        select(Deposit, Cursor.head)
        .outerjoin(Cursor, (Cursor.chain == Deposit.chain) & (Cursor.scope == Deposit.scope))
        .where(Deposit.payment_pk == payment_pk)
        .order_by(Deposit.id)
        .limit(SHOWN_MAX)
    )
    return [
        DepositOfPayment(
            deposit_id=row.deposit_id,
            status=row.status,
            chain=row.chain,
            token=row.token,
            amount=format_units(row.units, row.decimals),
            held_amount=format_units(row.units - row.available_units - row.returned_units, row.decimals),
            counted=row.matches,
            resolution=row.resolution,
            tx_hash=row.tx_id,
            block_number=row.height,
            confirmations=0 if row.status == "orphaned" else max(0, (row.head or row.height) - row.height),
            required_confirmations=row.required_confirmations,
            first_seen_at=row.first_seen_at,
            confirmed_at=row.confirmed_at,
        )
        for row in rows
    ]


async def _refunds(conn: AsyncConnection, payment_pk: int) -> Sequence[SentForPayment]:
    rows = await conn.execute(
        select(Payout).where(Payout.payment_pk == payment_pk).order_by(Payout.id).limit(SHOWN_MAX)
    )
    return [
        SentForPayment(
            refund_id=row.payout_id,
            status=row.status,
            amount=format_units(row.units, row.decimals),
            tx_hash=row.tx_id,
            created_at=row.created_at,
        )
        for row in rows
    ]


async def _events(conn: AsyncConnection, resource_id: str) -> Sequence[EventTold]:
    counted = {
        "deliveries": func.count(WebhookDelivery.id),
        "delivered": func.count().filter(WebhookDelivery.status == "delivered"),
        "waiting": func.count().filter(WebhookDelivery.status.in_(("pending", "paused"))),
    }
    told = (
        select(*columns_of(EventTold, WebhookEvent, **counted))
        .outerjoin(WebhookDelivery, WebhookDelivery.event_pk == WebhookEvent.id)
        .where(WebhookEvent.resource_id == resource_id)
        .group_by(WebhookEvent.id)
        .order_by(WebhookEvent.id)
        .limit(SHOWN_MAX)
    )
    return [to_struct(EventTold, row) for row in await conn.execute(told)]


async def of_sent(conn: AsyncConnection, payout_id: str) -> SentStory:
    """Return what was done to send a payout, a refund or a withdrawal that there is."""
    queued = (
        select(Payout.id, OutboundIntent.id.label("intent_pk"), OutboundIntent.state, OutboundIntent.reason)
        .add_columns(OutboundIntent.due_at)
        .outerjoin(OutboundIntent, OutboundIntent.id == Payout.intent_pk)
        .where(Payout.payout_id == payout_id)
    )
    row = (await conn.execute(queued)).one()
    signed = (
        select(
            *columns_of(
                TransactionOfSent,
                OutboundTx,
                tx_hash=OutboundTx.tx_id,
                nonce=OutboundSlot.sequence,
                block_number=OutboundTx.height,
            )
        )
        .join(OutboundSlot, OutboundSlot.id == OutboundTx.slot_pk)
        .where(OutboundSlot.intent_pk == row.intent_pk)
        .order_by(OutboundTx.id)
        .limit(SHOWN_MAX)
    )
    return SentStory(
        state=row.state,
        reason=row.reason,
        due_at=row.due_at,
        transactions=[to_struct(TransactionOfSent, one) for one in await conn.execute(signed)],
        events=await _events(conn, payout_id),
    )
