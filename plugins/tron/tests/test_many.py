"""Hundreds of addresses, transfers and transactions in one question: none is too many for a slow endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from cambist.plugin import PluginContext
from cambist_chainkit.http import HttpClient, open_session
from cambist_chainkit.pace import WAIT_MAX_S, Pace
from cambist_chainkit.pool import EndpointPool
from cambist_tron.chain import TronChain
from cambist_tron.config import TronConfig, resolve
from cambist_tron.endpoint import Endpoint

from .local import Net, step_of

PER_SECOND = 3
"""What TronGrid allows without a key."""
MANY = int(PER_SECOND * WAIT_MAX_S) + 60


class Hurried:
    """A clock that jumps to whenever somebody waits for."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        until = self.time + seconds
        await asyncio.sleep(0)
        self.time = max(self.time, until)


@asynccontextmanager
async def paced(net: Net, context: PluginContext, clock: Hurried) -> AsyncIterator[TronChain]:
    """Connect to the node as to a provider that allows few questions a second."""
    table: dict[str, Any] = {"network": "local", "rpc_urls": [net.node.url]}
    table["tokens"] = [{"symbol": "USDX", "contract": net.usdx.address, "decimals": 6}]
    setup = resolve(msgspec.convert(table, TronConfig))
    async with open_session(context) as session:
        http = HttpClient(session, net.node.url, "node", now=context.now, timeout_s=5, response_bytes_max=10**8)
        endpoint = Endpoint(http, setup, Pace(PER_SECOND, clock.monotonic, clock.sleep), clock.monotonic)
        yield TronChain(setup, EndpointPool("tron", [endpoint], context, lag_blocks_max=5), context)


async def test_what_is_asked_about_many_waits_for_its_turn(net: Net, context: PluginContext) -> None:
    """However few questions a second the endpoint allows, and whatever is asked: it only takes longer."""
    clock = Hurried()
    nobodies = [net.nobody() for _ in range(MANY)]
    async with paced(net, context, clock) as chain:
        native, usdx = chain.info.tokens[0], chain.info.tokens[-1]
        wanted = [(address, token) for address in nobodies for token in (native, usdx)]
        assert await chain.balances(wanted) == [0] * len(wanted)
        intents = [net.intent(net.rich, nobody, 5) for nobody in nobodies]
        assert len([step_of(plan) for plan in await chain.plan(intents, sponsor=None)]) == MANY
        tokens = [net.intent(nobody, net.rich, 5, "USDX") for nobody in nobodies]
        assert len([step_of(plan) for plan in await chain.plan(tokens, sponsor=net.sponsor)]) == MANY
        states = await chain.transactions([f"{number:064x}" for number in range(MANY)])
        assert {status.state for status in states} == {"unknown"}
        (told,) = chain.endpoints()
        assert (told.healthy, told.failures) == (True, 0)
    assert clock.time > (net.node.calls.total() - 100) / PER_SECOND / 2


async def test_the_head_is_told_while_much_is_asked(net: Net, context: PluginContext) -> None:
    """What follows the chain need not wait until all is known of hundreds of addresses."""
    clock = Hurried()
    async with paced(net, context, clock) as chain:
        native = chain.info.tokens[0]
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(chain.balances([(net.nobody(), native) for _ in range(MANY)]))
            await asyncio.sleep(0.01)
            async with chain.view() as view:
                assert (await view.head()).height == net.node.head
            assert not asking.done()
