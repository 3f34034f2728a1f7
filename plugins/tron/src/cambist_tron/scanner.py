"""Reads a span of blocks from one endpoint: several requests at once, each block checked before it is used."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from cambist.plugin import Block, InconsistentChainError, ScanResult, Span, Transfer, Watch
from cambist_chainkit.gathering import gather_all
from cambist_chainkit.spans import read_in_batches

from .config import ChainSetup
from .decode import check_infos, check_transactions, transfers_of
from .endpoint import Endpoint
from .wire import TronBlock, TxInfo

BATCHES_AT_ONCE_MAX: Final = 2


async def read_span(
    endpoint: Endpoint, setup: ChainSetup, span: Span, watch: Watch, ahead: Sequence[TronBlock] = ()
) -> ScanResult:
    """Return every block of the span and its watched transfers, all from this endpoint.

    ``ahead`` is the whole span, where it was read already; what does not fit to it is read again.
    """
    waiting = [ahead] if ahead else []
    permits = asyncio.Semaphore(setup.config.requests_at_once_max)

    async def read(heights: Sequence[int]) -> tuple[list[Block], list[Transfer]]:
        blocks = waiting.pop() if waiting else await endpoint.blocks(heights[0], len(heights))
        found = []
        for height, block in zip(heights, blocks, strict=True):
            found.append(endpoint.prove(block, height))
            check_transactions(block, height)
        read: list[list[Transfer]] = await gather_all(*(transfers(block) for block in blocks))
        return found, [transfer for some in read for transfer in some]

    async def transfers(block: TronBlock) -> list[Transfer]:
        height = block.raw.number
        # Nobody sent what stands in the first block, and nodes keep no results for it.
        if not block.transactions or height == 0:
            return []
        async with permits:
            infos = await _infos(endpoint, block, height)
        return transfers_of(block, infos, setup.contracts, watch, internal=setup.config.internal_transfers)

    return await read_in_batches(
        span,
        read,
        batch_blocks_max=setup.config.batch_blocks_max,
        batches_at_once_max=BATCHES_AT_ONCE_MAX,
    )


async def _infos(endpoint: Endpoint, block: TronBlock, height: int) -> list[TxInfo]:
    """Return what came of the block's transactions, asking once more where the answer was none of it.

    Behind one address are many nodes, and one that has the block may not have the results yet.
    """
    try:
        return check_infos(block, await endpoint.infos(height), height)
    except InconsistentChainError:
        return check_infos(block, await endpoint.infos(height), height)
