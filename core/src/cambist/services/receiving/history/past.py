"""Reads blocks of the past from an endpoint that is on the chain which the live watch follows."""

from __future__ import annotations

import asyncio

from cambist.db.engine import Database
from cambist.plugin import Chain, ChainView, InconsistentChainError, ScanResult, Span, Watch
from cambist.services.chain_scope import ChainScope
from cambist.services.receiving.deposits.checking import checked

from . import rows
from .rows import Anchor

SCAN_TIMEOUT_S = 15.0


async def read_past(  # noqa: PLR0913  what is read, and what is known of it
    db: Database, chain: Chain, chain_scope: ChainScope, span: Span, watch: Watch, *, parent: str | None
) -> tuple[ScanResult, Anchor]:
    """Return the span, checked, and a block at its end or above it that the live watch has read.

    The endpoint had that very block a moment ago. Whoever stores something makes sure, under the chain's cursor, that
    the live watch still has it, too. Raises ChainError, and TimeoutError.
    """
    async with db.autocommit() as conn:
        anchor = await rows.anchor_of(conn, chain_scope, span.last)
    if anchor is None:
        raise InconsistentChainError(f"no block from {span.last} on is known")
    async with asyncio.timeout(SCAN_TIMEOUT_S), chain.view() as view:
        await _check_branch(view, anchor)
        last_hash = anchor.hash if anchor.height == span.last else (await view.block(span.last)).hash
        result = checked(await view.scan(span, watch), span, parent, last_hash)
    return result, anchor


async def _check_branch(view: ChainView, anchor: Anchor) -> None:
    head = await view.head()
    if head.height < anchor.height:
        raise InconsistentChainError(f"the endpoint's newest block is {head.height}, and {anchor.height} was seen")
    if (await view.block(anchor.height)).hash != anchor.hash:
        raise InconsistentChainError(f"the endpoint has another block {anchor.height} than the one that was read")
