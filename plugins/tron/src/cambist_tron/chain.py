"""TRON, connected: what of reading and sending is particular to it, put together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import ClassVar

from cambist.plugin import (
    Broadcast,
    ChainView,
    Dated,
    Fee,
    Intent,
    LendingChain,
    Plan,
    PluginContext,
    ScanResult,
    SignedTx,
    Span,
    Stake,
    Step,
    TxStatus,
    UnsignedTx,
    Watch,
)
from cambist_chainkit.broadcasts import broadcast_to_all
from cambist_chainkit.pool import EndpointPool
from cambist_chainkit.pooled import PooledChain

from .balances import balances_at
from .broadcasts import send, without_bandwidth
from .config import ChainSetup
from .doctor import problems, token_answers
from .endpoint import Endpoint
from .expiry import Expiry
from .found import tx_found, tx_id_of
from .lookups import Lookups
from .outcomes import check_outcomes
from .planner import Planner
from .resources import stake
from .scanner import read_span
from .view import TronView
from .writing import Writer


class TronChain(PooledChain[Endpoint], LendingChain):
    """TRON. Keeps the record of its endpoints, and nothing of the chain itself."""

    balances_count_waiting: ClassVar[bool] = True
    balances_at = staticmethod(balances_at)
    token_answers = staticmethod(token_answers)
    tx_found = staticmethod(tx_found)
    tx_id_of = staticmethod(tx_id_of)

    def __init__(self, setup: ChainSetup, pool: EndpointPool[Endpoint], context: PluginContext) -> None:
        super().__init__(setup.info, pool, quorum=setup.config.quorum)
        self._setup = setup
        self._planner = Planner(setup, pool, context)
        self._writer = Writer(pool, context)
        self._lookups = Lookups()
        self._expiry = Expiry(pool, context.monotonic, quorum=setup.config.quorum)

    def view_of(self, endpoint: Endpoint) -> ChainView:
        """Return a view of one endpoint, which asks no more than it must."""
        if self.quorum > 1:
            return super().view_of(endpoint)
        return TronView(self, endpoint, self._setup)

    def reader(self, span: Span, watch: Watch) -> Callable[[Endpoint], Awaitable[ScanResult]]:
        return lambda endpoint: read_span(endpoint, self._setup, span, watch)

    async def statuses(self, endpoint: Endpoint, tx_ids: Sequence[str]) -> Mapping[str, TxStatus]:
        found = await self._lookups.statuses(endpoint, tx_ids)
        await check_outcomes(self.pool, endpoint, found)
        return found

    async def next_sequence(self, sender: str) -> None:
        """Return None: transactions here have no sequence, they expire."""
        _ = sender

    async def expired(self, txs: Sequence[Dated]) -> Sequence[bool]:
        return await self._expiry.expired(txs)

    async def plan(
        self, intents: Sequence[Intent], *, sponsor: str | None, promised: Mapping[str, int] | None = None
    ) -> Sequence[Plan]:
        """Return a plan for each intent: with energy of the sender's, lent by the sponsor, or burned."""
        return await self._planner.plan(intents, sponsor, promised or {})

    async def outbid(self, step: Step) -> Fee:
        """Return the fee that the step has: nothing is replaced here, and nobody pays to be first."""
        return step.fee

    async def prepare(self, steps: Sequence[tuple[Step, int | None]]) -> Sequence[UnsignedTx]:
        """Write the payloads, good for some minutes from the newest block on."""
        return await self._writer.prepare(steps)

    async def broadcast(self, txs: Sequence[SignedTx]) -> Sequence[Broadcast]:
        said = await broadcast_to_all(self.pool, txs, send, size=lambda _: self._setup.config.requests_at_once_max)
        self._planner.count_no_free_bandwidth(without_bandwidth(txs, said))
        return said

    async def stake(self, address: str) -> Stake:
        return await self.pool.ask_any(lambda endpoint: stake(endpoint, address))

    async def problems(self) -> Sequence[str]:
        """Ask every endpoint for its network and what it keeps, and one for tokens and prices."""
        good, found = await self.verified()
        return found + await problems(good, self._setup)
