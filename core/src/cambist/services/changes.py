"""What has changed lately: read once by each web process, for all the streams that it serves.

Triggers write a row for each change in the transaction that makes it (``db/models/changes.py``). A reader remembers
PostgreSQL's snapshot of its last poll: what is visible now and was not then is new, each row once, however long its
transaction took. See ``docs/decisions/0041-streams-read-what-is-committed.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import to_struct

KEPT_S = 300
"""How long changes are kept at least."""
FORGOTTEN_MAX = 10_000
"""How many are deleted in one transaction."""


class Change(Struct, frozen=True, kw_only=True):
    """Something to read again: see ``db/models/changes.py``. ``merchant_id`` and ``project_id`` are the public ones.

    ``intent_kind`` is an ``IntentKind`` where the kind is ``outbound``.
    """

    kind: str
    object_id: str
    status: str | None
    mode: str | None
    merchant_pk: int | None
    project_pk: int | None
    merchant_id: str | None
    project_id: str | None
    intent_kind: str | None = None


class News(Struct, frozen=True, kw_only=True):
    """What was not visible before, oldest first. ``snapshot`` is where the next poll goes on.

    Every change below the transaction ``resume_xid`` has been told by then. ``is_whole`` is False where there were more
    than the limit: then nothing is told of any.
    """

    changes: Sequence[Change]
    snapshot: str
    resume_xid: int
    is_whole: bool


_READ = """
SELECT c.kind, c.object_id, c.status, c.mode, c.merchant_pk, c.project_pk, m.merchant_id, p.project_id,
    c.intent_kind, now.snapshot::text AS snapshot, pg_snapshot_xmin(now.snapshot)::text::bigint AS resume_xid
FROM (SELECT pg_current_snapshot() AS snapshot) AS now
LEFT JOIN changes c ON c.xid >= pg_snapshot_xmin($1::text::pg_snapshot)
    AND NOT pg_visible_in_snapshot(c.xid, $1::text::pg_snapshot)
LEFT JOIN merchants m ON m.id = c.merchant_pk
LEFT JOIN projects p ON p.id = c.project_pk
ORDER BY c.id
LIMIT $2
"""
_SINCE = """
SELECT c.kind, c.object_id, c.status, c.mode, c.merchant_pk, c.project_pk, m.merchant_id, p.project_id,
    c.intent_kind
FROM changes c
LEFT JOIN merchants m ON m.id = c.merchant_pk
LEFT JOIN projects p ON p.id = c.project_pk
WHERE c.xid >= $1::text::xid8 AND ($2::bigint IS NULL OR c.merchant_pk = $2)
ORDER BY c.id
LIMIT $3
"""
_FORGET = """
DELETE FROM changes c USING (
    SELECT id FROM changes WHERE at < now() - make_interval(secs => $1) ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
) AS over WHERE c.id = over.id
"""


async def position(conn: AsyncConnection) -> str:
    """Return the snapshot of this moment: the first look behind it finds what is committed from now on."""
    return str((await conn.exec_driver_sql("SELECT pg_current_snapshot()::text")).scalar_one())


async def is_known(conn: AsyncConnection, xid: int) -> bool:
    """Tell whether this database has reached this transaction: one that was restored may not have."""
    known = "SELECT $1::text::xid8 <= pg_snapshot_xmax(pg_current_snapshot())"
    return bool((await conn.exec_driver_sql(known, (str(xid),))).scalar_one())


async def read(conn: AsyncConnection, snapshot: str, limit: int) -> News:
    """Return what is visible and was not in ``snapshot``."""
    rows = (await conn.exec_driver_sql(_READ, (snapshot, limit + 1))).all()
    is_whole = len(rows) <= limit
    return News(
        changes=[to_struct(Change, row) for row in rows if row.kind is not None] if is_whole else [],
        snapshot=rows[0].snapshot,
        resume_xid=rows[0].resume_xid,
        is_whole=is_whole,
    )


async def since(conn: AsyncConnection, xid: int, merchant_pk: int | None, limit: int) -> Sequence[Change] | None:
    """Return the changes of this transaction and later ones, of one merchant if named; None where there are more."""
    rows = (await conn.exec_driver_sql(_SINCE, (str(xid), merchant_pk, limit + 1))).all()
    return None if len(rows) > limit else [to_struct(Change, row) for row in rows]


async def forget(conn: AsyncConnection) -> bool:
    """Delete a part of what is older than ``KEPT_S``; return True while more may be left."""
    done = await conn.exec_driver_sql(_FORGET, (KEPT_S, FORGOTTEN_MAX))
    return done.rowcount >= FORGOTTEN_MAX
