"""Some proofs cannot be had, now or ever: those of all others are had all the same, and soon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from cambist.plugin import ChainUnavailableError, Dated
from cambist_tron import expiry
from cambist_tron.expiry import BATCH_BLOCKS, BLOCKS_MAX
from cambist_tron.writing import LIFETIME_S
from cambist_tron_node import Face

from .local import Net
from .test_expiry import Blurring, dead

BLOCKS = "wallet/getblockbylimitnext"


class Pruned(Face):
    """An address of a node that keeps no block below one: it answers as if there were none."""

    def __init__(self, net: Net, first: int) -> None:
        super().__init__(net.node.chain)
        self._first = first

    async def after(self, path: str, answer: Any, request: Any) -> Any:
        answer = await super().after(path, answer, request)
        if path.endswith("getblockbylimitnext"):
            return {"block": [block for block in answer.get("block", []) if self._has(block)]}
        if path.endswith(("getblock", "getblockbynum")) and not self._has(answer):
            return {}
        return answer

    def _has(self, block: Any) -> bool:
        number = block["block_header"]["raw_data"].get("number", 0)
        return not 0 < number < self._first


async def lost(net: Net, number: int) -> Dated:
    """Return a transaction that no block holds, as if it was written now."""
    head = net.node.chain.blocks.head.timestamp_ms // 1000
    await net.node.mine(25)
    return Dated(tx_id=f"{number:064x}", valid_until=head + LIFETIME_S)


async def lost_ones(net: Net, count: int) -> Sequence[Dated]:
    """Return such transactions, each of which dies at another time, and long after them another one.

    Among the blocks of each but that one is one that is not empty.
    """
    found = []
    for number in range(1, count + 1):
        await net.node.send_trx(net.customer, number)
        found.append(await lost(net, number))
    await net.node.mine(200)
    found.append(await lost(net, count + 1))
    await net.outlive(found[-1])
    return found


async def test_what_lies_too_far_back_for_a_node_keeps_nobody_waiting(net: Net) -> None:
    """Its blocks are gone there: that is said, is no fault of the node, and the next one is proven dead."""
    old, new = await lost_ones(net, 1)
    async with Pruned(net, 150) as face, net.connected(face.url) as chain:
        with capture_logs() as said:
            assert await dead(chain, old, new) == [False, True]
        assert [(one["event"], "does not keep block" in one["error"]) for one in said] == [("expiry_unproven", True)]
        assert [endpoint.failures for endpoint in chain.endpoints()] == [0]
        async with net.connected(face.url, net.node.url) as both:
            assert await dead(both, old, new) == [True, True]


async def test_many_that_cannot_be_proven_keep_nobody_waiting(net: Net) -> None:
    """One call reads so many blocks for all of them together; in the next, those come first who were not looked for."""
    txs = await lost_ones(net, 10)
    async with Blurring(net.node.chain) as face, net.connected(face.url) as chain:
        found = []
        while not found or (not found[-1] and len(found) < 5):
            face.calls.clear()
            found.append((await dead(chain, *txs))[-1])
            assert face.calls[BLOCKS] <= BLOCKS_MAX / BATCH_BLOCKS + 20
        assert found[-1]


async def test_reading_that_takes_long_is_shared_out_between_calls(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call looks for one at least, and for those first whom the last had no time for."""
    monkeypatch.setattr(expiry, "READING_S", 0.0)
    txs = await lost_ones(net, 2)
    async with Blurring(net.node.chain) as face, net.connected(face.url) as chain:
        assert [(await dead(chain, *txs))[-1] for _ in range(3)] == [False, False, True]


class Narrow(Face):
    """An address that gives only so many blocks in one answer."""

    most = 3

    async def before(self, path: str, body: dict[str, Any], request: web.Request) -> web.StreamResponse | None:
        if path.endswith("getblockbylimitnext") and body["endNum"] - body["startNum"] > self.most:
            return web.Response(status=413)
        return await super().before(path, body, request)


async def test_blocks_that_are_too_many_for_one_answer_are_read_fewer_at_a_time(net: Net) -> None:
    """Else nothing could be proven dead at an endpoint that deposits are read from. One that is too long is none."""
    (tx,) = [await lost(net, 1)]
    await net.outlive(tx)
    async with Narrow(net.node.chain) as face, net.connected(face.url) as chain:
        assert await dead(chain, tx) == [True]
        face.most = 0
        with pytest.raises(ChainUnavailableError):
            await dead(chain, tx)


class Failing(Face):
    """An address that fails where it is asked for blocks from one on."""

    def __init__(self, net: Net, first: int) -> None:
        super().__init__(net.node.chain)
        self._first = first

    async def before(self, path: str, body: dict[str, Any], request: web.Request) -> web.StreamResponse | None:
        if path.endswith("getblockbylimitnext") and body["startNum"] < self._first:
            return web.Response(status=500)
        return await super().before(path, body, request)


async def test_an_endpoint_that_fails_takes_back_no_proof(net: Net) -> None:
    """Whom it failed at comes last from then on, and what was proven before that counts."""
    old, new = await lost_ones(net, 1)
    async with Failing(net, 150) as face, net.connected(face.url) as chain:
        with pytest.raises(ChainUnavailableError):
            await dead(chain, old, new)
        chain.pool.endpoints[0].retry_at = 0.0  # type: ignore[attr-defined]
        assert await dead(chain, old, new) == [False, True]
