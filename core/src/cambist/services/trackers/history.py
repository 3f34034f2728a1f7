"""What trackers want read of the past: asked for, cancelled, begun anew, and how far it is. One row for each tracker.

Who reads it is the package ``services/receiving/history``. Rows are changed last in their transactions: a poll may wait
for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from msgspec import Struct
from sqlalchemy import delete as deletion
from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.services.chain_scope import DEEPEST, ChainScope

State = Literal["reading", "done", "cancelled"]

# Addresses that come while an earlier part is being read are read when that is done. So whoever adds addresses again
# and again cannot keep the first of them from being read to the end.
_ASK = """
INSERT INTO tracker_histories AS h (tracker_pk, chain, scope)
SELECT id, chain, scope FROM trackers WHERE id = $1 AND reads_past
ON CONFLICT (tracker_pk) DO UPDATE SET
    state = 'reading', xid = excluded.xid, again = h.state = 'reading' AND h.read_block IS NOT NULL,
    from_block = CASE WHEN h.state = 'reading' THEN h.from_block END,
    to_block = CASE WHEN h.state = 'reading' THEN h.to_block END,
    read_block = CASE WHEN h.state = 'reading' THEN h.read_block END
WHERE h.state <> 'cancelled'
"""
_RESTART = """
INSERT INTO tracker_histories AS h (tracker_pk, chain, scope) SELECT id, chain, scope FROM trackers WHERE id = $1
ON CONFLICT (tracker_pk) DO UPDATE SET
    state = 'reading', xid = excluded.xid, again = false, from_block = NULL, to_block = NULL, read_block = NULL,
    version = h.version + 1, failures = 0, error = NULL, error_code = NULL, due_at = NULL
"""

# Blocks of a span that was scanned by who may not have known the newest addresses: the history reads on to its end.
# A dump brings along numbers that may be far ahead of this server's: those rows cannot be new here.
_EXTEND = """
WITH unknown AS (
    SELECT tracker_pk FROM tracker_histories
    WHERE chain = $1 AND scope = $2 AND xid >= $3::text::xid8 AND to_block < $4 AND state <> 'cancelled'
        AND xid < pg_snapshot_xmax(pg_current_snapshot())
    ORDER BY tracker_pk FOR NO KEY UPDATE
)
UPDATE tracker_histories h SET to_block = $4, state = 'reading' FROM unknown WHERE h.tracker_pk = unknown.tracker_pk
"""

DEEP = DEEPEST.format(
    height="(c.height - {confirmations})", finalized="c.finalized", finality_required="{finality_required}"
)
"""The newest block, by a cursor ``c``, that a history reads: what stands there stays, or else is taken back as any
confirmed movement is."""


class HistoryView(Struct, frozen=True, kw_only=True, rename="camel"):
    """How far the past of a tracker's addresses was read. `readBlock` is the last one that was, up to `toBlock`.

    The blocks are null until reading begins. `error` says what is in the way; it is tried again. `untoldMovements` is
    how many were passed by since something in them cannot be told; a restart tries them again.
    """

    state: State
    from_block: int | None
    to_block: int | None
    read_block: int | None
    error: str | None
    untold_movements: int


async def ask(conn: AsyncConnection, tracker_pk: int) -> None:
    """Have the past read for addresses that this transaction gave the tracker, where it tells of the past.

    Not where its history was cancelled: that stays so until it is begun anew.
    """
    await conn.exec_driver_sql(_ASK, (tracker_pk,))


async def restart(conn: AsyncConnection, tracker_pk: int) -> None:
    """Have the past read for all of the tracker's addresses, from its first block on, whatever was read before."""
    await conn.exec_driver_sql(_RESTART, (tracker_pk,))


async def cancel(conn: AsyncConnection, tracker_pk: int) -> None:
    """Stop reading the tracker's past; what was told stays told. Changes nothing where nothing is being read."""
    reading = update(models.TrackerHistory).where(
        models.TrackerHistory.tracker_pk == tracker_pk, models.TrackerHistory.state == "reading"
    )
    nothing_wrong = {"error": None, "error_code": None, "due_at": None}
    cancelled = {"state": "cancelled", "again": False, "version": models.TrackerHistory.version + 1}
    await conn.execute(reading.values(**cancelled, **nothing_wrong))


async def read_again(conn: AsyncConnection, tracker_pk: int) -> None:
    """Have what is being read for the tracker right now read again: it was switched off or on meanwhile."""
    own = update(models.TrackerHistory).where(models.TrackerHistory.tracker_pk == tracker_pk)
    await conn.execute(own.values(version=models.TrackerHistory.version + 1))


async def delete(conn: AsyncConnection, tracker_pk: int) -> None:
    """Forget the history of a tracker that is deleted."""
    await conn.execute(deletion(models.TrackerHistory).where(models.TrackerHistory.tracker_pk == tracker_pk))


async def extend(conn: AsyncConnection, chain_scope: ChainScope, height: int, known_xid: int) -> None:
    """Have histories read up to a block that was scanned without knowing what transactions from this one on added.

    Whoever calls this holds the chain's cursor.
    """
    await conn.exec_driver_sql(_EXTEND, (*chain_scope.key, str(known_xid), height))


_DUE = f"""
SELECT DISTINCT h.chain, h.scope FROM tracker_histories h
JOIN unnest($1::text[], $2::bigint[], $3::bool[]) AS info (chain, confirmations, finality_required)
    ON info.chain = h.chain
JOIN chain_cursors c ON c.chain = h.chain AND c.scope = h.scope
JOIN trackers t ON t.id = h.tracker_pk AND t.is_active
WHERE h.state = 'reading' AND (h.due_at IS NULL OR h.due_at <= $4) AND (
    (h.read_block IS NULL AND (h.begun_at IS NULL OR h.begun_at <= $4 - make_interval(secs => $5)))
    OR (h.again AND h.read_block IS NOT NULL) OR h.read_block >= h.to_block
    OR h.read_block < {DEEP.format(confirmations="info.confirmations", finality_required="info.finality_required")}
)
"""  # noqa: S608  constants


class Due(NamedTuple):
    """A chain on which something of the past can be read now."""

    chain: str
    scope: int


async def find_due(
    conn: AsyncConnection, chains: Sequence[tuple[str, int, bool]], now: datetime, pause_s: float
) -> Sequence[Due]:
    """Return where there is something to read. Of each chain: id, confirmations, and whether finality is required.

    A tracker's past is begun at most once in ``pause_s``.
    """
    columns = [list(column) for column in zip(*chains, strict=True)] if chains else [[], [], []]
    return [Due(row.chain, row.scope) for row in await conn.exec_driver_sql(_DUE, (*columns, now, pause_s))]
