"""One poll of the chain with as few requests as it takes: providers limit the requests of a key per day.

The gateway asks for the head, then whether the last block that it read still stands, then for what came since. The
blocks that came since answer the second question, too: the first of them names its parent, and a block whose id is
known need not be asked for. So a poll with a new block costs three requests instead of four, and one without a new
block costs one instead of two.
"""

from __future__ import annotations

from cambist.plugin import Block, Head, InconsistentChainError, ScanResult, Span, SpanTooWideError, Watch
from cambist_chainkit.pool import answer_of
from cambist_chainkit.pooled import PooledChain, PooledView
from cambist_chainkit.spans import check_links

from .config import ChainSetup
from .endpoint import Endpoint
from .headers import check_header
from .scanner import read_span
from .wire import TronBlock


class TronView(PooledView[Endpoint]):
    """Polls a single endpoint. Not used with a quorum, where each endpoint is asked everything."""

    def __init__(self, chain: PooledChain[Endpoint], endpoint: Endpoint, setup: ChainSetup) -> None:
        super().__init__(chain, endpoint)
        self._setup = setup
        self._head: Head | None = None
        self._ahead: list[TronBlock] = []
        self._tried = False

    async def head(self) -> Head:
        """Return the newest block of this endpoint."""
        self._head = await super().head()
        return self._head

    async def block(self, height: int) -> Block:
        """Return the block at this height, as of the head that this poll began with if that is enough."""
        known = self._endpoint.proven.get(height)
        if known is not None and self._head is not None and await self._stands(known, self._head):
            return known
        return await super().block(height)

    async def _stands(self, known: Block, head: Head) -> bool:
        """Return whether the head stands on a block. Reads what lies between, which the scan will want."""
        between = head.height - known.height
        if between == 0:
            return known.hash == head.hash
        if self._tried or not 0 < between <= self._setup.config.batch_blocks_max:
            return False
        # Once per poll: whoever searches for where a fork began, asks for many heights.
        self._tried = True
        try:
            blocks = await answer_of(self._endpoint, self._endpoint.blocks(known.height + 1, between))
            chain = [check_header(block, height) for height, block in enumerate(blocks, known.height + 1)]
            check_links([known, *chain])
        except (InconsistentChainError, SpanTooWideError):
            return False
        self._ahead = blocks if chain[-1].hash == head.hash else []
        return bool(self._ahead)

    async def scan(self, span: Span, watch: Watch) -> ScanResult:
        """Return every block of the span and its watched transfers, reading no block twice."""
        ahead, self._ahead = self._ahead, []
        fits = [block.raw.number for block in ahead] == list(range(span.first, span.last + 1))
        if not fits or span.length > self._setup.info.span_max:
            return await super().scan(span, watch)
        return await answer_of(self._endpoint, read_span(self._endpoint, self._setup, span, watch, ahead))
