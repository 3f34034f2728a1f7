"""One node: how it is asked, and what its answers mean to the gateway."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from cambist.plugin import Block, ChainUnavailableError, Head, InconsistentChainError
from cambist_chainkit.answers import unreadable
from cambist_chainkit.http import HttpClient
from cambist_chainkit.record import Endpoint as EndpointRecord

from .config import NETWORK
from .wire import NodeBlock, NodeHead

T = TypeVar("T")


class Endpoint(EndpointRecord):
    """A node behind one address. Raises ChainError and nothing else."""

    def __init__(self, client: HttpClient) -> None:
        super().__init__(client.name)
        self._client = client

    async def ask(self, kind: type[T], method: str, **params: object) -> T:
        """Ask one question, and return an answer of this type."""
        self.calls += 1
        answered = await self._client.post(msgspec.json.encode(params), method, f"/{method}")
        if not answered.ok:
            raise self._client.error(answered)
        try:
            return msgspec.json.decode(answered.body, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            raise unreadable(self.name, method, answered.body, error) from error

    async def verify(self) -> None:
        """Ask the node which network it serves."""
        network = await self.ask(str, "network")
        if network != NETWORK:
            raise ChainUnavailableError(f"{self.name} serves {network[:32]!r}, not {NETWORK}")
        self.verified = True

    async def newest(self) -> Head:
        """Return the newest block."""
        head = await self.ask(NodeHead, "head")
        self.head = head.height
        return Head(height=head.height, hash=head.hash, finalized_height=head.final_height)

    async def block(self, height: int) -> Block:
        """Return the block at this height."""
        return header_of((await self.blocks(height, height))[0])

    async def blocks(self, first: int, last: int) -> Sequence[NodeBlock]:
        """Return blocks with their transactions: all of them, or an error."""
        blocks = await self.ask(list[NodeBlock], "blocks", first=first, last=last)
        if [block.height for block in blocks] != list(range(first, last + 1)):
            raise InconsistentChainError(f"{self.name} has not every block from {first} to {last}")
        return blocks


def header_of(block: NodeBlock) -> Block:
    """Return the block without its transactions."""
    return Block(height=block.height, hash=block.hash, parent_hash=block.parent_hash, time=block.time)
