"""What an operator may do about an intent: have it looked at now, its transaction pay more, or a transaction end it.

The engine does it, or says why it does not.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Exchange, OutboundIntent, OutboundSlot, OutboundTx
from cambist.domain.intents import FOR_ITS_MOMENT
from cambist.domain.money import format_units
from cambist.plugin import ChainInfo, Units
from cambist.services.errors import ConflictError, InvalidError
from cambist.services.sending.cancelling import WAITS_FOR_PROOF

from .listing import QueuedIntent, QueuedTx


async def retry(conn: AsyncConnection, one: QueuedIntent, now: datetime) -> None:
    """Have it looked at now, or broadcast once more. Nothing is signed that would not be signed anyway.

    It is tried also while its address rests, which rests no longer where it can be planned.
    What has failed gave its money back, and is asked for anew. Raises ConflictError. After the commit, publish the hint
    ``outbound``.
    """
    intent = OutboundIntent
    if one.state == "waiting":
        waits = intent.id == one.pk, intent.state == "waiting"
        await conn.execute(update(intent).where(*waits).values(due_at=now, retried_at=now, updated_at=now))
        due = Exchange.intent_pk == one.pk, Exchange.due_at.is_not(None)
        await conn.execute(update(Exchange).where(*due).values(due_at=now))
    elif one.slot_pk is not None:
        await _lock_slot(conn, one)
        sent = OutboundTx.slot_pk == one.slot_pk, OutboundTx.state.in_(("stored", "sent"))
        await conn.execute(update(OutboundTx).where(*sent).values(tried_at=None))
    elif one.state != "sending":
        raise ended()


async def ask_to_raise(  # noqa: PLR0913, PLR0917  of what, how far
    conn: AsyncConnection, one: QueuedIntent, txs: list[QueuedTx], info: ChainInfo, fee_max: Units | None, now: datetime
) -> None:
    """Ask for a higher fee under the same nonce: up to the chain's ceiling, or beyond it to ``fee_max`` in all.

    Raises ConflictError: FEE_NOT_RAISABLE, ALREADY_MINED, ALREADY_ENDED; and InvalidError where the bound is not above
    what it may cost already. After the commit, publish the hint ``outbound``.
    """
    if one.state == "waiting" or (one.state == "sending" and one.slot_pk is None):
        raise ConflictError("FEE_NOT_RAISABLE", "It has no transaction of its own yet: there is no fee to raise.")
    if one.state != "sending" or not await _lock_slot(conn, one):
        raise ended()
    if one.kind in FOR_ITS_MOMENT:
        raise ConflictError("FEE_NOT_RAISABLE", "It is for its moment: it is not replaced, but given up when stuck.")
    if one.sequence is None:
        raise ConflictError("FEE_NOT_RAISABLE", f"Nothing is replaced on {info.name}: it is mined, or expires.")
    open_txs = [tx for tx in txs if tx.slot_state == "open"]
    if any(tx.height is not None for tx in open_txs):
        raise ConflictError("ALREADY_MINED", "It is in a block already.")
    costs = max(tx.fee.cost_max for tx in open_txs)
    if fee_max is not None and fee_max <= costs:
        text = format_units(costs, info.native.decimals)
        raise InvalidError.field(
            "maxFee", f"must be more than the {text} {info.native.symbol} that it may cost already"
        )
    wish = {"raise_asked_at": now, "raise_fee_max": fee_max, "raise_refusal": None}
    await conn.execute(update(OutboundSlot).where(OutboundSlot.id == one.slot_pk).values(**wish))


async def ask_to_settle(conn: AsyncConnection, one: QueuedIntent, tx_id: str, now: datetime) -> bool:
    """Name the transaction that used the nonce of what may have been sent; return False where it was named already.

    Another one may be named while one is looked at. Raises ConflictError: NOTHING_TO_SETTLE, ALREADY_ENDED. After the
    commit, publish the hint ``outbound``.
    """
    intent = OutboundIntent
    columns = intent.state, intent.cancel_asked_at, intent.reason, intent.settle_asked_at, intent.settle_tx_id
    locked = select(*columns).where(intent.id == one.pk).with_for_update(key_share=True)
    row = (await conn.execute(locked)).one()
    is_open = row.state == "waiting"
    if row.settle_tx_id == tx_id and (not is_open or row.settle_asked_at is not None):
        return False
    if row.state in {"done", "failed"}:
        raise ended()
    if not is_open or row.cancel_asked_at is None or row.reason != WAITS_FOR_PROOF:
        words = (
            "Only what is to be cancelled, and was signed before by what its signer says, is ended by a transaction."
        )
        raise ConflictError("NOTHING_TO_SETTLE", words)
    asked = {"settle_tx_id": tx_id, "settle_asked_at": now, "settle_refusal": None, "due_at": now, "updated_at": now}
    await conn.execute(update(intent).where(intent.id == one.pk).values(**asked))
    return True


def ended() -> ConflictError:
    return ConflictError("ALREADY_ENDED", "It has ended. What failed gave its money back, and is asked for anew.")


async def _lock_slot(conn: AsyncConnection, one: QueuedIntent) -> bool:
    """Lock its slot, and return whether it is still open."""
    locked = select(OutboundSlot.state).where(OutboundSlot.id == one.slot_pk).with_for_update(key_share=True)
    return (await conn.execute(locked)).scalar_one() == "open"
