"""A token that keeps a fee of what is moved, as USDT can from any block on: nothing of it is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from cambist_tron_node.faults import Face

from .local import Net

ONE = 10**6


async def told(net: Net, *amounts: int, source: str | None = None) -> list[str | None]:
    intents = [net.intent(source or net.rich, net.customer, amount, "USDT") for amount in amounts]
    return [plan.refused for plan in await net.chain.plan(intents, sponsor=None)]


async def test_a_transfer_of_which_less_would_arrive_is_refused_and_says_how_much(net: Net) -> None:
    await net.usdt.charge(100, 5 * ONE)
    await net.node.mine()
    assert await told(net, 100 * ONE, 1000 * ONE, 99) == [
        "the token USDT keeps 1 of 100 USDT as a fee of its own: less would arrive",
        "the token USDT keeps 5 of 1000 USDT as a fee of its own: less would arrive",
        None,
    ]
    await net.usdt.charge(0, 0)
    await net.node.mine()
    assert await told(net, 100 * ONE) == [None]


async def test_it_is_noticed_of_what_has_yet_to_come_by_what_is_there(net: Net) -> None:
    holder = await net.holder(50 * ONE)
    await net.usdt.charge(100, 5 * ONE)
    await net.node.mine(25)
    assert await told(net, 100 * ONE, source=holder) == [
        "the token USDT keeps 0.5 of 50 USDT as a fee of its own: less would arrive"
    ]


async def test_it_is_noticed_where_nodes_that_are_behind_have_refused_before(net: Net) -> None:
    class Behind(Face):
        left = 2

        async def before(self, path: str, body: dict[str, Any], request: web.Request) -> web.StreamResponse | None:
            if "transfer" in body.get("function_selector", "") and self.left:
                self.left -= 1
                return web.json_response({"result": {"result": True, "message": "REVERT opcode executed"}})
            return await super().before(path, body, request)

    await net.usdt.charge(100, 5 * ONE)
    holder = await net.holder(100 * ONE)
    async with Behind(net.node.chain) as face, net.connected(face.url) as chain:
        (plan,) = await chain.plan([net.intent(holder, net.customer, 100 * ONE, "USDT")], sponsor=None)
    assert plan.refused == "the token USDT keeps 1 of 100 USDT as a fee of its own: less would arrive"


async def test_who_keeps_the_fee_gets_all_of_it(net: Net) -> None:
    await net.usdt.send("setParams", 100, 5 * ONE, sender=net.customer)
    await net.node.mine()
    assert await told(net, 100 * ONE) == [None]


@pytest.mark.parametrize(
    "change",
    [
        lambda _: None,
        lambda _: {},
        lambda log: {**log, "address": "00" * 20},
        lambda log: {**log, "topics": []},
        lambda log: {**log, "topics": log["topics"][:1]},
        lambda log: {**log, "topics": ["00" * 32, *log["topics"][1:]]},
        lambda log: {**log, "topics": [*log["topics"][:2], "00" * 32]},
        lambda log: {**log, "topics": [*log["topics"], "00" * 32]},
        lambda log: {**log, "data": ""},
        lambda log: {**log, "data": "x" * 64},
        lambda log: {**log, "data": log["data"] * 2},
    ],
    ids=[
        *("no logs", "an empty log", "another contract's", "no topics", "the event alone", "another event"),
        *("to somebody else", "of a number", "no amount", "an amount that is none", "two amounts"),
    ],
)
async def test_what_does_not_tell_what_arrives_says_nothing_of_a_fee(
    net: Net, change: Callable[[dict[str, Any]], dict[str, Any] | None]
) -> None:
    class Untold(Face):
        async def after(self, path: str, answer: Any, request: web.Request) -> Any:
            answer = await super().after(path, answer, request)
            if path.endswith("triggerconstantcontract"):
                logs = [change(log) for log in answer.pop("logs", [])]
                return answer | {"logs": [log for log in logs if log is not None]}
            return answer

    await net.usdt.charge(100, 5 * ONE)
    await net.node.mine()
    assert await told(net, ONE) != [None]
    async with Untold(net.node.chain) as face, net.connected(face.url) as chain:
        (plan,) = await chain.plan([net.intent(net.rich, net.customer, ONE, "USDT")], sponsor=None)
    assert plan.refused is None
