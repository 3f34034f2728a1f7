"""What becomes of plugins that connect badly: each is reported, and touches no other and not the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from cambist.registry import Registry
from cambist.registry import connect as connect_module
from cambist.registry.connect import Connector, ConnectProblem
from tests.core.test_registry import CONTEXT, MEMORY, TWIN
from tests.support.stubborn import stay

IMPORTS = "from msgspec.structs import replace\nfrom cambist.testing.memory import MemoryChain, memory_chain_info"
TROUBLE = """
    import asyncio
    from contextlib import asynccontextmanager
    from cambist.testing.memory import MemoryFamily

    class Family(MemoryFamily):
        name = "trouble"

    Twin.families = lambda self: [Family()]
    Twin.chains = lambda self, config: [
        replace(info, id="trouble", family="trouble") for info in MemoryPlugin.chains(self, config)
    ]

    @asynccontextmanager
    async def connect(self, config, context):
        {opening}
        yield {things}
        {closing}

    Twin.connect = connect
"""


@pytest.mark.parametrize(
    "opening, things, closing, sentences",
    [
        ("1 // 0", "[]", "", ["it cannot connect: ZeroDivisionError", "'trouble' is not connected"]),
        ("raise asyncio.CancelledError", "[]", "", ["it cannot connect: Cancelled", "'trouble' is not connected"]),
        ("raise SystemExit(3)", "[]", "", ["it cannot connect: SystemExit: 3", "'trouble' is not connected"]),
        (
            "raise type('Speechless', (Exception,), {'__str__': lambda self: None})",
            "[]",
            "",
            ["it cannot connect: Speechless", "'trouble' is not connected"],
        ),
        ("raise BaseException('panic')", "[]", "", ["BaseException: panic", "'trouble' is not connected"]),
        ("await asyncio.sleep(99)", "[]", "", ["it cannot connect: TimeoutError", "'trouble' is not connected"]),
        ("", "[]", "", ["the chain 'trouble' is not connected"]),
        ("", "None", "", ["something unusable: TypeError", "'trouble' is not connected"]),
        ("", "['x']", "", ["connect() brought 'x', which is no Chain", "'trouble' is not connected"]),
        (
            "",
            "[MemoryChain(memory_chain_info('stray'))]",
            "",
            ["it connected the chain 'stray', which it had not announced", "'trouble' is not connected"],
        ),
        ("", "[MemoryChain(self.chains(config)[0])]", "1 // 0", ["it cannot disconnect: ZeroDivisionError"]),
        (
            "",
            "[MemoryChain(self.chains(config)[0])]",
            "raise asyncio.CancelledError",
            ["it cannot disconnect: CancelledError"],
        ),
        (
            "",
            "[MemoryChain(self.chains(config)[0])]",
            "await asyncio.sleep(99)",
            ["it cannot disconnect: TimeoutError"],
        ),
    ],
)
async def test_one_plugins_trouble_is_reported_and_touches_no_other(
    install, monkeypatch, opening, things, closing, sentences
):
    monkeypatch.setattr(connect_module, "OPEN_TIMEOUT_S", 0.05)
    monkeypatch.setattr(connect_module, "CLOSE_TIMEOUT_S", 0.05)
    install("memory", MEMORY)
    source = TROUBLE.format(opening=opening or "pass", things=things, closing=closing or "pass")
    install("twin", TWIN.format(name="twin"), IMPORTS, source)
    registry = Registry({"twin": {}, "memory": {}})
    problems = []
    async with registry.connect_chains(CONTEXT, report=problems.append) as chains:
        assert "memory" in chains
        assert "stray" not in chains
    assert [problem.plugin for problem in problems] == ["twin"] * len(sentences)
    for problem, sentence in zip(problems, sentences, strict=True):
        assert sentence in problem.message


async def test_an_error_of_the_gateways_own_is_not_swallowed_by_a_plugin(install):
    install("memory", MEMORY)
    swallowing = """
    from contextlib import asynccontextmanager
    @asynccontextmanager
    async def connect(self, config, context):
        try:
            yield []
        except BaseException:
            pass
    Twin.families = Twin.chains = lambda self, *config: []
    Twin.connect = connect
    """
    install("twin", TWIN.format(name="twin"), swallowing)
    problems = []
    with pytest.raises(LookupError):
        async with Registry({"twin": {}}).connect_chains(CONTEXT, report=problems.append):
            raise LookupError
    assert problems == []


async def test_being_cancelled_while_a_plugin_connects_is_no_problem_of_the_plugin(install):
    install("memory", MEMORY)
    slow = """
    import asyncio
    from contextlib import asynccontextmanager
    @asynccontextmanager
    async def connect(self, config, context):
        await asyncio.sleep(99)
        yield []
    Twin.connect = connect
    """
    install("twin", TWIN.format(name="twin"), slow)
    problems = []

    async def run():
        async with Registry({"twin": {}}).connect_chains(CONTEXT, report=problems.append):
            pass

    task = asyncio.create_task(run())
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert problems == []


Connect = Callable[[Any, Any], AbstractAsyncContextManager[list[str]]]


async def opened(stack: AsyncExitStack, report: Callable[[ConnectProblem], None], **connects: Connect) -> set[str]:
    """Connect plugins one after the other, and return what they bring."""
    connector = Connector(stack, CONTEXT, report)
    brought = [await connector.open(name, [(one, None)], str, str) for name, one in connects.items()]
    return {thing for things in brought for thing in things}


@asynccontextmanager
async def failing_later(_config: Any, _context: Any) -> AsyncIterator[list[str]]:
    async def refresh() -> None:
        await asyncio.sleep(0)
        raise KeyError("result")

    async with asyncio.TaskGroup() as group:
        group.create_task(refresh())
        yield ["failing"]


async def test_a_plugin_whose_background_task_fails_is_reported_and_ends_nobody_else():
    reported: asyncio.Queue[ConnectProblem] = asyncio.Queue()
    async with AsyncExitStack() as stack:
        assert await opened(stack, reported.put_nowait, failing=failing_later) == {"failing"}
        async with asyncio.timeout(5):
            problem = await reported.get()
        assert problem.message.startswith("its connection has ended by itself: ExceptionGroup")
    # It is not closed once more.
    assert reported.empty()


async def test_connections_are_opened_and_closed_in_one_task_each_the_last_one_first():
    seen: list[tuple[str, str]] = []
    tasks: dict[str, object] = {}

    def connecting(name: str) -> Connect:
        @asynccontextmanager
        async def connect(_config: Any, _context: Any) -> AsyncIterator[list[str]]:
            tasks[name] = asyncio.current_task()
            seen.append(("opened", name))
            yield [name]
            assert asyncio.current_task() is tasks[name]
            seen.append(("closed", name))

        return connect

    problems: list[ConnectProblem] = []
    async with AsyncExitStack() as stack:
        await opened(stack, problems.append, a=connecting("a"), b=connecting("b"))
        # Whoever closes them may be another task than the one that opened them.
        await asyncio.create_task(stack.pop_all().aclose())
    assert seen == [("opened", "a"), ("opened", "b"), ("closed", "b"), ("closed", "a")]
    assert len({asyncio.current_task(), *tasks.values()}) == 3
    assert problems == []


def stubborn(freed: asyncio.Event, opening: str) -> Connect:
    """Return what hangs while it opens or closes, and catches every cancellation."""

    @asynccontextmanager
    async def connect(_config: Any, _context: Any) -> AsyncIterator[list[str]]:
        if opening == "hangs":
            await stay(freed)
        yield ["stubborn"]
        await stay(freed)

    return connect


@pytest.fixture
def impatient(monkeypatch):
    for name in ("OPEN_TIMEOUT_S", "CLOSE_TIMEOUT_S", "GIVE_UP_TIMEOUT_S"):
        monkeypatch.setattr(connect_module, name, 0.01)


@pytest.mark.parametrize(
    "opening, sentence", [("hangs", "it cannot connect: TimeoutError"), ("opens", "it cannot disconnect: TimeoutError")]
)
async def test_one_that_catches_its_cancellation_is_left_behind(impatient, opening, sentence):
    freed, problems = asyncio.Event(), []
    async with asyncio.timeout(5):
        async with AsyncExitStack() as stack:
            await opened(stack, problems.append, stubborn=stubborn(freed, opening))
    freed.set()
    await asyncio.sleep(0)
    assert [problem.message.rstrip(": ") for problem in problems] == [sentence]


@pytest.mark.parametrize("closing", [False, True])
async def test_a_gateway_that_is_cancelled_ends_though_a_plugin_does_not(impatient, monkeypatch, closing):
    monkeypatch.setattr(connect_module, "OPEN_TIMEOUT_S", 60)
    monkeypatch.setattr(connect_module, "CLOSE_TIMEOUT_S", 60)
    freed, problems = asyncio.Event(), []

    async def run() -> None:
        async with AsyncExitStack() as stack:
            await opened(stack, problems.append, stubborn=stubborn(freed, "opens" if closing else "hangs"))

    task = asyncio.create_task(run())
    await asyncio.sleep(0.01)
    task.cancel()
    async with asyncio.timeout(5):
        await asyncio.wait([task])
    freed.set()
    assert task.cancelled()
    assert problems == []


def test_an_interrupt_of_the_process_goes_through_a_connection():
    @asynccontextmanager
    async def interrupted(_config: Any, _context: Any) -> AsyncIterator[list[str]]:
        raise KeyboardInterrupt
        yield []

    async def run() -> None:
        async with AsyncExitStack() as stack:
            await opened(stack, lambda _: None, interrupted=interrupted)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(run())
