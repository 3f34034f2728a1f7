"""One EVM network, connected: what of reading and sending is particular to the EVM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from msgspec import structs

from cambist.plugin import (
    Broadcast,
    Call,
    CallTrial,
    ChainError,
    ChainUnavailableError,
    ChainView,
    ContractChain,
    Fee,
    FoundLog,
    InconsistentChainError,
    Intent,
    LogQuery,
    Plan,
    PluginContext,
    Receipt,
    ScanResult,
    SignedTx,
    Span,
    Step,
    Sweep,
    SweeperDeployment,
    SweepingChain,
    SweepPlan,
    Token,
    Units,
    UnsignedTx,
    Watch,
)
from cambist_chainkit.broadcasts import broadcast_to_all
from cambist_chainkit.pool import LIAR_STRIKES, EndpointPool
from cambist_chainkit.pooled import WITNESSES, PooledChain
from cambist_chainkit.quorum import agreed, without_traces
from cambist_chainkit.remembered import Remembered

from .broadcasts import send
from .config import ChainSetup
from .doctor import fee_problems, token_answers, token_problems, trace_problems
from .endpoint import Endpoint
from .fees import Market, outbidding
from .found import tx_found, tx_id_of
from .lookups import allowance_at, balances_at, mined_count, statuses
from .market import MARKET_TTL_S, read_market
from .messages import approval, parts_of
from .planner import Planner, unsigned
from .receipts import checked, read_logs, read_receipt
from .scanner import read_span
from .simulation import try_calls
from .sweeper import deployment
from .sweeping import Sweeping, sweeper_problem
from .view import EvmView

COUNTS_APART_MAX: Final = 64
"""By how many of a sender's transactions an endpoint may be ahead of the others: they lag, and it does not lie."""


class EvmChain(PooledChain[Endpoint], SweepingChain, ContractChain):
    """One network. Keeps the record of its endpoints, and nothing of the chain itself."""

    balances_at = staticmethod(balances_at)
    statuses = staticmethod(statuses)
    token_answers = staticmethod(token_answers)
    tx_found = staticmethod(tx_found)
    tx_id_of = staticmethod(tx_id_of)

    def __init__(self, setup: ChainSetup, pool: EndpointPool[Endpoint], context: PluginContext) -> None:
        super().__init__(setup.info, pool, quorum=setup.config.quorum)
        self._setup = setup

        async def market() -> Market:
            return await pool.ask_any(lambda endpoint: read_market(endpoint, setup))

        watch = Remembered(market, context.monotonic, seconds=MARKET_TTL_S)
        self._planner = Planner(setup, watch, pool, context.random)
        self._sweeping = Sweeping(setup, watch, pool)

    def view_of(self, endpoint: Endpoint) -> ChainView:
        """Return a view of one endpoint, which asks no more than it must."""
        return EvmView(self, endpoint) if self.quorum == 1 else super().view_of(endpoint)

    def reader(self, span: Span, watch: Watch) -> Callable[[Endpoint], Awaitable[ScanResult]]:
        """Return what reads a span. What only endpoints with traces can see, no quorum can confirm."""
        traced = self.quorum == 1 or all(one.tracing != "none" for one in self.pool.endpoints)

        async def read(endpoint: Endpoint) -> ScanResult:
            result = await read_span(endpoint, self._setup, span, watch)
            return result if traced else without_traces(result)

        return read

    async def next_sequence(self, sender: str) -> int:
        """Return the sender's count of mined transactions, the highest that any endpoint knows."""
        return max(await self.pool.ask_all(lambda endpoint: mined_count(endpoint, sender)))

    async def witnessed_sequence(self, sender: str) -> int | None:
        """Return the highest count that two endpoints reach, or as many as the quorum.

        One that lags is no witness: what it does not count may be mined. Who tells far more than that rests where so
        many others tell less: of two that differ, nobody knows which one is wrong.
        """

        async def ask(endpoint: Endpoint) -> tuple[int, Endpoint]:
            return await mined_count(endpoint, sender), endpoint

        told = [one for one in await self.pool.ask_all(ask) if not one[1].lagging]
        wanted = max(self.quorum, WITNESSES)
        if len(told) < wanted:
            return None
        witnessed = sorted((count for count, _ in told), reverse=True)[wanted - 1]
        ahead = [(count, endpoint) for count, endpoint in told if count > witnessed + COUNTS_APART_MAX]
        if len(told) - len(ahead) >= wanted:
            for count, endpoint in ahead:
                message = f"{endpoint.name} counts {count} transactions of {sender}, and others {witnessed}"
                self.pool.blame(endpoint, InconsistentChainError(message), strikes=LIAR_STRIKES)
        return witnessed

    async def plan(
        self, intents: Sequence[Intent], *, sponsor: str | None, promised: Mapping[str, int] | None = None
    ) -> Sequence[Plan]:
        """Return one step for each intent. The gateway itself sees to the sponsor's part; nothing here is covered."""
        _ = sponsor, promised
        return await self._planner.plan(intents)

    async def outbid(self, step: Step) -> Fee:
        """Return an eighth more, and at least what the market asks for now."""
        market = await self._planner.market.now()
        return outbidding(market, self._setup.fees, self.info.id, step.fee, parts=parts_of(step))

    async def outbid_within(self, step: Step, price_max: int) -> Fee:
        """Return the same with another ceiling than the configured one, unless that is higher."""
        market = await self._planner.market.now()
        bounds = structs.replace(self._setup.fees, ceiling=max(price_max, self._setup.fees.ceiling))
        return outbidding(market, bounds, self.info.id, step.fee, parts=parts_of(step))

    async def prepare(self, steps: Sequence[tuple[Step, int | None]]) -> Sequence[UnsignedTx]:
        """Write the payloads. Asks nobody."""
        return [unsigned(step, sequence, self._setup.network.chain_id) for step, sequence in steps]

    async def simulate(self, sender: str, calls: Sequence[Call]) -> Sequence[CallTrial]:
        """Try calls in one block of a node's own. Raises ChainUnavailableError where no node can try several."""
        if not calls:
            return []

        async def ask(endpoint: Endpoint) -> Sequence[CallTrial] | None:
            return await try_calls(endpoint, self._setup, sender, calls)

        trials = await self.pool.ask_any(ask, lambda found: found is not None)
        if trials is None:
            raise ChainUnavailableError("no endpoint can try several calls together (eth_simulateV1)")
        return trials

    async def receipt(self, tx_id: str) -> Receipt | None:
        """Return what the transaction did. With a quorum, once so many endpoints tell the same."""

        async def ask(endpoint: Endpoint) -> Receipt | None:
            return await read_receipt(endpoint, self._setup, tx_id)

        if self.quorum == 1:
            return await self.pool.ask_any(ask, lambda found: found is not None)
        told = Counter(await self.pool.ask_all(ask))
        return next((found for found, count in told.items() if found is not None and count >= self.quorum), None)

    async def logs(self, query: LogQuery) -> Sequence[FoundLog]:
        """Return what a query finds. With a quorum, where so many endpoints find the same."""
        asked = checked(query)

        async def ask(endpoint: Endpoint) -> Sequence[FoundLog]:
            return await read_logs(endpoint, self._setup, asked)

        async with self.pool.pin() as first:
            return await agreed(self.pool, first, self.quorum, ask)

    async def allowance(self, owner: str, spender: str, token: Token) -> Units:
        return await self.pool.ask_any(lambda endpoint: allowance_at(endpoint, owner, spender, token))

    def approval(self, token: Token, spender: str, amount: Units) -> Call:
        return approval(token, spender, amount)

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
        """Ask every endpoint for its chain id and for traces, and one for its tokens and for fees."""
        good, found = await self.verified()
        if good:
            try:
                found += await token_problems(good[0], self._setup)
                found += await fee_problems(good[0], self._setup)
                found += await trace_problems(good, self._setup)
                if self.info.sweeper is not None and (problem := await sweeper_problem(good[0], self._setup)):
                    found.append(problem)
            except ChainError as error:
                found.append(str(error))
        return found
