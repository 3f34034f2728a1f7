"""An object that stands for a chain while what is connected behind it is replaced.

Whoever holds the chain - watcher, engine, jobs - holds this, and asks whatever is connected at the moment of the call.
A view stays with the connection that it was taken from. What was replaced is closed when its last call has ended.

Every call runs in a task of its own: a plugin that catches its cancellation keeps nobody waiting, and one that raises
what is no Exception, such as SystemExit, ends its call and not the worker.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import structlog

from cambist.deadlines import held, obeying
from cambist.plugin import (
    Block,
    Chain,
    ChainView,
    ContractChain,
    Head,
    LendingChain,
    ScanResult,
    Span,
    SweepingChain,
    Watch,
)

KINDS: Final = (ContractChain, LendingChain, SweepingChain)
"""What a chain can be besides. The one that stands for it is the same."""
CLOSE_AFTER_S: Final = 300.0
"""How long calls of a replaced connection may take: longer than any poll or tick."""

log = structlog.get_logger(__name__)


async def _nothing() -> None:
    """Close what somebody else closes."""


class _Connection:
    """One connection of a chain, and how many calls are under way on it."""

    def __init__(self, chain: Chain, close: Callable[[], Awaitable[None]]) -> None:
        self.chain = chain
        self._close = close
        self._calls = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @contextmanager
    def used(self) -> Iterator[Any]:
        self._calls += 1
        self._idle.clear()
        try:
            yield self.chain
        finally:
            self._calls -= 1
            if self._calls == 0:
                self._idle.set()

    async def retire(self) -> None:
        """Close it when nobody uses it any more; at once where this is cancelled."""
        try:
            async with asyncio.timeout(CLOSE_AFTER_S):
                await self._idle.wait()
        except TimeoutError:
            log.warning("chain_connection_still_used", chain=self.chain.info.id, calls=self._calls)
        finally:
            await self._close()


class _ObeyingView(ChainView):
    """A view whose calls end when they are cancelled, whatever its plugin makes of that."""

    def __init__(self, view: ChainView, chain: Chain) -> None:
        self._view = view
        self._chain = chain

    async def head(self) -> Head:
        return await obeying(self._view.head(), of=self._chain)

    async def block(self, height: int) -> Block:
        return await obeying(self._view.block(height), of=self._chain)

    async def scan(self, span: Span, watch: Watch) -> ScanResult:
        return await obeying(self._view.scan(span, watch), of=self._chain)


class SwitchedChain(Chain):
    """Stands for a chain. Made by ``switched``, as one of the kinds that the chain is of."""

    def __init__(self, chain: Chain) -> None:
        """Begin with a chain that its owner closes."""
        self._connection = _Connection(chain, _nothing)
        self._retiring: set[asyncio.Task[None]] = set()

    @property
    def connected(self) -> Chain:
        """What is asked now."""
        return self._connection.chain

    def switch(self, chain: Chain, close: Callable[[], Awaitable[None]]) -> None:
        """Ask this chain from now on. Raises TypeError where it is of another kind."""
        if _class_of(chain) is not type(self):
            raise TypeError(f"{chain.info.id} came back as another kind of chain")
        before, self._connection = self._connection, _Connection(chain, close)
        task = asyncio.create_task(before.retire())
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def aclose(self) -> None:
        """Close whatever came by ``switch``."""
        tasks = {*self._retiring, asyncio.create_task(self._connection.retire())}
        await asyncio.sleep(0)  # a task that was never begun closes nothing
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @asynccontextmanager
    async def view(self) -> AsyncIterator[ChainView]:
        with self._connection.used() as chain:
            async with held(chain.view, of=chain) as view:
                yield _ObeyingView(view, chain)


def switched(chain: Chain) -> SwitchedChain:
    """Return what stands for this chain from now on."""
    return _class_of(chain)(chain)


def _class_of(chain: Chain) -> type[SwitchedChain]:
    return _made(tuple(kind for kind in KINDS if isinstance(chain, kind)))


@functools.cache
def _made(kinds: tuple[type[Chain], ...]) -> type[SwitchedChain]:
    """Return a class of these kinds that hands every call on, and every fact that a chain states of itself."""
    members: dict[str, Any] = {}
    for kind in (Chain, *kinds):
        for name, member in vars(kind).items():
            if inspect.isfunction(member) and not name.startswith("_") and name != "view":
                members[name] = _awaited(name) if inspect.iscoroutinefunction(member) else _called(name)
        facts = [name for name in kind.__annotations__ if not name.startswith("_")]
        members |= {name: _told(name) for name in facts}
    return type(SwitchedChain.__name__, (SwitchedChain, *kinds), members)


def _awaited(name: str) -> Callable[..., Awaitable[Any]]:
    async def call(self: SwitchedChain, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  whatever the method takes
        with self._connection.used() as chain:
            return await obeying(getattr(chain, name)(*args, **kwargs), of=chain)

    return call


def _called(name: str) -> Callable[..., Any]:
    def call(self: SwitchedChain, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  likewise
        return getattr(self.connected, name)(*args, **kwargs)

    return call


def _told(name: str) -> property:
    def read(self: SwitchedChain) -> Any:  # noqa: ANN401  whatever the chain says
        return getattr(self.connected, name)

    return property(read)
