"""A node that did not offer something may offer it later: the proxy before it began anew, or it is another by now."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from cambist.plugin import ChainError, PluginContext
from cambist.testing.clock import ManualClock
from cambist_chainkit.record import AGAIN_S

from .canned import CannedNode
from .forging import chain
from .local import Connect

INFO, HEAD, SOLID, HEADER = "wallet/getnodeinfo", "wallet/getnowblock", "walletsolidity/getnowblock", "wallet/getblock"
NOT_FOUND = {"status": 404, "text": "default backend - 404"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def context(clock: ManualClock) -> PluginContext:
    """Return a context whose seconds the test counts."""
    return PluginContext(
        now=lambda: datetime.now(UTC), monotonic=clock.monotonic, random=Random(7), user_agent="cambist-tests"
    )


@pytest.fixture
async def node() -> AsyncIterator[CannedNode]:
    async with CannedNode(chain(*([] for _ in range(30)))) as node:
        yield node


async def newest(chain: Any) -> int:
    async with chain.view() as view:
        head = await view.head()
        await view.block(head.height - 20)
        return int(head.height)


async def test_what_costs_fewer_questions_is_asked_for_again(
    node: CannedNode, connect: Connect, clock: ManualClock
) -> None:
    """Once in ten minutes: with two questions in the place of one, a key's quota of a day is used up before its end."""
    async with connect(node.url) as chain:
        node.answers = {INFO: NOT_FOUND, HEADER: NOT_FOUND}
        for _ in range(3):
            assert await newest(chain) == 30
        assert (node.calls[INFO], node.calls[HEADER], node.calls[HEAD]) == (1, 1, 3)
        node.answers = {}
        clock.advance(AGAIN_S)
        for _ in range(3):
            assert await newest(chain) == 30
        assert (node.calls[INFO], node.calls[HEADER], node.calls[HEAD]) == (4, 4, 3)


async def test_a_node_without_a_solid_side_is_read_again_soon(
    node: CannedNode, connect: Connect, clock: ManualClock
) -> None:
    """It has one question that tells its head, and what is before it has not found that for a moment."""
    async with connect(node.url) as chain:
        node.answers = {SOLID: NOT_FOUND}
        assert await newest(chain) == 30
        node.answers = {SOLID: NOT_FOUND, INFO: NOT_FOUND}
        with pytest.raises(ChainError, match="does not offer walletsolidity/getnowblock"):
            await newest(chain)
        node.answers = {SOLID: NOT_FOUND}
        clock.advance(5)
        assert await newest(chain) == 30
