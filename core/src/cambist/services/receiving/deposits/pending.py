"""What a poll finds beside new blocks: one question, so that a chain on which nothing happens costs little.

Each condition is the very one of the statement that is run where it holds. What becomes due after it was asked, the
next poll finds.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Head
from cambist.services.chain_scope import ChainScope
from cambist.services.trackers import movements

from . import judging, opening_balances
from .addresses import AddressCache, Known
from .cursors import Cursor
from .new_addresses import BESIDE_MAX, News, news_columns

TOLD_AFTER = timedelta(seconds=5)
"""After so long it is written down again that the chain was looked at, though it stands still."""

_READ = f"""
SELECT c.height, c.hash, c.histories_begun,
    c.head <> $3 OR c.finalized IS DISTINCT FROM $4 OR c.updated_at <= $5 AS is_news,
    EXISTS (SELECT FROM deposits WHERE {judging.CONFIRMED.format(deepest="$6")})
        OR EXISTS (SELECT FROM payments WHERE {judging.EXPIRED.format(now="$7")})
        OR EXISTS (SELECT FROM payments WHERE {judging.DIRTY})
        OR EXISTS (SELECT FROM payments WHERE {judging.DETECTED}) AS judge,
    EXISTS (SELECT FROM payments WHERE {judging.CONFIRMING}) AS count_on,
    EXISTS (SELECT FROM movements WHERE {movements.CONFIRMED.format(deepest="$8", head="$3")}) AS confirm_movements,
    {news_columns(mode="$9", family="$10", xid="$11", limit=BESIDE_MAX, only_if="$3 - c.height BETWEEN 1 AND $12")},
    CASE WHEN $13::bool THEN {opening_balances.IS_OPEN.format(chain="$1", mode="$9", family="$10")} END AS is_open
FROM chain_cursors c WHERE c.chain = $1 AND c.scope = $2
"""  # noqa: S608  constants


class Pending(Struct, frozen=True, kw_only=True):
    """Where a chain was read to, and what there is to do at its head.

    ``histories_begun``: how often pasts of trackers were begun when this was asked. ``is_news``: what is stored of the
    head is not what it is, or is old. ``judge`` and ``confirm_movements`` say whether anything is due, ``count_on``
    whether anybody counts confirmations. ``known`` says who is watched, where that was learnt beside it and is enough
    for the next span. ``is_open`` says whether the chain's books have begun; None without a gas station, and unasked.
    """

    cursor: Cursor
    histories_begun: int
    is_news: bool
    judge: bool
    count_on: bool
    confirm_movements: bool
    known: Known | None
    is_open: bool | None


async def read_pending(  # noqa: PLR0913  what is known, and what is asked
    conn: AsyncConnection,
    chain_scope: ChainScope,
    head: Head,
    now: datetime,
    *,
    addresses: AddressCache | None,
    span_blocks: int,
    asks_books: bool,
) -> Pending | None:
    """Return what is due now with this head, or None before the first poll.

    Where the next span, of at most ``span_blocks``, ends at the head, its last block is known already. So the addresses
    that it is scanned for may be asked for here, and are, unless ``addresses`` is None.
    """
    since = None if addresses is None else addresses.since()
    found = await conn.exec_driver_sql(
        _READ,
        (
            *chain_scope.key,
            head.height,
            head.finalized_height,
            now - TOLD_AFTER,
            chain_scope.deepest(head.height, head.finalized_height),
            now,
            movements.deepest(chain_scope, head),
            *(chain_scope.mode, chain_scope.info.family),
            *((str(since), span_blocks) if since is not None else (None, 0)),
            asks_books,
        ),
    )
    row = found.one_or_none()
    if row is None:
        return None
    known = None
    if addresses is not None and since is not None and row.new_addresses is not None:
        known = addresses.learn(since, News(addresses=row.new_addresses, xmin=row.xmin, server=row.server))
    return Pending(
        cursor=Cursor(row.height, row.hash),
        histories_begun=row.histories_begun,
        is_news=row.is_news,
        judge=row.judge,
        count_on=row.count_on,
        confirm_movements=row.confirm_movements,
        known=known,
        is_open=row.is_open,
    )
