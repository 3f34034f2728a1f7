"""A chain that stands for another, which is replaced while it is asked."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest
from msgspec.structs import replace

from cambist import deadlines
from cambist.plugin import Chain, ChainPlugin, ChainUnavailableError, ConfigError, LendingChain, Span, Token
from cambist.registry import ChainConnections, SetupError
from cambist.registry.switching import switched
from cambist.testing.memory import (
    MemoryChain,
    MemoryConfig,
    MemoryKeyedChain,
    MemoryLendingChain,
    MemoryPlugin,
    MemoryRules,
    MemoryView,
    memory_chain_info,
)
from cambist.testing.memory.family import named_address
from tests.support.node_treasury import plugin_context
from tests.support.payment_env import registry as memory_registry
from tests.support.stubborn import stay

INFO = memory_chain_info()
EURX = Token(symbol="EURX", contract=named_address("memory/EURX"), decimals=2, label="Example euro")


class Closed:
    """Counts how often a connection was closed."""

    def __init__(self) -> None:
        self.times = 0

    async def __call__(self) -> None:
        self.times += 1


async def until_closed(closed: Closed) -> None:
    for _ in range(100):
        if closed.times:
            return
        await asyncio.sleep(0)


async def all_ended() -> None:
    """Wait until nothing is left behind any more."""
    async with asyncio.timeout(5):
        while deadlines._left_behind:  # noqa: ASYNC110  they end by themselves
            await asyncio.sleep(0)


async def test_it_is_what_the_chain_is_and_says_what_it_says():
    plain = switched(MemoryChain(INFO))
    keyed = switched(MemoryKeyedChain(INFO))
    lending = switched(MemoryLendingChain(INFO, rules=MemoryRules(stake_per_work=1)))
    assert isinstance(plain, Chain)
    assert (isinstance(plain, LendingChain), isinstance(lending, LendingChain)) == (False, True)
    assert (plain.needs_public_key, keyed.needs_public_key) == (False, True)
    assert plain.info == INFO
    assert [one.name for one in plain.endpoints()] == ["memory"]
    assert (await lending.stake(INFO.tokens[1].contract)).total == 0


async def test_calls_go_to_what_is_connected_and_errors_come_back():
    first, second = MemoryChain(INFO), MemoryChain(replace(INFO, confirmations=9))
    second.mine(5)
    chain = switched(first)
    chain.switch(second, Closed())
    assert chain.info.confirmations == 9
    async with chain.view() as view:
        assert (await view.head()).height == 5
    second.faults.unavailable = True
    with pytest.raises(ChainUnavailableError):
        await chain.balance(named_address("somebody"), INFO.native)


async def test_a_view_stays_with_its_connection_which_is_closed_after_it():
    first, second, third = MemoryChain(INFO), MemoryChain(INFO), MemoryChain(INFO)
    first_closed, second_closed = Closed(), Closed()
    second.mine(2)
    chain = switched(first)
    chain.switch(second, second_closed)
    async with chain.view() as view:
        chain.switch(third, first_closed)
        await asyncio.sleep(0.01)
        assert second_closed.times == 0
        assert (await view.head()).height == 2
    await until_closed(second_closed)
    assert (second_closed.times, first_closed.times) == (1, 0)
    await chain.aclose()
    assert (second_closed.times, first_closed.times) == (1, 1)


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), BaseException("panic")], ids=repr)
async def test_what_a_plugin_raises_that_is_no_exception_ends_its_call_alone(monkeypatch, error):
    """Neither the worker ends by it, nor is whoever has called taken for cancelled."""

    async def end(*_):
        raise error

    connected = MemoryChain(INFO)
    chain = switched(connected)
    monkeypatch.setattr(connected, "balance", end)
    monkeypatch.setattr(MemoryView, "head", end)
    with pytest.raises(RuntimeError):
        await chain.balance(named_address("somebody"), INFO.native)
    with pytest.raises(RuntimeError):
        async with chain.view() as view:
            await view.head()


async def test_a_call_that_catches_its_cancellation_is_left_behind(monkeypatch):
    freed, connected = asyncio.Event(), MemoryChain(INFO)
    chain = switched(connected)

    async def never(*_):
        await stay(freed)

    monkeypatch.setattr(deadlines, "GIVE_UP_S", 0.01)
    monkeypatch.setattr(connected, "balance", never)
    monkeypatch.setattr(MemoryView, "scan", never)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await chain.balance(named_address("somebody"), INFO.native)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), chain.view() as view:
            await view.scan(Span(first=0, last=0), frozenset())
    freed.set()
    await all_ended()


@pytest.mark.parametrize("error", [SystemExit(3), BaseException("panic")], ids=repr)
async def test_a_view_that_panics_as_it_opens_ends_its_call_alone(error):
    class Panicking(MemoryChain):
        def view(self):
            raise error

    with pytest.raises(RuntimeError, match="it raised"):
        async with switched(Panicking(INFO)).view():
            pass


async def test_a_view_that_swallows_what_happened_in_it_hides_nothing():
    class Swallowing(MemoryChain):
        @asynccontextmanager
        async def view(self):
            with suppress(BaseException):
                yield MemoryView(self)

    chain = switched(Swallowing(INFO))
    with pytest.raises(LookupError):
        async with chain.view():
            raise LookupError
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), chain.view():
            await asyncio.Event().wait()


@pytest.mark.parametrize("step", ["opens", "closes"])
async def test_a_view_that_catches_its_cancellation_is_left_behind(monkeypatch, step):
    freed = asyncio.Event()

    class Stubborn(MemoryChain):
        @asynccontextmanager
        async def view(self):
            if step == "opens":
                await stay(freed)
            yield MemoryView(self)
            await stay(freed)

    monkeypatch.setattr(deadlines, "GIVE_UP_S", 0.01)

    async def open_and_close() -> None:
        async with asyncio.timeout(0.01), switched(Stubborn(INFO)).view():
            pass

    opening = asyncio.create_task(open_and_close())
    await asyncio.wait([opening], timeout=5)
    assert opening.done()
    freed.set()
    await all_ended()
    with pytest.raises(TimeoutError):
        await opening


async def test_a_view_sees_what_leaves_it_and_may_call_it_something_else():
    seen = []

    class Translating(MemoryChain):
        @asynccontextmanager
        async def view(self):
            task = asyncio.current_task()
            try:
                yield MemoryView(self)
            except OSError as error:
                raise ChainUnavailableError("its endpoint is away") from error
            except BaseException as error:
                seen.append(type(error))
                raise
            finally:
                assert asyncio.current_task() is task

    chain = switched(Translating(INFO))
    with pytest.raises(ChainUnavailableError, match="its endpoint is away"):
        async with chain.view():
            raise OSError
    with pytest.raises(LookupError, match="mine"):
        async with chain.view():
            raise LookupError("mine")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), chain.view():
            await asyncio.Event().wait()
    assert seen == [LookupError, asyncio.CancelledError]


async def test_a_deadline_of_a_views_own_ends_what_is_done_with_it():
    class Hurried(MemoryChain):
        @asynccontextmanager
        async def view(self):
            try:
                async with asyncio.timeout(0.01):
                    yield MemoryView(self)
            except TimeoutError as error:
                raise ChainUnavailableError("this took too long") from error

    async with asyncio.timeout(5):
        with pytest.raises(ChainUnavailableError, match="this took too long"):
            async with switched(Hurried(INFO)).view():
                await asyncio.Event().wait()
    assert asyncio.current_task().cancelling() == 0


async def test_a_view_that_raises_a_cancellation_as_it_opens_cancels_nobody():
    class Cancelling(MemoryChain):
        @asynccontextmanager
        async def view(self):
            raise asyncio.CancelledError
            yield

    with pytest.raises(RuntimeError, match="cancelled from within"):
        async with switched(Cancelling(INFO)).view():
            pass


async def test_what_is_in_use_at_the_end_is_closed_all_the_same():
    closed = Closed()
    chain = switched(MemoryChain(INFO))
    chain.switch(MemoryChain(INFO), closed)
    async with chain.view():
        chain.switch(MemoryChain(INFO), Closed())
        await chain.aclose()
        assert closed.times == 1


async def test_another_kind_of_chain_does_not_take_over():
    chain = switched(MemoryChain(INFO))
    with pytest.raises(TypeError, match="another kind"):
        chain.switch(MemoryLendingChain(INFO, rules=MemoryRules(stake_per_work=1)), Closed())
    assert isinstance(chain.connected, MemoryChain)


async def test_a_chain_is_connected_anew_with_its_tokens_and_everybody_sees_them():
    registry, context = memory_registry(), plugin_context()
    async with registry.connect_chains(context) as connected:
        connections = ChainConnections(registry, context, connected)
        chain, setup = connections.chains["memory"], connections.setups["memory"]
        others = {name: info for name, info in registry.chains.items() if name != "memory"}
        await connections.change("memory", replace(setup, tokens=(EURX,)), revision=3)
        assert chain.info.token("EURX") == registry.chains["memory"].token("EURX") == EURX
        assert connections.revisions["memory"] == 3
        assert {name: info for name, info in registry.chains.items() if name != "memory"} == others
        with pytest.raises(SetupError, match="quorum is 2"):
            await connections.change("memory", replace(setup, quorum=2))
        assert chain.info.token("EURX") == EURX
        await connections.aclose()


def test_a_plugin_that_cannot_change_leaves_its_chains_as_the_file_says():
    class Old(MemoryPlugin):
        setup, changed = ChainPlugin.setup, ChainPlugin.changed

    config = MemoryConfig()
    assert Old().setup(config, "memory") is None
    with pytest.raises(ConfigError, match="memory cannot be changed while the gateway runs"):
        Old().changed(config, "memory", MemoryPlugin().setup(config, "memory"))
