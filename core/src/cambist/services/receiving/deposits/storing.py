"""A span that was read becomes what is known: one transaction with all that follows from it."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.plugin import Head
from cambist.services.trackers import movements

from . import cursors, judging, store
from .checking import Scanned
from .cursors import Cursor
from .pending import Pending
from .sent import note_sent
from .store import WatchedChain

NOTHING_SAVED = store.Saved()


class Stored(NamedTuple):
    """What a span led to. ``stages`` is how many there are to tell trackers of."""

    saved: store.Saved = NOTHING_SAVED
    judgement: judging.Judgement = judging.Judgement()
    stages: int = 0


async def store_span(  # noqa: PLR0913, PLR0917  what was read, and all that was known before
    db: Database, chain_scope: WatchedChain, head: Head, pending: Pending, now: datetime, scanned: Scanned
) -> Stored:
    """Commit a span with the cursor. Nearly all of them hold nothing, and nothing is due: that is one statement.

    Raises CursorMovedError where the cursor no longer is the one that is pending; then nothing is stored.
    """
    result, last = scanned.result, scanned.result.blocks[-1]
    at_head = last.height == head.height
    judge, confirm = at_head and (pending.judge or pending.count_on), at_head and pending.confirm_movements
    saved, judgement, known_xid = NOTHING_SAVED, judging.Judgement(), None
    is_quiet = not (result.transfers or judge or confirm)
    if is_quiet:
        async with db.autocommit() as conn:
            if await _passed_over(conn, chain_scope, head, pending.cursor, now, scanned):
                return Stored()
    async with db.transaction() as conn:
        may_pass = not (is_quiet or result.transfers)  # where all was quiet, that has just failed
        if not (may_pass and await _passed_over(conn, chain_scope, head, pending.cursor, now, scanned)):
            histories_begun = await cursors.move_cursor(
                conn,
                chain_scope,
                old=pending.cursor,
                new=Cursor(last.height, last.hash),
                head=head,
                now=now,
                tokens_revision=scanned.tokens_revision,
            )
            known_xid = None if histories_begun == scanned.histories_begun else scanned.known_xid
            sent = await note_sent(conn, chain_scope, result)
            saved = await store.save(conn, chain_scope, result, now, sent)
        if judge or (at_head and saved.deposits):
            judgement = await judging.judge(conn, chain_scope, head, now, counts_on=pending.count_on)
        stages = await movements.save(conn, chain_scope, result, saved.tracked, now, known_xid)
        if confirm or (at_head and stages):
            stages += await movements.confirm(conn, chain_scope, head, now)
    return Stored(saved, judgement, stages)


async def _passed_over(  # noqa: PLR0913, PLR0917  what was read, and all that was known before
    conn: AsyncConnection, chain_scope: WatchedChain, head: Head, cursor: Cursor, now: datetime, scanned: Scanned
) -> bool:
    """Store a span without a transfer, and return True; or do nothing, where that takes more than its blocks."""
    return await cursors.advance(
        conn,
        chain_scope,
        old=cursor,
        blocks=scanned.result.blocks,
        head=head,
        now=now,
        tokens_revision=scanned.tokens_revision,
        histories_begun=None if scanned.known_xid is None else scanned.histories_begun,
    )
