"""Preparing and sending through nodes that work, fail, forget and lie: nothing is lost, nothing is sent twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from aiohttp import web
from msgspec.structs import replace

from cambist.plugin import Broadcast, ChainError, ChainUnavailableError, PluginContext, SignedTx, Units
from cambist.testing.clock import ManualClock
from cambist_tron.headers import id_of
from cambist_tron.payload import read_payload
from cambist_tron.wire import RawHeader
from cambist_tron.writing import LIFETIME_S, STAMPS_KEPT, Stamps, Tip, middle_tip
from cambist_tron_node.faults import Face, Fault

from .local import Net, step_of


async def said(net: Net, *txs: SignedTx) -> list[Broadcast]:
    return list(await net.chain.broadcast(txs))


async def a_transfer(net: Net, amount: int = 5) -> SignedTx:
    (step,) = await net.planned(net.intent(net.rich, net.customer, amount))
    (tx,), _ = await net.signed(step)
    return tx


async def test_no_two_payloads_are_alike(net: Net) -> None:
    """The same step a hundred times is a hundred transactions; each refers to the solid block, and dies in time."""
    (step,) = await net.planned(net.intent(net.rich, net.customer, 5))
    txs = await net.chain.prepare([(step, None)] * 100)
    assert len({tx.payload for tx in txs}) == 100
    solid = net.node.block_id(net.node.solid_height)
    head_s = net.node.chain.blocks.head.timestamp_ms // 1000
    for tx in txs:
        fields = read_payload(tx.payload)
        assert (fields.ref_block_bytes.hex(), fields.ref_block_hash.hex()) == (solid[12:16], solid[16:32])
        assert (fields.expiration_ms, tx.valid_until) == ((head_s + LIFETIME_S) * 1000, head_s + LIFETIME_S)
        assert (tx.sender, tx.sequence, tx.fee) == (net.rich, None, step.fee)
    before = await net.chain.balance(net.customer, net.chain.info.native)
    statuses = await net.send(*[step] * 10)
    assert [status.state for status in statuses] == ["succeeded"] * 10
    assert await net.chain.balance(net.customer, net.chain.info.native) == before + 50


def test_timestamps_do_not_come_twice() -> None:
    """While time stands still; and they lie in the last minute."""
    clock = ManualClock()
    stamps = Stamps(
        PluginContext(now=clock.now, monotonic=clock.monotonic, random=Random(3), user_agent="cambist-tests")
    )
    now_ms = int(clock.now().timestamp() * 1000)
    given = [stamps.next() for _ in range(STAMPS_KEPT)]
    assert len(set(given)) == STAMPS_KEPT
    assert all(now_ms - 60_000 < stamp <= now_ms for stamp in given)


def test_an_endpoint_that_runs_ahead_does_not_choose_the_tip() -> None:
    """Nor one that lags, unless there is no other."""
    lagging, low, middle, ahead = (
        Tip(solid_id="0" * 64, head_time_ms=time, lagging=time == 1) for time in (1, 1000, 1003, 9_000_000)
    )
    assert middle_tip([ahead, low]) == low
    assert middle_tip([ahead, middle, low]) == middle
    assert middle_tip([lagging, middle]) == middle
    assert middle_tip([lagging]) == lagging


async def test_the_payload_limits_the_energy_and_nothing_else(net: Net) -> None:
    """On TRON the limit counts what is covered, too; bandwidth is not in it."""
    plans = await net.chain.plan(
        [net.intent(net.rich, net.customer, 5, "USDT"), net.intent(net.rich, net.customer, 5)], sponsor=None
    )
    token, coin = await net.chain.prepare([(step_of(plan), None) for plan in plans])
    fee = step_of(plans[0]).fee
    assert read_payload(token.payload).fee_limit == fee.limit * fee.price
    assert read_payload(coin.payload).fee_limit == 0


async def test_sending_twice_moves_once(net: Net) -> None:
    """Before it is mined and after."""
    tx = await a_transfer(net)
    before = net.node.balance(net.customer)
    assert [one.state for one in await said(net, tx, tx)] == ["accepted", "accepted"]
    await net.node.mine()
    assert (await said(net, tx))[0].state == "accepted"
    await net.node.mine()
    assert net.node.balance(net.customer) == before + 5


async def test_a_broken_transaction_says_nothing_about_its_neighbours(net: Net) -> None:
    """Cut, of another signer, for somebody without money: each has its own answer, and the node keeps its record."""
    good = await a_transfer(net)
    cut = replace(good, raw=good.raw[:-40])
    forged = replace(good, raw=good.raw[:-1] + bytes([good.raw[-1] ^ 1]))
    (step,) = await net.planned(net.intent(net.nobody(), net.rich, 5))
    (poor,), _ = await net.signed(step)
    states = [one.state for one in await said(net, cut, forged, poor, good)]
    assert states == ["unknown", "rejected", "unfunded", "accepted"]
    assert [health.failures for health in net.chain.endpoints()] == [0]


async def test_who_cannot_pay_the_bandwidth_is_unfunded(net: Net) -> None:
    """The free bandwidth is used up, and all the coin would be sent."""
    poor = await net.holder(0, sun=1_000_000)
    coin = net.intent(poor, net.rich, 100)
    (step,) = await net.planned(coin)
    assert [status.state for status in await net.send(step, step)] == ["succeeded"] * 2
    for amount in (999_800, 900_000):
        (tx,), _ = await net.signed(replace(step, amount=Units(amount)))
        assert [one.state for one in await said(net, tx)] == ["unfunded"]


@pytest.mark.parametrize(
    "fault, state",
    [
        (Fault.SERVER_BUSY, "unknown"),
        (Fault.RATE_LIMITED, "unknown"),
        (Fault.HTTP_429, "unknown"),
        (Fault.HTTP_500, "unknown"),
        (Fault.HTML, "unknown"),
        (Fault.RESET, "unknown"),
        (Fault.TRUNCATED, "unknown"),
        (Fault.ANSWER_LOST, "unknown"),
        (Fault.FORGETFUL, "accepted"),
    ],
)
async def test_what_a_failing_node_says_is_not_believed(net: Net, fault: Fault, state: str) -> None:
    """It may be out; the same bytes are sent again, and arrive once."""
    tx = await a_transfer(net)
    before = net.node.balance(net.customer)
    net.node.faults.add(fault, "broadcasthex")
    assert [one.state for one in await said(net, tx)] == [state]
    net.node.faults.clear()
    async with net.connected() as chain:
        assert [one.state for one in await chain.broadcast([tx])] == ["accepted"]
        await net.node.mine()
        assert (await chain.transaction(tx.tx_id)).state == "succeeded"
    assert net.node.balance(net.customer) == before + 5


class Remembering(Face):
    """An address of a node that takes no transaction twice, whatever it said of it the first time."""

    def __init__(self, net: Net) -> None:
        super().__init__(net.node.chain)
        self._seen: set[str] = set()

    async def before(self, path: str, body: dict[str, Any], request: web.Request) -> web.StreamResponse | None:
        if path.endswith("broadcasthex"):
            if body["transaction"] in self._seen:
                seen = {"code": "DUP_TRANSACTION_ERROR", "message": "Transaction already exists.", "txid": ""}
                return web.json_response(seen)
            self._seen.add(body["transaction"])
        return await super().before(path, body, request)


async def test_what_a_node_refused_it_has_not_taken_by_having_seen_it(net: Net) -> None:
    """Else a payout that no node takes would be signed again for ever, and never fail."""
    good, poor = await a_transfer(net), await net.holder(0, sun=1_000_000)
    (step,) = await net.planned(net.intent(poor, net.rich, 100))
    (dear,), _ = await net.signed(replace(step, amount=Units(10**7)))
    (wrong,), _ = await net.signed(replace(step, amount=Units(1), to_address=poor))
    async with Remembering(net) as face, net.connected(face.url) as chain:
        first = await chain.broadcast([good, dear, wrong])
        assert [one.state for one in first] == ["accepted", "unfunded", "rejected"]
        assert await chain.broadcast([good, dear, wrong]) == first
        async with net.connected(face.url) as another:
            assert [one.state for one in await another.broadcast([wrong])] == ["accepted"]


class Stingy(Face):
    """An address that fails at first, and then asks for fewer requests."""

    async def before(self, path: str, body: dict[str, Any], request: web.Request) -> web.StreamResponse | None:
        if path.endswith("broadcasthex"):
            if self.calls[path] == 1:
                return web.Response(status=500)
            await asyncio.sleep(0.05)
            return web.Response(status=429, headers={"Retry-After": "60"})
        return await super().before(path, body, request)


async def test_who_asks_for_fewer_requests_is_left_alone_for_as_long(net: Net) -> None:
    """Whatever else went wrong at the same time."""
    txs = [await a_transfer(net, amount) for amount in (1, 2, 3)]
    async with Stingy(net.node.chain) as face, net.connected(face.url) as chain:
        assert [one.state for one in await chain.broadcast(txs)] == ["unknown"] * 3
        with pytest.raises(ChainUnavailableError, match=r"can be asked for [67]\d"):
            async with chain.view():
                pass


class Misplaced(Face):
    """An address whose newest blocks have an id or a time that is none."""

    def __init__(self, net: Net, block_id: str | None, time_ms: int | None) -> None:
        super().__init__(net.node.chain)
        self._block_id = block_id
        self._time_ms = time_ms

    async def after(self, path: str, answer: Any, request: web.Request) -> Any:
        answer = await super().after(path, answer, request)
        if path.endswith("getnowblock"):
            answer["blockID"] = answer["blockID"] if self._block_id is None else self._block_id
            header = answer["block_header"]["raw_data"]
            header["timestamp"] = header["timestamp"] if self._time_ms is None else self._time_ms
        return answer


@pytest.mark.parametrize(
    "block_id, time_ms",
    [
        *(("", None), ("z" * 64, None), (" " * 60 + "abcd", None), ("0" * 64, None)),
        *((None, 0), (None, -1), (None, 2**63), (None, 10**30), (None, 4_000_000_000_000)),
    ],
)
async def test_a_tip_that_is_none_is_an_error_of_its_endpoint(
    net: Net, block_id: str | None, time_ms: int | None
) -> None:
    """And whoever else has one is believed. A time that no header proves is none: nothing would die until then."""
    (step,) = await net.planned(net.intent(net.rich, net.customer, 5))
    async with Misplaced(net, block_id, time_ms) as face:
        async with net.connected(face.url) as chain:
            with pytest.raises(ChainError):
                await chain.prepare([(step, None)])
        async with net.connected(face.url, net.node.url) as chain:
            assert len(await chain.prepare([(step, None)])) == 1


class Early(Face):
    """An address of a node that makes up a newest block, from a time that has not come, whose header proves it."""

    async def after(self, path: str, answer: Any, request: web.Request) -> Any:
        answer = await super().after(path, answer, request)
        if path == "wallet/getnowblock":
            header = answer["block_header"]["raw_data"]
            header["timestamp"] += 30 * 86_400_000
            answer["blockID"] = id_of(msgspec.convert(header, RawHeader))
        return answer


async def test_nothing_is_signed_until_a_day_that_a_node_makes_up(net: Net) -> None:
    """It could not be proven dead before that, and might be mined right before: whoever is paid anew is paid twice."""
    (step,) = await net.planned(net.intent(net.rich, net.customer, 5))
    async with Early(net.node.chain) as face:
        async with net.connected(face.url) as chain:
            with pytest.raises(ChainError):
                await chain.prepare([(step, None)])
            assert "ahead of the time here" in str(chain.endpoints()[0].last_error)
        async with net.connected(face.url, net.node.url) as chain:
            (unsigned,) = await chain.prepare([(step, None)])
            assert (unsigned.valid_until or 0) < net.node.chain.blocks.head.timestamp_ms // 1000 + 2 * LIFETIME_S


async def test_every_endpoint_gets_every_transaction(net: Net) -> None:
    """One that forgets them, or is too busy, is not the end of them."""
    txs = [await a_transfer(net, amount) for amount in (1, 2, 3)]
    async with (
        net.node.face(Fault.FORGETFUL) as forgetful,
        net.node.face(Fault.SERVER_BUSY) as busy,
        net.connected(forgetful.url, busy.url, net.node.url) as chain,
    ):
        assert [one.state for one in await chain.broadcast(txs)] == ["accepted"] * 3
    assert sorted(net.node.pending()) == sorted(tx.tx_id for tx in txs)


async def test_without_a_node_nothing_is_planned_and_nothing_known(net: Net) -> None:
    """A broadcast is unknown then, everything else an error."""
    tx = await a_transfer(net)
    coin = net.intent(net.rich, net.customer, 5)
    async with net.connected() as chain:
        await net.node.stop_listening()
        try:
            assert [one.state for one in await chain.broadcast([tx, tx])] == ["unknown", "unknown"]
            asks: list[Callable[[], Any]] = [
                lambda: chain.plan([coin], sponsor=None),
                lambda: chain.transactions([tx.tx_id]),
                lambda: chain.balances([(net.rich, chain.info.native)]),
                lambda: chain.stake(net.rich),
            ]
            for ask in asks:
                with pytest.raises(ChainUnavailableError):
                    await ask()
        finally:
            await net.node.listen_again()


@pytest.mark.campaign
async def test_flaky_answers_cost_nothing_but_time(net: Net) -> None:
    """A third of all answers fail somehow: what is planned, prepared and sent in the end is right, and moves once."""
    random = Random(11)
    before = net.node.balance(net.customer)
    sent = 0
    for _ in range(12):
        net.node.faults.faults = {random.choice([Fault.HTTP_500, Fault.RESET, Fault.TRUNCATED, Fault.RATE_LIMITED])}
        net.node.faults.rate = 0.3
        async with net.connected() as chain:
            try:
                plans = await chain.plan([net.intent(net.rich, net.customer, 7)], sponsor=None)
                (tx,), _ = await net.signed(*(step_of(plan) for plan in plans))
                await chain.broadcast([tx])
            except ChainError:
                continue
        net.node.faults.clear()
        async with net.connected() as chain:
            assert [one.state for one in await chain.broadcast([tx])] == ["accepted"]
        sent += 1
        await net.node.mine()
    assert net.node.balance(net.customer) == before + 7 * sent
    assert sent
