"""Addresses that were committed since they were last read, as columns of whatever else is asked at that moment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

NEW_ROWS_MAX = 500
"""So many new addresses are read in one statement; more come by a cursor, in parts."""
BESIDE_MAX = 25
"""So many are read beside something else. For more, PostgreSQL would rather plan such a statement anew each time."""

SOURCES = ("addresses", "tracked_addresses")
"""Where addresses are that are watched: ours, and those of trackers."""


class News(Struct, frozen=True, kw_only=True):
    """What one statement saw: the new addresses, the oldest transaction that was open, and since when the server runs.

    Whatever it did not see is of a transaction from ``xmin`` on, unless it found as many as it was to look for.
    """

    addresses: Sequence[str]
    xmin: int
    server: datetime


def news_columns(*, mode: str, family: str, xid: str, limit: int, only_if: str = "true") -> str:
    """Return the columns of a statement in which ``News`` stand, by the parameters of mode, family and transaction.

    From that transaction on rows may not have been visible when they were last looked for. A statement has one view of
    the tables, so all of it is of the same moment. There are more new addresses than these where there are as many as
    ``limit``. Where ``only_if`` does not hold, nothing is looked for.
    """
    new = " UNION ALL ".join(
        f"(SELECT address FROM {table} WHERE mode = {mode} AND family = {family} AND xid >= {xid}::text::xid8"  # noqa: S608  constants
        f" AND xid < pg_snapshot_xmax(pg_current_snapshot()) ORDER BY {table}.xid LIMIT {limit})"
        for table in SOURCES
    )
    return (
        "pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin, pg_postmaster_start_time() AS server,"
        f" CASE WHEN {only_if} THEN ARRAY({new}) END AS new_addresses"
    )
