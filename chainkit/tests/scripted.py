"""Endpoints that tell what a test wrote down for them, for pools to choose among."""

from __future__ import annotations

from random import Random

from cambist.plugin import Block, ChainUnavailableError, Head, InconsistentChainError, PluginContext
from cambist.testing.clock import ManualClock
from cambist_chainkit.pool import EndpointPool
from cambist_chainkit.record import Endpoint


def block(height: int, chain: str = "a") -> Block:
    """Return a block of the chain of that letter."""
    return Block(height=height, hash=f"{chain}{height}", parent_hash=f"{chain}{height - 1}", time=height)


class Scripted(Endpoint):
    """Serves the chain of one letter up to ``top``, or as it claims; raises ``error`` while it has one."""

    def __init__(self, name: str, *, top: int = 100, chain: str = "a", right: bool = True) -> None:
        """Tell such a story."""
        super().__init__(name)
        self.top = top
        self.chain = chain
        self.right = right
        self.claimed: int | None = None
        self.final: int | None = None
        self.error: Exception | None = None
        self.asked = 0

    def _ask(self) -> None:
        self.asked += 1
        self.calls += 1
        if self.error is not None:
            raise self.error

    async def verify(self) -> None:
        """Say which chain it is."""
        self._ask()
        if not self.right:
            message = f"{self.name} serves another chain"
            raise ChainUnavailableError(message)
        self.verified = True

    async def newest(self) -> Head:
        """Tell the top."""
        self._ask()
        self.head = self.top if self.claimed is None else self.claimed
        return Head(height=self.head, hash=f"{self.chain}{self.head}", finalized_height=self.final)

    async def block(self, height: int) -> Block:
        """Tell a block."""
        self._ask()
        if height > self.top:
            message = f"{self.name} has no block {height}"
            raise InconsistentChainError(message)
        return block(height, self.chain)


def context(clock: ManualClock) -> PluginContext:
    """Return a context whose time is the clock's."""
    return PluginContext(now=clock.now, monotonic=clock.monotonic, random=Random(3), user_agent="cambist-tests")


def pool_of(clock: ManualClock, *endpoints: Scripted) -> EndpointPool[Scripted]:
    """Return a pool of these."""
    return EndpointPool("example", endpoints, context(clock), lag_blocks_max=3)
