"""Transfers get their places in their sender's sequence, are signed, and are stored: all of it, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import structlog
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import ChainError, Dated, SignedTx, Step
from cambist.services.signer.protocol import ALREADY_SIGNED, SignReply

from . import place_store, store
from .desk import Desk, retold
from .lending import rests_until
from .rows import IntentRow, OwnPath
from .store import NewTx

REFUSED_PAUSE = timedelta(seconds=60)
OVER = ("done", "reverted", "cancelled")
"""States of a place in which a transaction of ours was mined, deep in the chain."""

Ready = tuple[IntentRow, Step]

log = structlog.get_logger(__name__)


class Doubt(Struct, frozen=True):
    """A transfer that the signer has signed before, without a sequence; and the transaction, if it is not dead."""

    one: Ready
    refusal: SignReply
    before: Dated


class Placed(Struct, frozen=True, kw_only=True):
    """What can be sent now. ``unreached`` says that a refusal kept others back, which may be asked for at once.

    ``doubt`` is left where that one may be placed after all: see ``place_again``.
    """

    signed: Sequence[SignedTx]
    unreached: bool
    doubt: Doubt | None = None


class _Signed(Struct, kw_only=True):
    txs: list[NewTx]
    refusal: SignReply | None


async def place(desk: Desk, source: OwnPath, ready: Sequence[Ready], mined: int | None) -> Placed:
    """Give each intent its place, sign, and store, all in one transaction: what is not stored is never sent.

    The first refusal ends it, for what stands behind would leave a gap. The signer signs a transfer for one place
    only. So one whose signature a crash has lost gets that very place again, or another when something else of ours
    was mined there; without sequences, another once the lost one is proven to have expired. Else the database does not
    know what became of it, and a person must say that it may be sent.
    """
    return await _place(desk, source, ready, mined, {})


async def place_again(desk: Desk, source: OwnPath, doubt: Doubt) -> Sequence[SignedTx]:
    """Sign what was signed before if that is proven to be dead, else hold it.

    The proof takes a while, so it is not made while others wait to be stored, or to be sent.
    """
    try:
        is_dead = all(await desk.chain.expired([doubt.before]))
    except ChainError as error:
        log.warning("expiry_unproven", chain=desk.site.info.id, txs=1, error=str(error))
        is_dead = False
    intent = doubt.one[0]
    if is_dead:
        placed = await _place(desk, source, [doubt.one], None, {intent.id: [doubt.before.valid_until]})
        return placed.signed
    now = desk.clock.now()
    async with desk.db.transaction() as conn:
        await _hold(desk, conn, intent, doubt.refusal, now)
    return []


async def _place(
    desk: Desk, source: OwnPath, ready: Sequence[Ready], mined: int | None, proven: Mapping[int, Sequence[int]]
) -> Placed:
    now, site = desk.clock.now(), desk.site
    async with desk.db.transaction() as conn:
        following = await store.lock_sender(conn, site, source.row, mined)
        still = await store.lock_waiting(conn, [intent for intent, _ in ready])
        ready = [(intent, step) for intent, step in ready if intent.id in still]
        dead = {**await place_store.dead_places(conn, [intent for intent, _ in ready]), **proven}
        places: Sequence[int | None] = [None] * len(ready)
        if mined is not None:
            gaps = await place_store.gaps(conn, site, source.row, mined, following, len(ready))
            places = [*gaps, *range(following, following + len(ready) - len(gaps))]
        found = await _sign(desk, ready, places, dead)
        refused = len(found.txs)
        doubt = None if proven or mined is not None else _doubt(found.refusal, ready[refused:])
        if mined is not None and found.refusal is not None and found.refusal.refusal == ALREADY_SIGNED:
            again = await _elsewhere(desk, conn, source, found, ready[refused], places[refused], mined)
            found = _Signed(txs=[*found.txs, *again.txs], refusal=again.refusal)
        if found.txs:
            following = max([following, *(tx.sequence + 1 for tx in found.txs if tx.sequence is not None)])
            await store.open_slots(conn, site, source.row, found.txs, next_sequence=following, now=now)
            sent = [retold(tx.intent.sent, tx_id=tx.signed.tx_id) for tx in found.txs]
            await desk.tell(conn, "on_broadcast", sent, now)
        if found.refusal is not None and doubt is None:
            await _hold(desk, conn, ready[refused][0], found.refusal, now)
    return Placed(signed=[tx.signed for tx in found.txs], unreached=refused + 1 < len(ready), doubt=doubt)


def _doubt(refusal: SignReply | None, refused: Sequence[Ready]) -> Doubt | None:
    if refusal is None or refusal.refusal != ALREADY_SIGNED or refusal.place is None or not refusal.tx_id:
        return None
    return Doubt(refused[0], refusal, Dated(tx_id=refusal.tx_id, valid_until=refusal.place))


async def _sign(
    desk: Desk, ready: Sequence[Ready], places: Sequence[int | None], dead: Mapping[int, Sequence[int]]
) -> _Signed:
    """Sign up to the first refusal."""
    numbered = [(step, number) for (_, step), number in zip(ready, places, strict=True)]
    unsigned = await desk.chain.prepare(numbered)
    items = [(intent, tx) for (intent, _), tx in zip(ready, unsigned, strict=True)]
    signed = _Signed(txs=[], refusal=None)
    for (intent, tx), reply in zip(items, await desk.sign(items, dead), strict=False):
        if reply.signature is None:
            signed.refusal = reply
            break
        signed.txs.append(
            NewTx(
                intent=intent,
                sequence=tx.sequence,
                signed=desk.seal(tx, reply.signature),
                fee=tx.fee,
                valid_until=tx.valid_until,
            )
        )
    return signed


async def _elsewhere(  # noqa: PLR0913, PLR0917  what was found, of whom, and where
    desk: Desk,
    conn: AsyncConnection,
    source: OwnPath,
    found: _Signed,
    one: Ready,
    offered: int | None,
    mined: int,
) -> _Signed:
    """Ask again for the place that the signer remembers, or for another where that one is proven to be used up."""
    refusal = found.refusal
    if refusal is None or refusal.place is None:
        return _Signed(txs=[], refusal=refusal)
    intent, before = one[0], refusal.place
    holder = await place_store.holder(conn, desk.site, source.row, before)
    if holder is None and before >= mined and all(tx.sequence != before for tx in found.txs):
        return await _sign(desk, [one], [before], {})
    if holder is not None and holder.intent != intent.id and holder.state in OVER:
        return await _sign(desk, [one], [offered], {intent.id: [before]})
    return _Signed(txs=[], refusal=refusal)


async def _hold(desk: Desk, conn: AsyncConnection, intent: IntentRow, refusal: SignReply, now: datetime) -> None:
    reason = f"signer: {refusal.refusal}"
    due_at = max(refusal.retry_at or now + REFUSED_PAUSE, rests_until(desk, intent, now))
    if await desk.hold(conn, [intent], reason, due_at, now):
        facts = {"code": refusal.refusal, "reason": refusal.reason, "retry_at": str(refusal.retry_at)}
        desk.alert("signer_refused", reference=intent.sent.reference, **facts)
