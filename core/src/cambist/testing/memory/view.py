"""How a chain in memory looks to the gateway, through its one endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cambist.plugin import (
    Block,
    ChainView,
    Head,
    InconsistentChainError,
    ScanResult,
    Span,
    SpanTooWideError,
    Transfer,
    Units,
    Watch,
)

from .blocks import MinedBlock

if TYPE_CHECKING:
    from .reading import MemoryReading


class MemoryView(ChainView):
    """The chain as its one endpoint shows it at the moment of each call."""

    def __init__(self, chain: MemoryReading) -> None:
        self.chain = chain

    async def head(self) -> Head:
        await self.chain.met("head")
        newest = self.chain.seen()[-1].header
        finalized_height = self.chain.finalized_height(newest.height)
        return Head(height=newest.height, hash=newest.hash, finalized_height=finalized_height)

    async def block(self, height: int) -> Block:
        await self.chain.met("block")
        return self._mined(height).header

    async def scan(self, span: Span, watch: Watch) -> ScanResult:
        """Return headers and watched transfers of the span, read in one piece."""
        await self.chain.met("scan", span_length=span.length)
        if span.length > self.chain.info.span_max:
            raise SpanTooWideError(f"{span.length} blocks are more than {self.chain.info.span_max}")
        if span.length < 1:
            raise ValueError(f"a span from {span.first} to {span.last} is none")
        blocks = [self._mined(height) for height in range(span.first, span.last + 1)]
        transfers = [transfer for block in blocks for transfer in self._transfers(block, watch)]
        return ScanResult(blocks=[block.header for block in blocks], transfers=transfers)

    def _mined(self, height: int) -> MinedBlock:
        blocks = self.chain.seen()
        if not 0 <= height < len(blocks):
            raise InconsistentChainError(f"{self.chain.info.id} has no block {height}, its head is {len(blocks) - 1}")
        return blocks[height]

    def _transfers(self, block: MinedBlock, watch: Watch) -> Iterator[Transfer]:
        address_key = self.chain.family.address_key
        for transaction, position, output in block.movements():
            if output.amount == 0 or not self.chain.is_registered(output.contract):
                continue
            if not any(address_key(end) in watch for end in (output.recipient, transaction.sender)):
                continue
            yield Transfer(
                tx_id=transaction.id,
                position=position,
                height=block.header.height,
                block_hash=block.header.hash,
                sender=transaction.sender,
                recipient=output.recipient,
                contract=output.contract,
                amount=Units(output.amount),
            )
