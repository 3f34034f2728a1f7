"""What became of transactions, and what addresses hold: many at once, across reorgs, and never by guessing."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from cambist.plugin import ChainError, SignedTx, StateUnavailableError, TxStatus, Units
from cambist_tron.lookups import BLOCKS_KEPT
from cambist_tron_node.faults import Face, Fault

from .local import TRX, Net


async def out(net: Net, count: int, symbol: str = "TRX") -> list[SignedTx]:
    """Send so many transfers, which wait."""
    steps = await net.planned(*(net.intent(net.rich, net.customer, 5 + number, symbol) for number in range(count)))
    txs, _ = await net.signed(*steps)
    assert [one.state for one in await net.chain.broadcast(txs)] == ["accepted"] * count
    return txs


async def told(net: Net, txs: list[SignedTx]) -> list[TxStatus]:
    return list(await net.chain.transactions([tx.tx_id for tx in txs]))


@pytest.mark.parametrize("count", [2, 20])
async def test_a_transaction_is_followed_from_waiting_to_its_block(net: Net, count: int) -> None:
    """Alone by its id, or with many out of the blocks: the same is told, with the block whole, and the fee."""
    txs = await out(net, count)
    assert [status.state for status in await told(net, txs)] == ["pending"] * count
    await net.node.mine()
    statuses = await told(net, txs)
    async with net.chain.view() as view:
        block = await view.block(net.node.head)
    for tx, status in zip(txs, statuses, strict=True):
        info = net.node.info(tx.tx_id)
        assert info is not None
        assert status == TxStatus(state="succeeded", block=block, fee=Units(info.get("fee", 0)))
    assert [await net.chain.transaction(tx.tx_id) for tx in txs] == statuses


async def test_a_failed_contract_is_reverted_and_has_its_fee(net: Net) -> None:
    """Refused by the token, or out of energy."""
    steps = await net.planned(*(net.intent(net.rich, net.customer, 5, "USDT") for _ in range(4)))
    await net.usdt.refuse(net.customer)
    await net.usdt.refuse(net.rich)
    statuses = await net.send(*steps)
    assert [status.state for status in statuses] == ["reverted"] * 4
    assert all(status.fee and status.block is not None for status in statuses)


class Overcharging(Face):
    """An address that says what no transaction can have cost."""

    def __init__(self, net: Net, fee: int) -> None:
        super().__init__(net.node.chain)
        self._fee = fee

    async def after(self, path: str, answer: Any, request: web.Request) -> Any:
        answer = await super().after(path, answer, request)
        for info in answer if path.endswith("infobyblocknum") else [answer] if path.endswith("infobyid") else []:
            info["fee"] = self._fee
        return answer


@pytest.mark.parametrize("count", [2, 6])
@pytest.mark.parametrize("fee", [-1, 2**63, 10**100])
async def test_a_fee_that_cannot_be_is_believed_of_nobody(net: Net, count: int, fee: int) -> None:
    """It would be posted: alone by its id, or with many out of the blocks."""
    txs = await out(net, count)
    async with Overcharging(net, fee) as face, net.connected(face.url) as chain:
        assert [one.state for one in await chain.transactions([tx.tx_id for tx in txs])] == ["pending"] * count
        await net.node.mine()
        with pytest.raises(ChainError, match="fee"):
            await chain.transactions([tx.tx_id for tx in txs])


class Reticent(Face):
    """An address that does not tell what waits, as its operator or a proxy before it has decided."""

    async def before(self, path: str, body: dict[str, Any], request: web.Request) -> web.StreamResponse | None:
        if path.endswith("frompending"):
            return web.json_response({"Error": "this API is unavailable due to config"}, status=404)
        return await super().before(path, body, request)


@pytest.mark.parametrize("count", [2, 20])
async def test_a_node_that_does_not_tell_what_waits_tells_what_is_mined(net: Net, count: int) -> None:
    """Nothing else is sent while nobody can tell what became of what is out."""
    txs = await out(net, count)
    async with Reticent(net.node.chain) as face, net.connected(face.url) as chain:
        for _ in range(2):
            assert [one.state for one in await chain.transactions([tx.tx_id for tx in txs])] == ["unknown"] * count
        assert sum(asked for path, asked in face.calls.items() if path.endswith("frompending")) <= count + 1
        await net.node.mine()
        assert [one.state for one in await chain.transactions([tx.tx_id for tx in txs])] == ["succeeded"] * count


async def test_many_cost_two_questions_a_block(net: Net) -> None:
    """However many they are, and while they wait; the head is asked for once each time."""
    txs = await out(net, 30)
    await told(net, txs)
    net.node.calls.clear()
    assert [status.state for status in await told(net, txs)] == ["pending"] * 30
    assert net.node.calls.total() <= 3
    await net.node.mine()
    net.node.calls.clear()
    assert [status.state for status in await told(net, txs)] == ["succeeded"] * 30
    assert net.node.calls.total() <= 5
    await net.node.mine(10)
    net.node.calls.clear()
    assert [status.state for status in await told(net, txs)] == ["succeeded"] * 30
    assert net.node.calls.total() <= 25


async def test_a_reorg_takes_back_what_it_drops(net: Net) -> None:
    """And what it mines again stands in its new block."""
    txs = await out(net, 8)
    await net.node.mine(3)
    assert [status.state for status in await told(net, txs)] == ["succeeded"] * 8
    kept = {tx.tx_id for tx in txs[:3]}
    await net.node.reorg(3, kept)
    after = await told(net, txs)
    assert [status.state for status in after] == ["succeeded"] * 3 + ["unknown"] * 5
    for status in after[:3]:
        assert status.block is not None
        assert status.block.hash == net.node.block_id(status.block.height)
    assert [await net.chain.transaction(tx.tx_id) for tx in txs] == after


async def test_what_was_dropped_and_comes_back_is_seen(net: Net) -> None:
    """Told absent before, it is found in whatever block it gets into."""
    txs = await out(net, 6)
    await told(net, txs)
    await net.node.forget_pool()
    assert [status.state for status in await told(net, txs)] == ["unknown"] * 6
    await net.node.mine(4)
    assert [status.state for status in await told(net, txs)] == ["unknown"] * 6
    await net.chain.broadcast(txs)
    await net.node.mine(30)
    assert [status.state for status in await told(net, txs)] == ["succeeded"] * 6


async def test_what_a_node_did_not_know_by_its_id_is_asked_for_again(net: Net) -> None:
    """Behind one address another node, or an index, may be some blocks behind: that it is unknown holds for a while."""
    txs = await out(net, 6)
    await net.node.mine(3)
    async with net.node.face() as behind, net.connected(behind.url) as chain:
        behind.hidden |= {tx.tx_id for tx in txs}
        found = await chain.transactions([tx.tx_id for tx in txs])
        assert [status.state for status in found] == ["unknown"] * 6
        behind.hidden.clear()
        for _ in range(BLOCKS_KEPT // 10 + 1):
            await net.node.mine(10)
            found = await chain.transactions([tx.tx_id for tx in txs])
        assert [status.state for status in found] == ["succeeded"] * 6


async def test_what_is_older_than_the_window_is_asked_for_by_id(net: Net) -> None:
    """After a restart, say."""
    txs = await out(net, 6)
    await net.node.mine(90)
    assert [status.state for status in await told(net, txs)] == ["succeeded"] * 6
    ghosts = [SignedTx(tx_id=f"{number:064x}", raw=b"") for number in range(6)]
    assert [status.state for status in await told(net, [*ghosts, *txs])] == ["unknown"] * 6 + ["succeeded"] * 6


@pytest.mark.parametrize(
    "fault", [Fault.NO_INFOS, Fault.EMPTY_INFOS, Fault.SHORT_INFOS, Fault.OTHER_INFOS, Fault.NO_BLOCK]
)
async def test_a_node_that_leaves_things_out_is_not_believed(net: Net, fault: Fault) -> None:
    """What it answers about a block does not fit together, so nothing is told at all."""
    txs = await out(net, 6)
    await net.node.mine()
    net.node.faults.add(fault)
    async with net.connected() as chain:
        with pytest.raises(ChainError):
            await chain.transactions([tx.tx_id for tx in txs])
    net.node.faults.clear()
    async with net.connected() as chain:
        found = await chain.transactions([tx.tx_id for tx in txs])
    assert [status.state for status in found] == ["succeeded"] * 6


async def test_one_answer_that_does_not_fit_is_asked_for_again(net: Net) -> None:
    """As from an address behind which nodes take turns, not all of them as far."""
    txs = await out(net, 6)
    await net.node.mine()
    net.node.faults.add(Fault.SHORT_INFOS, "gettransactioninfobyblocknum", times=1)
    assert [status.state for status in await told(net, txs)] == ["succeeded"] * 6
    assert [health.failures for health in net.chain.endpoints()] == [0]


async def test_endpoints_have_windows_of_their_own(net: Net) -> None:
    """With two that must agree, one that is behind has not seen what the other has."""
    txs = await out(net, 6)
    await net.node.mine()
    async with net.node.face() as behind, net.connected(net.node.url, behind.url, quorum=2) as chain:
        behind.lag_blocks = 1
        for _ in range(2):
            found = await chain.transactions([tx.tx_id for tx in txs])
            assert [status.state for status in found] == ["pending"] * 6
        behind.lag_blocks = 0
        found = await chain.transactions([tx.tx_id for tx in txs])
        assert [status.state for status in found] == ["succeeded"] * 6


async def test_balances_are_told_of_now_and_of_the_solid_block(net: Net) -> None:
    """Of no earlier one whose balances have changed, and of no later one."""
    native, usdt, _ = net.chain.info.tokens
    wanted = [(net.customer, native), (net.customer, usdt), (net.nobody(), native), (net.nobody(), usdt)]
    before = [net.node.balance(net.customer), 0, 0, 0]
    assert list(await net.chain.balances(wanted)) == before
    await net.send(*await net.planned(net.intent(net.rich, net.customer, 70, "USDT")))
    await net.send(*await net.planned(net.intent(net.rich, net.customer, TRX)))
    after = [before[0] + TRX, 70, 0, 0]
    assert list(await net.chain.balances(wanted)) == after
    solid = net.node.solid_height
    assert list(await net.chain.balances(wanted, solid)) == before
    assert list(await net.chain.balances(wanted, solid - 5)) == before
    for height in (solid + 1, net.node.head):
        with pytest.raises(StateUnavailableError):
            await net.chain.balances(wanted, height)
    await net.node.mine(18)
    assert list(await net.chain.balances(wanted, net.node.solid_height)) == after
    with pytest.raises(StateUnavailableError, match="changed since"):
        await net.chain.balances(wanted, solid)
    await net.node.mine(60)
    with pytest.raises(StateUnavailableError, match="any more"):
        await net.chain.balances(wanted, solid)


async def test_a_token_that_is_not_there_has_no_balance(net: Net) -> None:
    """It is an error, and not zero."""
    usdt = net.chain.info.tokens[1]
    gone = type(usdt)(symbol="GONE", contract=net.nobody(), decimals=6, label="Gone")
    with pytest.raises(ChainError, match="no token contract"):
        await net.chain.balance(net.customer, gone)
