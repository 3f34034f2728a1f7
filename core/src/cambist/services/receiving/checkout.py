"""What the hosted checkout and the receipt are drawn from: one payment, read by its public id."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from msgspec import Struct, structs
from sqlalchemy import Interval, and_, case, func, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Cursor, Deposit, Merchant, Payment, Project
from cambist.db.structs import columns_of, to_struct
from cambist.domain.payments import Status
from cambist.plugin import Units
from cambist.services.addresses.macs import AddressMacs
from cambist.services.receiving.deposits.rows import set_aside_of

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
    mined_at: datetime
    height: int
    head: int | None
    finalized: int | None
    required_confirmations: int
    confirmed: bool
    confirmed_at: datetime | None
    matches: bool


class CheckoutPayment(Struct, frozen=True, kw_only=True):
    """A payment as its customer may see it: nothing of who pays, and nothing of the merchant but the shop's name.

    While the merchant is suspended, ``is_suspended``, nobody is asked to begin to pay.

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
    address_mac: bytes
    is_suspended: bool
    deposits: tuple[CheckoutDeposit, ...] = ()
    deposits_left_out: int = 0

    @property
    def is_closed(self) -> bool:
        """Whether nobody shall begin to pay. Who has paid a part is asked for the rest as always."""
        return self.is_suspended and self.status is Status.PENDING and not self.deposits


_PAYMENT = select(
    Payment.id.label("pk"),
    *columns_of(
        CheckoutPayment,
        Payment,
        shop_name=Project.name,
        expected=Payment.expected_units,
        received=case(
            # Who is asked for the rest is asked for all that is missing, whatever of it was sent back before.
            (Payment.status == Status.PENDING, Payment.received_units - literal_column(set_aside_of("payments"))),
            else_=Payment.received_units,
        ),
        is_suspended=Merchant.suspended_at.is_not(None),
        grace=func.make_interval(0, 0, 0, 0, 0, 0, Payment.grace_s, type_=Interval),
    ),
)
_PAYMENT = _PAYMENT.join(Project, Project.id == Payment.project_pk).join(Merchant, Merchant.id == Payment.merchant_pk)

_DEPOSITS = (
    select(
        *columns_of(
            CheckoutDeposit,
            Deposit,
            head=Cursor.head,
            finalized=Cursor.finalized,
            confirmed=Deposit.status == "confirmed",
        ),
        func.count().over().label("total"),
    )
    .outerjoin(Cursor, and_(Cursor.chain == Deposit.chain, Cursor.scope == Deposit.scope))
    .where(Deposit.status != "orphaned")
    .order_by(Deposit.mined_at.desc(), Deposit.id.desc())
    .limit(DEPOSITS_SHOWN_MAX)
)


async def load_checkout(conn: AsyncConnection, public_id: str, macs: AddressMacs) -> CheckoutPayment | None:
    """Return the payment with this public id and the transfers to its address, or None where there is none.

    None also where its address was changed, which is logged: nobody shall pay to that one.
    """
    found = (await conn.execute(_PAYMENT.where(Payment.public_id == public_id))).one_or_none()
    if found is None or not macs.holds(found._mapping, found.address_mac):  # noqa: SLF001  its public name
        return None
    rows = (await conn.execute(_DEPOSITS.where(Deposit.payment_pk == found.pk))).all()
    return structs.replace(
        to_struct(CheckoutPayment, found),
        deposits=tuple(to_struct(CheckoutDeposit, row) for row in reversed(rows)),
        deposits_left_out=rows[0].total - len(rows) if rows else 0,
    )
