"""A token that keeps a fee of what is moved, as USDT can from any block on: nothing of it is sent."""

from __future__ import annotations

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


async def test_who_keeps_the_fee_gets_all_of_it(net: Net) -> None:
    await net.usdt.send("setParams", 100, 5 * ONE, sender=net.customer)
    await net.node.mine()
    assert await told(net, 100 * ONE) == [None]


@pytest.mark.parametrize(
    "change",
    [
        {"logs": []},
        {"logs": [{"address": "", "topics": [], "data": "x"}]},
        {"logs": [{"address": "00" * 20, "topics": ["ddf2"]}]},
    ],
    ids=["no logs", "strange logs", "another's logs"],
)
async def test_a_node_that_does_not_tell_what_moved_says_nothing_of_a_fee(net: Net, change: dict[str, Any]) -> None:
    class Untold(Face):
        async def after(self, path: str, answer: Any, request: web.Request) -> Any:
            answer = await super().after(path, answer, request)
            return answer | change if path.endswith("triggerconstantcontract") else answer

    await net.usdt.charge(100, 5 * ONE)
    await net.node.mine()
    async with Untold(net.node.chain) as face, net.connected(face.url) as chain:
        (plan,) = await chain.plan([net.intent(net.rich, net.customer, ONE, "USDT")], sponsor=None)
    assert plan.refused is None
