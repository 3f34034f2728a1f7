"""The two chains of a bridge, connected, and how far each was read: what fills and refunds are looked for on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import BridgeProvider, ContractChain, FoundLog, LogQuery, SpanTooWideError
from cambist.services.chain_scope import DEEPEST

from .rows import ExchangeRow
from .worker import ExchangeWorker

SPAN_MAX = 2_000
SPANS_MAX = 20
"""Spans of blocks that are asked for in one poll."""
SEARCH_S = 30.0
"""For how long blocks are asked for in one poll: less than whoever follows an exchange is given for it."""


class Sides(Struct, frozen=True):
    """The provider and both chains, connected."""

    provider: BridgeProvider
    source: ContractChain
    dest: ContractChain


class Reach(Struct, frozen=True):
    """How far a chain was read: the height, the deepest block that counts as final, and that one's time."""

    height: int
    deep: int
    deep_time: datetime | None


def connected_sides(worker: ExchangeWorker, row: ExchangeRow) -> Sides | None:
    provider, source, dest = worker.bridge(row), worker.chain(row.source_chain), worker.chain(row.dest_chain)
    return None if provider is None or source is None or dest is None else Sides(provider, source, dest)


_REACH = f"""
SELECT c.height, d.deep, b.mined_at
FROM chain_cursors c
    CROSS JOIN LATERAL (
        SELECT {DEEPEST.format(height="(c.height - $3)", finality_required="$4", finalized="c.finalized")} AS deep
    ) d
    LEFT JOIN chain_blocks b ON b.chain = c.chain AND b.scope = c.scope AND b.height = d.deep
WHERE c.chain = $1 AND c.scope = $2
"""  # noqa: S608  constants


async def read_reach(worker: ExchangeWorker, conn: AsyncConnection, row: ExchangeRow, chain_id: str) -> Reach | None:
    """Return it by the rule of ``finality_store.depth()``; None where the chain was never read."""
    info = worker.infos[chain_id]
    values = (chain_id, row.scope, max(1, info.confirmations), info.finality_required)
    known = (await conn.exec_driver_sql(_REACH, values)).one_or_none()
    return None if known is None else Reach(known.height, known.deep, known.mined_at)


async def search(
    worker: ExchangeWorker, chain: ContractChain, query: Callable[[int, int], LogQuery], first: int, last: int
) -> AsyncIterator[tuple[Sequence[FoundLog], int]]:
    """Yield what spans of blocks hold, one after the other, each with its last height.

    It ends early once it has taken long, but never before the first span was told or found too wide: who is stopped in
    the middle has looked in vain, and begins at the same height again. Spans that a chain's nodes find too wide are
    halved, also the next time; after one that they told, the next time begins with one twice as wide.
    """
    low, last = first, min(last, first + SPANS_MAX * SPAN_MAX)
    until = worker.clock.monotonic() + SEARCH_S
    width = worker.spans.get(chain.info.id, SPAN_MAX)
    while low <= last and (low == first or worker.clock.monotonic() < until):
        high = min(low + width - 1, last)
        try:
            logs = await chain.logs(query(low, high))
        except SpanTooWideError:
            if low == high:
                raise
            worker.spans[chain.info.id] = width = (high - low + 1) // 2
            if worker.clock.monotonic() < until:
                continue
            return
        worker.spans[chain.info.id] = min(SPAN_MAX, 2 * width)
        yield logs, high
        low = high + 1
