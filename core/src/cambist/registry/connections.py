"""The connected chains of one process, each of which can be connected anew while it is in use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from cambist.plugin import Chain, NetworkSetup, PluginContext

from .connect import Connector, ConnectProblem, log_problem
from .registry import Registry, SetupError
from .switching import SwitchedChain, switched


class ChainConnections:
    """What is connected, by id, and with which setup. ``revisions`` says which tokens each knows: see ``TokenSets``."""

    def __init__(self, registry: Registry, context: PluginContext, chains: Mapping[str, Chain]) -> None:
        """Begin with chains that their owner closes, connected as the operator's file says."""
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

    @asynccontextmanager
    async def beside(self, chain: str, setup: NetworkSetup) -> AsyncIterator[Chain]:
        """Connect a chain once more, beside the one that is in use. Raises SetupError."""
        problems: list[ConnectProblem] = []

        def report(problem: ConnectProblem) -> None:
            log_problem(problem)
            problems.append(problem)

        async with AsyncExitStack() as stack:
            opener = self._registry.opener(chain, setup)
            connector = Connector(stack, self._context, report)
            brought = await connector.open(opener.plugin, [opener.opens], lambda one: one.info.id, Chain)
            if chain not in brought:
                words = problems[0].message if problems else "its plugin did not connect it"
                raise SetupError(f"{chain} cannot be connected: {words}")
            yield brought[chain]

    async def aclose(self) -> None:
        """Close whatever was connected since."""
        for chain in self.chains.values():
            await chain.aclose()
