"""The connected chains of one process, each of which can be connected anew while it is in use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from cambist.deadlines import words_of
from cambist.plugin import Chain, NetworkSetup, PluginContext

from .connect import Connector, ConnectProblem, log_problem
from .registry import Registry, SetupError
from .reopening import REOPEN_MAX_S, STABLE_S
from .switching import SwitchedChain, switched

REOPEN_FIRST_S = 5.0
"""After this the second time; what was open for STABLE_S before it ended is connected again at once."""

log = structlog.get_logger(__name__)


class ChainConnections:
    """What is connected, by id, and with which setup. ``revisions`` says which tokens each knows: see ``TokenSets``."""

    def __init__(
        self,
        registry: Registry,
        context: PluginContext,
        chains: Mapping[str, Chain],
        ended: set[str] | None = None,
    ) -> None:
        """Begin with chains that their owner closes, connected as the operator's file says.

        ``ended`` are those whose connection has ended by itself, to which the owner adds.
        """
        self.ended: set[str] = set() if ended is None else ended
        self._reopened: dict[str, tuple[int, float]] = {}
        self._registry = registry
        self._context = context
        self.chains: dict[str, SwitchedChain] = {name: switched(chain) for name, chain in chains.items()}
        self.setups: dict[str, NetworkSetup] = {
            name: setup for name in chains if (setup := registry.setup(name)) is not None
        }
        self.revisions: dict[str, int] = dict.fromkeys(chains, 0)
        self._changing = asyncio.Lock()

    async def change(self, chain: str, setup: NetworkSetup, *, revision: int | None = None) -> None:
        """Connect a chain with another setup, and let it take over. Raises SetupError, and changes nothing then."""
        async with self._changing, AsyncExitStack() as stack:
            if setup != self.setups[chain]:
                info = self._registry.info(chain, setup)
                fresh = await stack.enter_async_context(self.beside(chain, setup))
                if fresh.info != info:
                    raise SetupError(f"{chain} connects as something else than its plugin says")
                self.chains[chain].switch(fresh, stack.pop_all().aclose)
                self.setups[chain] = setup
                self._registry.chains[chain] = info
            if revision is not None:
                self.revisions[chain] = revision

    async def reopen(self) -> None:
        """Connect anew what has ended by itself, after a pause that doubles where it ends again and again."""
        due = []
        for chain in sorted(self.ended & self.chains.keys()):
            now = self._context.monotonic()
            times, at = self._reopened.get(chain, (0, now - STABLE_S))
            times = 0 if now - at >= STABLE_S else times
            if times and now - at < min(REOPEN_MAX_S, REOPEN_FIRST_S * 2 ** (times - 1)):
                continue
            self._reopened[chain] = (min(times + 1, 10), now)
            self.ended.discard(chain)
            due.append(chain)
        await asyncio.gather(*map(self._try_to_reopen, due))

    async def _try_to_reopen(self, chain: str) -> None:
        try:
            await self._reopen(chain)
        except Exception as error:  # noqa: BLE001  a plugin may raise anything, and is asked again
            self.ended.add(chain)
            log.warning("chain_not_reopened", chain=chain, error=words_of(error))

    async def _reopen(self, chain: str) -> None:
        """Let another connection take over. Nothing is awaited once it is open, so that ``change`` need not wait."""
        setup = self.setups.get(chain)
        async with AsyncExitStack() as stack:
            fresh = await stack.enter_async_context(self.beside(chain, setup))
            if self.setups.get(chain) != setup:
                return  # what has the new setup has taken over already
            if fresh.info != self._registry.chains[chain]:
                raise SetupError(f"{chain} connects as something else than before")
            self.chains[chain].switch(fresh, stack.pop_all().aclose)
        log.info("chain_reopened", chain=chain)

    @asynccontextmanager
    async def beside(self, chain: str, setup: NetworkSetup | None) -> AsyncIterator[Chain]:
        """Connect a chain once more, beside the one that is in use; None as its file says. Raises SetupError."""
        problems: list[ConnectProblem] = []

        def report(problem: ConnectProblem) -> None:
            log_problem(problem)
            problems.append(problem)

        def ended(key: str) -> None:
            if key == chain:
                self.ended.add(chain)

        async with AsyncExitStack() as stack:
            opener = self._registry.opener(chain, setup)
            connector = Connector(stack, self._context, report, ended)
            brought = await connector.open(opener.plugin, [opener.opens], lambda one: one.info.id, Chain)
            if chain not in brought:
                words = problems[0].message if problems else "its plugin did not connect it"
                raise SetupError(f"{chain} cannot be connected: {words}")
            yield brought[chain]

    async def aclose(self) -> None:
        """Close whatever was connected since."""
        for chain in self.chains.values():
            await chain.aclose()
