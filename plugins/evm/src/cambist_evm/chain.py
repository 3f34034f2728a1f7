"""One EVM network, connected: views for watching, and single questions that any endpoint may answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeVar

from cambist.plugin import (
    Block,
    Broadcast,
    ChainError,
    ChainUnavailableError,
    ChainView,
    EndpointHealth,
    Fee,
    Head,
    Intent,
    Plan,
    ScanResult,
    SignedTx,
    Span,
    SpanTooWideError,
    Step,
    Sweep,
    SweeperDeployment,
    SweepingChain,
    SweepPlan,
    Token,
    TxStatus,
    Units,
    UnsignedTx,
    Watch,
)

from .broadcasts import broadcast_to_all
from .config import ChainSetup
from .doctor import fee_problems, token_problems
from .endpoint import Endpoint
from .fees import Market, outbidding
from .lookups import balances_at, statuses
from .market import MarketWatch, read_market
from .planner import Planner, unsigned
from .pool import EndpointPool
from .quorum import agreed, most_agree, without_traces
from .rpc import gather_all
from .scanner import read_span
from .sweeper import deployment
from .sweeping import Sweeping, sweeper_problem

T = TypeVar("T")

UNKNOWN: Final = TxStatus(state="unknown")


class EvmView(ChainView):
    """One endpoint's view, confirmed by others where the operator asks for a quorum."""

    def __init__(self, endpoint: Endpoint, pool: EndpointPool, setup: ChainSetup) -> None:
        """Keep what to ask, and whom."""
        self._endpoint = endpoint
        self._pool = pool
        self._setup = setup

    async def head(self) -> Head:
        """Return the newest block of this endpoint."""
        return await self._endpoint.newest()

    async def block(self, height: int) -> Block:
        """Return the block at this height. A quorum counts here, too: a false reorg would take deposits back."""

        async def ask(endpoint: Endpoint) -> Block:
            return (await endpoint.headers([height]))[0]

        return await self._agreed(ask)

    async def scan(self, span: Span, watch: Watch) -> ScanResult:
        """Return every block of the span and its watched transfers."""
        if span.length > self._setup.info.span_max:
            message = f"{span.length} blocks are more than span_max of {self._setup.info.id}"
            raise SpanTooWideError(message)
        traced = self._setup.quorum == 1 or all(one.tracing != "none" for one in self._pool.endpoints)

        async def ask(endpoint: Endpoint) -> ScanResult:
            result = await read_span(endpoint, self._setup, span, watch)
            return result if traced else without_traces(result)

        return await self._agreed(ask)

    async def _agreed(self, ask: Callable[[Endpoint], Awaitable[T]]) -> T:
        if self._setup.quorum == 1:
            return await ask(self._endpoint)
        return await agreed(self._pool, self._endpoint, self._setup.quorum, ask)


class EvmChain(SweepingChain):
    """One network. Keeps the record of its endpoints, and nothing of the chain itself."""

    def __init__(self, setup: ChainSetup, pool: EndpointPool, monotonic: Callable[[], float]) -> None:
        """Keep them. Nothing is asked yet."""
        self.info = setup.info
        self._setup = setup
        self._pool = pool

        async def market() -> Market:
            return await self._any(lambda endpoint: read_market(endpoint, setup))

        watch = MarketWatch(market, monotonic)
        self._planner = Planner(setup, watch, self._any)
        self._sweeping = Sweeping(setup, watch, self._any)

    def view(self) -> AbstractAsyncContextManager[ChainView]:
        """Pin the endpoint that is in the best shape."""
        return self._view()

    @asynccontextmanager
    async def _view(self) -> AsyncIterator[ChainView]:
        async with self._pool.pin() as endpoint:
            yield EvmView(endpoint, self._pool, self._setup)

    async def balance(self, address: str, token: Token, at: int | None = None) -> Units:
        """Return what the address holds. An old height needs an endpoint that keeps old states."""
        return (await self.balances([(address, token)], at))[0]

    async def balances(self, wanted: Sequence[tuple[str, Token]], at: int | None = None) -> Sequence[Units]:
        """Return several balances, all from the same endpoint."""

        async def ask(endpoint: Endpoint) -> Sequence[Units]:
            return await balances_at(endpoint, wanted, at)

        return await self._any(ask)

    async def transaction(self, tx_id: str) -> TxStatus:
        """Return what is known of the transaction, asking the next endpoint where one has never heard of it."""
        return (await self.transactions([tx_id]))[0]

    async def transactions(self, tx_ids: Sequence[str]) -> Sequence[TxStatus]:
        """Return what is known of several transactions. Those that an endpoint does not know, the next is asked for.

        With a quorum, a transaction is mined once so many endpoints say so.
        """
        if self._setup.quorum > 1:
            return await self._witnessed(tx_ids)
        found: dict[str, TxStatus] = {}

        async def ask(endpoint: Endpoint) -> bool:
            missing = [tx_id for tx_id in dict.fromkeys(tx_ids) if found.get(tx_id, UNKNOWN).state == "unknown"]
            found.update(await statuses(endpoint, missing))
            return all(status.state != "unknown" for status in found.values())

        await self._any(ask, lambda complete: complete)
        return [found[tx_id] for tx_id in tx_ids]

    async def _witnessed(self, tx_ids: Sequence[str]) -> Sequence[TxStatus]:
        told = await self._all(lambda endpoint: statuses(endpoint, tx_ids))
        return [most_agree([one[tx_id] for one in told], self._setup.quorum) for tx_id in tx_ids]

    async def next_sequence(self, sender: str) -> int:
        """Return the sender's count of mined transactions, the highest that any endpoint knows."""
        return max(
            await self._all(lambda endpoint: endpoint.quantity("eth_getTransactionCount", sender, "latest")),
        )

    async def plan(self, intents: Sequence[Intent], *, sponsor: str | None) -> Sequence[Plan]:
        """Return one step for each intent. The gateway itself sees to the sponsor's part."""
        _ = sponsor
        return await self._planner.plan(intents)

    async def outbid(self, step: Step) -> Fee:
        """Return an eighth more, and at least what the market asks for now."""
        return outbidding(await self._planner.market.now(), self._setup.fees, self.info.id, step.fee)

    async def prepare(self, steps: Sequence[tuple[Step, int | None]]) -> Sequence[UnsignedTx]:
        """Write the payloads. Asks nobody."""
        return [unsigned(step, sequence, self._setup.chain_id) for step, sequence in steps]

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
        """Hand the transactions to every endpoint that can be asked."""
        return await broadcast_to_all(self._pool, txs, self.info.id)

    async def _all(self, ask: Callable[[Endpoint], Awaitable[T]]) -> list[T]:
        """Return the answers of all endpoints that have one. Raises ChainUnavailableError where none has."""

        async def answer(endpoint: Endpoint) -> list[T]:
            if not await self._pool.trusted(endpoint):
                return []
            try:
                return [await ask(endpoint)]
            except ChainError as error:
                self._pool.blame(endpoint, error)
                return []

        answers: list[list[T]] = await gather_all(*map(answer, self._pool.usable()))
        found = [one for some in answers for one in some]
        if not found:
            raise ChainUnavailableError(f"no endpoint of {self.info.id} can be asked now")
        return found

    async def _any(self, ask: Callable[[Endpoint], Awaitable[T]], good: Callable[[T], bool] = lambda _: True) -> T:
        """Return the first good answer, else the last answer, else the last error."""
        error: ChainError = ChainUnavailableError(f"no endpoint of {self.info.id} can be asked now")
        answers: list[T] = []
        for endpoint in self._pool.usable():
            if not await self._pool.trusted(endpoint):
                continue
            try:
                answer = await ask(endpoint)
            except ChainError as failed:
                self._pool.blame(endpoint, failed)
                error = failed
                continue
            if good(answer):
                return answer
            answers.append(answer)
        if answers:
            return answers[-1]
        raise error

    def endpoints(self) -> Sequence[EndpointHealth]:
        """Return how each endpoint is doing, best first."""
        return self._pool.health()

    async def problems(self) -> Sequence[str]:
        """Ask every endpoint for its chain id, the chain for its tokens' decimals and symbols, and the fees."""
        found: list[str] = []
        good: list[Endpoint] = []
        for endpoint in self._pool.endpoints:
            try:
                await endpoint.verify()
            except ChainError as error:
                found.append(str(error))
            else:
                good.append(endpoint)
        if good:
            try:
                found += await token_problems(good[0], self._setup)
                found += await fee_problems(good[0], self._setup)
                if self.info.sweeper is not None and (problem := await sweeper_problem(good[0], self._setup)):
                    found.append(problem)
            except ChainError as error:
                found.append(str(error))
        return found
