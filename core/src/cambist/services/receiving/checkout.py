"""What the hosted checkout and the receipt are drawn from: one payment, read by its public id."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from msgspec import Struct
from sqlalchemy import and_, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Cursor, Deposit, Payment, Project
from cambist.domain.payments import Status
from cambist.plugin import Units

DEPOSITS_SHOWN_MAX = 20
"""Anyone can send dust to an address; a page still has to stay a page."""


class CheckoutDeposit(Struct, frozen=True, kw_only=True):
    """A transfer that stands in the chain now. ``head`` is the newest block known of its own chain.

    ``matches`` is False where token or chain are not what the payment asks for.
    """

    chain: str
    token: str
    decimals: int
    units: Units
    tx_id: str
    height: int
    head: int | None
    finalized: int | None
    required_confirmations: int
    confirmed: bool
    confirmed_at: datetime | None
    mined_at: datetime
    matches: bool


class CheckoutPayment(Struct, frozen=True, kw_only=True):
    """A payment as its customer may see it: nothing of who pays, and nothing of the merchant but the shop's name.

    ``deposits`` are the newest ``DEPOSITS_SHOWN_MAX``, oldest first; ``deposits_left_out`` counts the rest.
    """

    payment_id: str
    public_id: str
    shop_name: str
    mode: str
    chain: str
    token: str
    contract: str | None
    decimals: int
    address: str
    amount: Decimal
    fiat_currency: str | None
    exchange_rate: Decimal | None
    expected: Units
    received: Units
    required_confirmations: int
    status: Status
    order_id: str | None
    success_url: str | None
    cancel_url: str | None
    created_at: datetime
    expires_at: datetime
    updated_at: datetime
    grace: timedelta
    deposits: tuple[CheckoutDeposit, ...] = ()
    deposits_left_out: int = 0


_PAYMENT = select(
    Payment.id.label("pk"),
    Payment.payment_id,
    Payment.public_id,
    Project.name.label("shop_name"),
    Payment.mode,
    Payment.chain,
    Payment.token,
    Payment.contract,
    Payment.decimals,
    Payment.address,
    Payment.amount,
    Payment.fiat_currency,
    Payment.exchange_rate,
    Payment.expected_units,
    Payment.received_units,
    Payment.required_confirmations,
    Payment.status,
    Payment.order_id,
    Payment.success_url,
    Payment.cancel_url,
    Payment.created_at,
    Payment.expires_at,
    Payment.updated_at,
    Payment.grace_s,
).join(Project, Project.id == Payment.project_pk)

_DEPOSITS = (
    select(
        Deposit.chain,
        Deposit.token,
        Deposit.decimals,
        Deposit.units,
        Deposit.tx_id,
        Deposit.height,
        Cursor.head,
        Cursor.finalized,
        Deposit.required_confirmations,
        (Deposit.status == "confirmed").label("confirmed"),
        Deposit.confirmed_at,
        Deposit.mined_at,
        Deposit.matches,
        func.count().over().label("total"),
    )
    .outerjoin(Cursor, and_(Cursor.chain == Deposit.chain, Cursor.scope == Deposit.scope))
    .where(Deposit.status != "orphaned")
    .order_by(Deposit.mined_at.desc(), Deposit.id.desc())
    .limit(DEPOSITS_SHOWN_MAX)
)


async def load_checkout(conn: AsyncConnection, public_id: str) -> CheckoutPayment | None:
    """Return the payment with this public id and the transfers to its address, or None where there is none."""
    found = (await conn.execute(_PAYMENT.where(Payment.public_id == public_id))).mappings().one_or_none()
    if found is None:
        return None
    columns = dict(found)
    rows = (await conn.execute(_DEPOSITS.where(Deposit.payment_pk == columns.pop("pk")))).mappings().all()
    total = rows[0]["total"] if rows else 0
    deposits = tuple(
        CheckoutDeposit(**{name: value for name, value in row.items() if name != "total"}) for row in reversed(rows)
    )
    return CheckoutPayment(
        expected=columns.pop("expected_units"),
        received=columns.pop("received_units"),
        status=Status(columns.pop("status")),
        grace=timedelta(seconds=columns.pop("grace_s")),
        deposits=deposits,
        deposits_left_out=total - len(deposits),
        **columns,
    )
