"""One poll of a network that asks nothing twice: providers count what a key asks, and most polls find no new block."""

from __future__ import annotations

from cambist.plugin import Block, Head
from cambist_chainkit.pooled import PooledChain, PooledView

from .endpoint import Endpoint


class EvmView(PooledView[Endpoint]):
    """Polls a single endpoint. Not used with a quorum, where others are asked for the block."""

    def __init__(self, chain: PooledChain[Endpoint], endpoint: Endpoint) -> None:
        super().__init__(chain, endpoint)
        self._head: Head | None = None

    async def head(self) -> Head:
        """Return the newest block of this endpoint."""
        self._head = await super().head()
        return self._head

    async def block(self, height: int) -> Block:
        """Return the block at this height; at the head, the one that was told as such."""
        newest = self._endpoint.newest_block
        # Of the endpoint's other users one may have been told another block since.
        if newest is None or self._head is None or (newest.height, newest.hash) != (height, self._head.hash):
            return await super().block(height)
        return newest
