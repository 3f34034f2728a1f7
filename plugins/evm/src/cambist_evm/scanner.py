"""Reads a span of blocks from one endpoint: several requests at once, each block checked before it is used."""

from __future__ import annotations

from collections.abc import Sequence

from cambist.plugin import Block, ScanResult, Span, Transfer, Watch
from cambist_chainkit.gathering import gather_all
from cambist_chainkit.spans import read_in_batches

from .config import ChainSetup
from .decode import check_blooms, check_emptied, check_header, check_receipts, transfers_of
from .endpoint import Endpoint
from .traces import Movement, internal_transfers, may_move_inside
from .tracing import movements
from .wire import RpcBlock, RpcReceipt


async def read_span(endpoint: Endpoint, setup: ChainSetup, span: Span, watch: Watch) -> ScanResult:
    """Return every block of the span and its watched transfers, all from this endpoint."""
    return await read_in_batches(
        span,
        lambda heights: _read_batch(endpoint, setup, heights, watch),
        batch_blocks_max=setup.config.batch_calls_max,
        batches_at_once_max=setup.config.requests_at_once_max,
    )


async def _read_batch(
    endpoint: Endpoint, setup: ChainSetup, heights: Sequence[int], watch: Watch
) -> tuple[list[Block], list[Transfer]]:
    blocks, by_height = await gather_all(endpoint.blocks(heights), endpoint.receipts(heights))
    found: list[Block] = []
    transfers: list[Transfer] = []
    for position, (height, block) in enumerate(zip(heights, blocks, strict=True)):
        found.append(check_header(block, height))
        if by_height is None:
            receipts = await endpoint.receipts_of([tx.hash for tx in block.transactions])
        else:
            receipts = by_height[position]
        if setup.network.bor_receipts:
            receipts = await endpoint.completed(block, receipts)
        if setup.network.logs_known:
            check_emptied(block)
        check_receipts(block, receipts)
        check_blooms(receipts, setup.contracts)
        internal = internal_transfers(block, receipts, await _movements(endpoint, block, receipts), watch)
        transfers += transfers_of(
            block, receipts, setup.contracts, watch, internal, logs_known=setup.network.logs_known
        )
    return found, transfers


async def _movements(
    endpoint: Endpoint, block: RpcBlock, receipts: Sequence[RpcReceipt]
) -> Sequence[Sequence[Movement]]:
    """Return what moved inside each transaction; nothing where no code ran or the node offers no traces."""
    nothing: Sequence[Sequence[Movement]] = [()] * len(receipts)
    if not may_move_inside(receipts) or endpoint.is_untraced():
        return nothing
    moved = await movements(endpoint, block)
    return nothing if moved is None else moved
