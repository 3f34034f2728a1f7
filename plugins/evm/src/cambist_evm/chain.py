"""One EVM network, connected: what of reading and sending is particular to the EVM."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from cambist.plugin import (
    Broadcast,
    ChainError,
    Fee,
    Intent,
    Plan,
    ScanResult,
    SignedTx,
    Span,
    Step,
    Sweep,
    SweeperDeployment,
    SweepingChain,
    SweepPlan,
    UnsignedTx,
    Watch,
)
from cambist_chainkit.broadcasts import broadcast_to_all
from cambist_chainkit.pool import EndpointPool
from cambist_chainkit.pooled import PooledChain
from cambist_chainkit.quorum import without_traces
from cambist_chainkit.remembered import Remembered

from .broadcasts import send
from .config import ChainSetup
from .doctor import fee_problems, token_problems
from .endpoint import Endpoint
from .fees import Market, outbidding
from .lookups import balances_at, statuses
from .market import MARKET_TTL_S, read_market
from .planner import Planner, unsigned
from .scanner import read_span
from .sweeper import deployment
from .sweeping import Sweeping, sweeper_problem


class EvmChain(PooledChain[Endpoint], SweepingChain):
    """One network. Keeps the record of its endpoints, and nothing of the chain itself."""

    balances_at = staticmethod(balances_at)
    statuses = staticmethod(statuses)

    def __init__(self, setup: ChainSetup, pool: EndpointPool[Endpoint], monotonic: Callable[[], float]) -> None:
        super().__init__(setup.info, pool, quorum=setup.config.quorum)
        self._setup = setup

        async def market() -> Market:
            return await pool.ask_any(lambda endpoint: read_market(endpoint, setup))

        watch = Remembered(market, monotonic, seconds=MARKET_TTL_S)
        self._planner = Planner(setup, watch, pool)
        self._sweeping = Sweeping(setup, watch, pool)

    def reader(self, span: Span, watch: Watch) -> Callable[[Endpoint], Awaitable[ScanResult]]:
        """Return what reads a span. What only endpoints with traces can see, no quorum can confirm."""
        traced = self.quorum == 1 or all(one.tracing != "none" for one in self.pool.endpoints)

        async def read(endpoint: Endpoint) -> ScanResult:
            result = await read_span(endpoint, self._setup, span, watch)
            return result if traced else without_traces(result)

        return read

    async def next_sequence(self, sender: str) -> int:
        """Return the sender's count of mined transactions, the highest that any endpoint knows."""
        return max(
            await self.pool.ask_all(lambda endpoint: endpoint.quantity("eth_getTransactionCount", sender, "latest")),
        )

    async def plan(
        self, intents: Sequence[Intent], *, sponsor: str | None, promised: Mapping[str, int] | None = None
    ) -> Sequence[Plan]:
        """Return one step for each intent. The gateway itself sees to the sponsor's part; nothing here is covered."""
        _ = sponsor, promised
        return await self._planner.plan(intents)

    async def outbid(self, step: Step) -> Fee:
        """Return an eighth more, and at least what the market asks for now."""
        return outbidding(await self._planner.market.now(), self._setup.fees, self.info.id, step.fee)

    async def prepare(self, steps: Sequence[tuple[Step, int | None]]) -> Sequence[UnsignedTx]:
        """Write the payloads. Asks nobody."""
        return [unsigned(step, sequence, self._setup.network.chain_id) for step, sequence in steps]

    async def plan_sweep(self, intents: Sequence[Intent], *, sponsor: str) -> SweepPlan:
        """Return what can be swept together, tried on a node."""
        return await self._sweeping.plan(intents, sponsor)

    async def prepare_sweep(self, sweep: Sweep, sequence: int | None, signatures: Sequence[bytes]) -> UnsignedTx:
        """Write the payload. Asks nobody."""
        return self._sweeping.write(sweep, sequence, signatures)

    def sweeper_deployment(self, sponsor: str) -> SweeperDeployment:
        """Return the sponsor's sweeper: the same on every EVM chain."""
        return deployment(sponsor)

    async def broadcast(self, txs: Sequence[SignedTx]) -> Sequence[Broadcast]:
        return await broadcast_to_all(self.pool, txs, send, size=lambda endpoint: endpoint.short_calls_max)

    async def problems(self) -> Sequence[str]:
        """Ask every endpoint for its chain id, the chain for its tokens' decimals and symbols, and the fees."""
        good, found = await self.verified()
        if good:
            try:
                found += await token_problems(good[0], self._setup)
                found += await fee_problems(good[0], self._setup)
                if self.info.sweeper is not None and (problem := await sweeper_problem(good[0], self._setup)):
                    found.append(problem)
            except ChainError as error:
                found.append(str(error))
        return found
