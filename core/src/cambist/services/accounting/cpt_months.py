"""Usage credits by calendar month (UTC): what was used, and what a plan's month includes.

::

    included = what is left of the month before, or the plan's credits, whichever is more
    given    = included - what is left of the month before

So what was not used is not given again: it does not add up. Nor is more left of a month than it included, where more
came back in it than was used: that was paid for before. What a month includes is used first. Credits that were
bought, and the initial allowance, are not counted here, and never end. Nothing is taken from a balance.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import to_struct, transposed

from . import ledger
from .ledger import Posting
from .usage import MODES, issue

INCLUDED = "cpt_included"
MERCHANTS_MAX = 500

LATE_COMMITS = timedelta(minutes=2)
"""How long after a month's end its last records may still be committed: no statement takes longer than a minute."""


class CptMonth(Struct, frozen=True, kw_only=True):
    """What a merchant used in a month, and how many credits the plan included; None where it included none yet."""

    used: int
    included: int | None


def month_of(moment: datetime) -> date:
    """Return the first day of the month that a moment is in."""
    return moment.astimezone(UTC).date().replace(day=1)


def _begin(month: date) -> datetime:
    return datetime.combine(month, time(), UTC)


# One statement sees one moment: a record is in the month's sum, or it is not posted, never both and never neither.
_READ = """
SELECT greatest(0, coalesce((SELECT used FROM cpt_months WHERE merchant_pk = $1 AND mode = $2 AND month = $3), 0)
    + coalesce((
        SELECT sum(CASE operation WHEN 'return' THEN -weight ELSE weight END) FROM usage_records
        WHERE merchant_pk = $1 AND mode = $2 AND NOT posted AND created_at >= $4
    ), 0))::bigint AS used,
    (SELECT included FROM cpt_months WHERE merchant_pk = $1 AND mode = $2 AND month = $3) AS included
"""


async def read_month(conn: AsyncConnection, merchant_pk: int, mode: str, now: datetime) -> CptMonth:
    """Return what a merchant used in this month, and what it included."""
    month = month_of(now)
    found = await conn.exec_driver_sql(_READ, (merchant_pk, mode, month, _begin(month)))
    return to_struct(CptMonth, found.one())


# Merchants of the built-in plan have no row of `plans`, and it includes nothing.
_OPEN = """
INSERT INTO cpt_months (merchant_pk, mode, month)
SELECT m.id, modes.mode, $2
FROM merchants m
    JOIN plans p ON p.id = coalesce(m.plan_pk, (SELECT id FROM plans WHERE is_default)) AND p.cpt_per_month IS NOT NULL
    CROSS JOIN unnest($1::text[]) AS modes (mode)
    LEFT JOIN cpt_months c ON c.merchant_pk = m.id AND c.mode = modes.mode AND c.month = $2
WHERE c.month IS NULL ORDER BY m.id, modes.mode LIMIT $3
ON CONFLICT DO NOTHING
"""

# Whoever waits for the rows of another worker finds them done: the condition is looked at again.
_LOCK = """
SELECT c.merchant_pk, c.mode, c.included, p.cpt_per_month, coalesce(before.unused, 0) AS unused
FROM cpt_months c
    JOIN merchants m ON m.id = c.merchant_pk
    JOIN plans p ON p.id = coalesce(m.plan_pk, (SELECT id FROM plans WHERE is_default)) AND p.cpt_per_month IS NOT NULL
    LEFT JOIN LATERAL (
        SELECT least(b.included, greatest(0, b.included - coalesce((
            SELECT sum(u.used) FROM cpt_months u
            WHERE u.merchant_pk = c.merchant_pk AND u.mode = c.mode AND u.month >= b.month AND u.month < c.month
        ), 0) - coalesce((
            SELECT sum(CASE r.operation WHEN 'return' THEN -r.weight ELSE r.weight END) FROM usage_records r
            WHERE r.merchant_pk = c.merchant_pk AND r.mode = c.mode AND NOT r.posted
                AND r.created_at >= b.month::timestamp AT TIME ZONE 'UTC' AND r.created_at < $2
        ), 0)))::bigint AS unused
        FROM cpt_months b
        WHERE b.merchant_pk = c.merchant_pk AND b.mode = c.mode AND b.month < c.month AND b.included IS NOT NULL
        ORDER BY b.month DESC LIMIT 1
    ) AS before ON true
WHERE c.month = $1 AND (c.included IS NULL OR c.included < p.cpt_per_month)
    AND NOT EXISTS (
        SELECT FROM cpt_months later WHERE later.merchant_pk = c.merchant_pk AND later.mode = c.mode
            AND later.month > c.month AND later.included IS NOT NULL
    )
ORDER BY c.merchant_pk, c.mode LIMIT $3
FOR UPDATE OF c
"""

_SAVE = """
UPDATE cpt_months c SET included = given.included
FROM unnest($2::bigint[], $3::text[], $4::bigint[]) AS given (merchant_pk, mode, included)
WHERE c.month = $1 AND c.merchant_pk = given.merchant_pk AND c.mode = given.mode
"""


async def give_included(conn: AsyncConnection, now: datetime, rows_max: int = MERCHANTS_MAX) -> int:
    """Give merchants what their plans include in this month, once; return for how many it was looked at now.

    A merchant who is given a larger plan gets the difference at once, with a smaller one nothing changes before the
    next month. Whenever it runs in a month, and however often, it gives the same. A worker whose clock is behind gives
    nothing for a month after another has given for the next.
    """
    month = month_of(now - LATE_COMMITS)
    await conn.exec_driver_sql(_OPEN, (list(MODES), month, rows_max))
    rows = (await conn.exec_driver_sql(_LOCK, (month, _begin(month), rows_max))).all()
    if not rows:
        return 0
    included = [max(row.cpt_per_month, row.unused if row.included is None else row.included) for row in rows]
    saved = [(row.merchant_pk, row.mode, level) for row, level in zip(rows, included, strict=True)]
    await conn.exec_driver_sql(_SAVE, (month, *transposed(saved)))
    postings = []
    for row, level in zip(rows, included, strict=True):
        given = level - (row.unused if row.included is None else row.included)
        if given > 0:
            reference = f"{row.merchant_pk}:{row.mode}:{month:%Y-%m}:{level}"
            movements = [issue(row.merchant_pk, given)]
            postings.append(Posting(mode=row.mode, kind=INCLUDED, reference=reference, movements=movements))
    await _post(conn, postings)
    return len(rows)


async def _post(conn: AsyncConnection, postings: Sequence[Posting]) -> None:
    for mode in MODES:
        of_mode = [posting for posting in postings if posting.mode == mode]
        if len(await ledger.post(conn, mode, of_mode)) != len(of_mode):
            raise AssertionError("a month's credits that were not given yet are in the ledger already")
