"""What came of a transaction is what its block says: by it money is given back and paid once more, or told as paid."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web

from cambist.plugin import ChainError, SignedTx
from cambist_tron_node import Face

from .local import TRX, Net

FAILED = {"result": "FAILED", "resMessage": b"REVERT opcode executed".hex()}
RESULTS = ("gettransactioninfobyid", "gettransactioninfobyblocknum")


class Liar(Face):
    """An address of a node that says of every transaction that it failed, or with ``SUCCESS`` that it did not.

    ``in_blocks`` says so also in the blocks it gives.
    """

    def __init__(self, net: Net, outcome: str = "REVERT", *, in_blocks: bool = False) -> None:
        super().__init__(net.node.chain)
        self.outcome, self.in_blocks = outcome, in_blocks

    async def after(self, path: str, answer: Any, request: web.Request) -> Any:
        answer = json.loads(json.dumps(await super().after(path, answer, request)))
        if path.endswith(RESULTS):
            for one in answer if isinstance(answer, list) else [answer]:
                if one.get("id"):
                    one.update({"result": "", "resMessage": ""} if self.outcome == "SUCCESS" else FAILED)
                    one["receipt"] = {**one.get("receipt", {}), "result": self.outcome}
        if self.in_blocks and path.endswith("getblockbylimitnext"):
            for block in answer.get("block", []):
                for tx in block.get("transactions", []):
                    tx["ret"] = [{"contractRet": self.outcome}]
        return answer


class Unprovable(Face):
    """An address of a node whose blocks never prove anything, as where bytes hold what JSON does not show."""

    async def after(self, path: str, answer: Any, request: web.Request) -> Any:
        answer = json.loads(json.dumps(await super().after(path, answer, request)))
        if path.endswith("getblockbylimitnext"):
            for block in answer.get("block", []):
                for tx in block.get("transactions", []):
                    tx["signature"] = [*tx["signature"], "00"]
        return answer


async def paid(net: Net, count: int) -> list[SignedTx]:
    """Send so many payouts, all of which happen."""
    steps = await net.planned(*(net.intent(net.rich, net.customer, 5 + number, "USDT") for number in range(count)))
    txs, _ = await net.signed(*steps)
    assert [said.state for said in await net.chain.broadcast(txs)] == ["accepted"] * count
    await net.node.mine()
    assert await net.states(txs) == ["succeeded"] * count
    return txs


async def one_that_failed(net: Net) -> SignedTx:
    """Send a transfer that the token refuses when its turn comes."""
    poor = await net.holder(100, sun=50 * TRX)
    (step,) = await net.planned(net.intent(poor, net.rich, 100, "USDT"))
    (tx,), _ = await net.signed(step)
    await net.usdt.refuse(poor)
    await net.node.mine()
    await net.chain.broadcast([tx])
    await net.node.mine()
    return tx


@pytest.mark.parametrize("count", [2, 20])
async def test_who_contradicts_the_block_is_not_believed(net: Net, count: int) -> None:
    txs = await paid(net, count)
    async with Liar(net) as liar, net.connected(liar.url) as chain:
        with pytest.raises(ChainError, match="has reverted, and block"):
            await chain.transactions([tx.tx_id for tx in txs])
    async with Liar(net) as liar, net.connected(liar.url, net.node.url) as chain:
        told = await chain.transactions([tx.tx_id for tx in txs])
    assert [status.state for status in told] == ["succeeded"] * count


@pytest.mark.parametrize("count", [2, 20])
async def test_who_makes_up_the_block_as_well_is_found_out_by_another(net: Net, count: int) -> None:
    """Its block proves nothing any more, and that of the other endpoint does, or says at least something else."""
    txs = await paid(net, count)
    for kind in (Face, Unprovable):
        liar, other = Liar(net, in_blocks=True), kind(net.node.chain)
        async with liar, other, net.connected(liar.url, other.url) as chain:
            told = await chain.transactions([tx.tx_id for tx in txs])
        assert [status.state for status in told] == ["succeeded"] * count


async def test_what_has_failed_is_told(net: Net) -> None:
    """By an endpoint that proves it, and by those that cannot."""
    tx = await one_that_failed(net)
    async with Unprovable(net.node.chain) as first, Unprovable(net.node.chain) as second:
        for urls in ([net.node.url], [first.url], [first.url, net.node.url], [first.url, second.url]):
            async with net.connected(*urls) as chain:
                status = await chain.transaction(tx.tx_id)
            assert (status.state, status.block is None) == ("reverted", False)


async def test_what_did_not_happen_is_not_told_as_done(net: Net) -> None:
    tx = await one_that_failed(net)
    async with Liar(net, "SUCCESS") as liar, net.connected(liar.url) as chain:
        with pytest.raises(ChainError, match="has succeeded, and block"):
            await chain.transaction(tx.tx_id)
    for in_blocks in (False, True):
        async with Liar(net, "SUCCESS", in_blocks=in_blocks) as liar, net.connected(liar.url, net.node.url) as chain:
            assert (await chain.transaction(tx.tx_id)).state == "reverted"


@pytest.mark.parametrize("count", [1, 6])
async def test_what_stands_in_no_block_is_not_told_as_done(net: Net, count: int) -> None:
    """As where nodes behind one address are on two forks: one has it, and the block of the other is as old."""
    txs = await paid(net, count)
    infos = [net.node.info(tx.tx_id) for tx in txs]
    await net.node.reorg(1)
    await net.node.mine(2)

    class Torn(Face):
        async def after(self, path: str, answer: Any, request: web.Request) -> Any:
            answer = json.loads(json.dumps(await super().after(path, answer, request)))
            if path.endswith("gettransactioninfobyid"):
                (one,) = [
                    info for tx, info in zip(txs, infos, strict=True) if tx.tx_id == (await request.json())["value"]
                ]
                block = net.node.chain.blocks.head
                return {**one, "blockNumber": block.number, "blockTimeStamp": block.timestamp_ms}
            return answer

    async with Torn(net.node.chain) as torn, net.connected(torn.url) as chain:
        with pytest.raises(ChainError, match="has succeeded, and block"):
            await chain.transactions([tx.tx_id for tx in txs])
    async with Torn(net.node.chain) as torn, net.connected(torn.url, net.node.url) as chain:
        assert {one.state for one in await chain.transactions([tx.tx_id for tx in txs])} <= {"unknown", "pending"}


async def test_a_block_that_is_replaced_meanwhile_says_nothing(net: Net) -> None:
    """As where several nodes are behind one address, on two forks."""
    tx = await one_that_failed(net)

    class Torn(Face):
        async def after(self, path: str, answer: Any, request: web.Request) -> Any:
            answer = await super().after(path, answer, request)
            if path.endswith("gettransactioninfobyid") and answer:
                await net.node.reorg(1, [tx.tx_id])
            return answer

    async with Torn(net.node.chain) as torn, net.connected(torn.url) as chain:
        with pytest.raises(ChainError):
            await chain.transaction(tx.tx_id)
    assert await net.states([tx]) == ["reverted"]
