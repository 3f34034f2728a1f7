"""Asks to cancel what waits to be sent: the engine does it, and the money is back a moment later.

Whether it can be is decided here, behind the lock of its intent: what has a nonce slot is on its way. From the commit
on nothing signs it. See ``cambist.services.sending.cancelling`` for what the engine does then.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from sqlalchemy import func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Exchange, OutboundIntent, Payout
from cambist.db.structs import AnyRow
from cambist.domain.intents import CANCELLABLE, AskedBy
from cambist.domain.payouts import FINISHED, Status
from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.paging import read_one
from cambist.services.sending.intents import WAITS_FOR_CANCELLATION, mark_cancelled

_EXCHANGES = select(Exchange).where(Exchange.payout_pk == Payout.id).correlate(Payout)
_FOUND = select(
    Payout.id,
    Payout.payout_id,
    Payout.project_pk,
    Payout.mode,
    _EXCHANGES.with_only_columns(Exchange.id).scalar_subquery().label("exchange_pk"),
    func.coalesce(Payout.intent_pk, _EXCHANGES.with_only_columns(Exchange.intent_pk).scalar_subquery()).label(
        "intent_pk"
    ),
    func.coalesce(_EXCHANGES.with_only_columns(Exchange.source_chain).scalar_subquery(), Payout.chain).label("chain"),
)

_OF_INTENT = (
    select(Payout.payout_id)
    .where(or_(Payout.intent_pk == OutboundIntent.id, Payout.id == Exchange.payout_pk))
    .correlate(OutboundIntent, Exchange)
    .scalar_subquery()
)


class Asked(Struct, frozen=True):
    """A payout that is to be cancelled, the chain it would leave, and whether that was asked for before."""

    payout_id: str
    project_pk: int
    mode: str
    chain: str
    before: bool


async def ask_to_cancel(conn: AsyncConnection, payout_id: str, asked_by: AskedBy, now: datetime) -> Asked:
    """Ask to cancel a payout, refund or withdrawal that is there. To ask again is no error.

    Raises ConflictError: ALREADY_SENT, ALREADY_ENDED. After the commit, publish the hint ``outbound``.
    """
    found = (await conn.execute(_FOUND.where(Payout.payout_id == payout_id))).one()
    intent = await _lock_intent(conn, found)
    status = await _lock_status(conn, found)
    if status in {Status.CANCELLING, Status.CANCELLED}:
        return Asked(found.payout_id, found.project_pk, found.mode, found.chain, before=True)
    if status in FINISHED:
        raise ConflictError("ALREADY_ENDED", f"There is nothing to cancel any more: it is {status}.")
    check_waits(intent.state)
    marked: dict[str, object] = {"status": Status.CANCELLING, "updated_at": now}
    # The signer's refusal may have said before that it was cancelled: then what it waits for is known already.
    is_new = intent.cancel_asked_at is None
    if is_new:
        await mark_cancelled(conn, found.intent_pk, asked_by, now)
        marked["waits_for"] = WAITS_FOR_CANCELLATION
    await conn.execute(update(Payout).where(Payout.id == found.id).values(**marked))
    if is_new and found.exchange_pk is not None:
        waits = update(Exchange).where(Exchange.id == found.exchange_pk).values(waits_for=WAITS_FOR_CANCELLATION)
        await conn.execute(waits)
    return Asked(found.payout_id, found.project_pk, found.mode, found.chain, before=False)


async def cancel_intent(conn: AsyncConnection, intent_id: str, now: datetime) -> bool:
    """Ask to cancel whatever waits, for the operator; return False where somebody has before.

    Raises NotFoundError, and ConflictError: NOT_CANCELLABLE, ALREADY_SENT, ALREADY_ENDED.
    """
    intent = OutboundIntent
    columns = intent.id.label("intent_pk"), intent.kind, Exchange.id.label("exchange_pk"), _OF_INTENT.label("payout_id")
    joined = select(*columns).select_from(intent).outerjoin(Exchange, Exchange.intent_pk == intent.id)
    wanted = joined.where(intent.intent_id == intent_id)
    found = await read_one(conn, wanted, NotFoundError("INTENT_NOT_FOUND", "There is no such transfer."))
    if found.kind not in CANCELLABLE:
        raise ConflictError("NOT_CANCELLABLE", f"A {found.kind} is the gateway's own: there is no money to give back.")
    if found.payout_id is not None:
        return not (await ask_to_cancel(conn, found.payout_id, AskedBy.OPERATOR, now)).before
    locked = await _lock_intent(conn, found)
    if locked.state == "waiting" and locked.cancel_asked_at is not None:
        return False
    check_waits(locked.state)
    await mark_cancelled(conn, found.intent_pk, AskedBy.OPERATOR, now)
    waits = update(Exchange).where(Exchange.id == found.exchange_pk).values(waits_for=WAITS_FOR_CANCELLATION)
    await conn.execute(waits)
    return True


def check_waits(state: str) -> None:
    """Refuse to cancel an intent in this state, unless it waits. Raises ConflictError."""
    if state == "sending":
        raise ConflictError("ALREADY_SENT", "It is on its way: what is signed cannot be taken back.")
    if state != "waiting":
        raise ConflictError("ALREADY_ENDED", "There is nothing to cancel any more: it has ended.")


async def _lock_intent(conn: AsyncConnection, found: AnyRow) -> AnyRow:
    """Wait until no engine is about to sign it, and let none begin."""
    intent = OutboundIntent
    wanted = select(intent.state, intent.cancel_asked_at).where(intent.id == found.intent_pk)
    return (await conn.execute(wanted.with_for_update(key_share=True))).one()


async def _lock_status(conn: AsyncConnection, found: AnyRow) -> Status:
    if found.exchange_pk is not None:
        await conn.execute(select(Exchange.id).where(Exchange.id == found.exchange_pk).with_for_update(key_share=True))
    locked = select(Payout.status).where(Payout.id == found.id).with_for_update(key_share=True)
    return Status((await conn.execute(locked)).scalar_one())
