"""Which payments a refund was sent of: they are refunded, or become that when their money comes again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import and_, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Payout
from cambist.db.structs import AnyRow, one_of
from cambist.domain.intents import IntentKind
from cambist.domain.payouts import GIVEN_BACK, Status


async def sent_refunds(conn: AsyncConnection, payment_pks: Sequence[int]) -> Mapping[int, AnyRow]:
    """Return by payment the first of its refunds that is on its way or has arrived. Those of one deposit do not count.

    The rows serve as ``SentRefund``.
    """
    if not payment_pks:
        return {}
    broadcast = and_(Payout.status.not_in(GIVEN_BACK), Payout.broadcast_at.is_not(None))
    columns = (Payout.payout_id, Payout.units, Payout.decimals, Payout.to_address, Payout.to_tag, Payout.tx_id)
    found = await conn.execute(
        select(Payout.payment_pk, *columns)
        .where(
            one_of(Payout.payment_pk, payment_pks),
            Payout.kind == IntentKind.REFUND,
            Payout.deposit_pk.is_(None),
            or_(Payout.status == Status.COMPLETED, broadcast),
        )
        .order_by(Payout.broadcast_at.desc(), Payout.id.desc())
    )
    # The last of a payment's rows stays, which is the first refund.
    return {row.payment_pk: row for row in found}
