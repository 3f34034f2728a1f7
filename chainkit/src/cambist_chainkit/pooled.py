"""A chain that is read through a pool of endpoints: views for watching, and questions that any of them may answer."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

from cambist.plugin import (
    Block,
    Chain,
    ChainError,
    ChainInfo,
    ChainUnavailableError,
    ChainView,
    EndpointHealth,
    FoundTx,
    Head,
    InconsistentChainError,
    ScanResult,
    Span,
    SpanTooWideError,
    Token,
    TxStatus,
    Units,
    Watch,
)

from .contracts import token_told
from .pool import EndpointPool, answer_of, undivided
from .quorum import agreed, finally_agreed, most_agree
from .record import Endpoint

E = TypeVar("E", bound=Endpoint)
T = TypeVar("T")

WITNESSES: Final = 2
"""How many endpoints must tell the same of a token that is added, and of what ends a forgotten transfer."""

UNKNOWN: Final = TxStatus(state="unknown")


class PooledView(ChainView, Generic[E]):
    """One endpoint's view, confirmed by others where the operator asks for a quorum."""

    def __init__(self, chain: PooledChain[E], endpoint: E) -> None:
        self._chain = chain
        self._endpoint = endpoint

    async def head(self) -> Head:
        """Return this endpoint's newest block. A quorum counts for what is final, where that confirms transfers."""
        if self._chain.quorum == 1 or not self._chain.info.finality_required:
            return await undivided(answer_of(self._endpoint, self._endpoint.newest()))
        return await undivided(finally_agreed(self._chain.pool, self._endpoint, self._chain.quorum))

    async def block(self, height: int) -> Block:
        """Return the block at this height. A quorum counts here, too: a false reorg would take deposits back."""
        return await undivided(self._agreed(lambda endpoint: endpoint.block(height)))

    async def scan(self, span: Span, watch: Watch) -> ScanResult:
        info = self._chain.info
        if span.length > info.span_max:
            raise SpanTooWideError(f"{span.length} blocks are more than span_max of {info.id}")
        return await self._agreed(self._chain.reader(span, watch))

    async def _agreed(self, ask: Callable[[E], Awaitable[T]]) -> T:
        if self._chain.quorum == 1:
            return await answer_of(self._endpoint, ask(self._endpoint))
        return await agreed(self._chain.pool, self._endpoint, self._chain.quorum, ask)


class PooledChain(Chain, Generic[E]):
    """The half of a chain that only reads. Keeps the record of its endpoints, and nothing of the chain itself."""

    def __init__(self, info: ChainInfo, pool: EndpointPool[E], *, quorum: int) -> None:
        self.info = info
        self.pool = pool
        self.quorum = quorum

    @abstractmethod
    def reader(self, span: Span, watch: Watch) -> Callable[[E], Awaitable[ScanResult]]:
        """Return what reads a span from an endpoint: the same from each, so that they can be compared."""

    @abstractmethod
    async def balances_at(self, endpoint: E, wanted: Sequence[tuple[str, Token]], at: int | None) -> Sequence[Units]:
        """Return several balances from one endpoint."""

    @abstractmethod
    async def statuses(self, endpoint: E, tx_ids: Sequence[str]) -> Mapping[str, TxStatus]:
        """Return what one endpoint knows of each of these transactions."""

    @asynccontextmanager
    async def view(self) -> AsyncIterator[ChainView]:
        async with self.pool.pin() as endpoint:
            yield self.view_of(endpoint)

    def view_of(self, endpoint: E) -> ChainView:
        """Return a view of one endpoint. Override it where looks can be had for fewer questions."""
        return PooledView(self, endpoint)

    async def balance(self, address: str, token: Token, at: int | None = None) -> Units:
        """Return what the address holds. An old height needs an endpoint that keeps old states."""
        return (await self.balances([(address, token)], at))[0]

    async def balances(self, wanted: Sequence[tuple[str, Token]], at: int | None = None) -> Sequence[Units]:
        """Return several balances, all from the same endpoint."""
        return await self.pool.ask_any(lambda endpoint: self.balances_at(endpoint, wanted, at))

    async def transaction(self, tx_id: str) -> TxStatus:
        """Return what is known of the transaction, asking the next endpoint where one has never heard of it."""
        return (await self.transactions([tx_id]))[0]

    async def transactions(self, tx_ids: Sequence[str]) -> Sequence[TxStatus]:
        """Return what is known of several transactions. Those that an endpoint does not know, the next is asked for.

        With a quorum, a transaction is mined once so many endpoints say so.
        """
        if self.quorum > 1:
            told = await self.pool.ask_all(lambda endpoint: self.statuses(endpoint, tx_ids))
            return [most_agree([one[tx_id] for one in told], self.quorum) for tx_id in tx_ids]
        found: dict[str, TxStatus] = {}

        async def ask(endpoint: E) -> bool:
            missing = [tx_id for tx_id in dict.fromkeys(tx_ids) if found.get(tx_id, UNKNOWN).state == "unknown"]
            found.update(await self.statuses(endpoint, missing))
            return all(status.state != "unknown" for status in found.values())

        await self.pool.ask_any(ask, lambda complete: complete)
        return [found[tx_id] for tx_id in tx_ids]

    @property
    def witnesses(self) -> int:
        """How many endpoints must tell the same where one liar would cost money at once."""
        return min(max(self.quorum, WITNESSES), len(self.pool.endpoints))

    async def witnessed(self, tx_id: str) -> TxStatus:
        """Return what all endpoints that answer say alike. Who does not know what another has in a block contradicts.

        So does one that has not come that far, or keeps nothing so old: in doubt it waits.
        """
        told = [one[tx_id] for one in await self.pool.ask_all(lambda endpoint: self.statuses(endpoint, [tx_id]))]
        mined = [one for one in told if one.block is not None]
        if not mined:
            return most_agree(told, self.witnesses)
        agreeing = sum((one.state, one.block) == (mined[0].state, mined[0].block) for one in told)
        if agreeing < len(told):
            message = f"of {len(told)} endpoints of {self.info.id} {agreeing} tell the same of {tx_id}, and not all"
            raise InconsistentChainError(message)
        if agreeing < self.witnesses:
            message = f"{self.witnesses} endpoints of {self.info.id} must tell the same of {tx_id}, and {agreeing} do"
            raise ChainUnavailableError(message)
        return mined[0]

    async def tx_found(self, endpoint: E, tx_id: str) -> FoundTx | None:
        """Return what one endpoint has under an id, checked against it. None where that cannot be put together."""
        _ = endpoint, tx_id
        return None

    async def find_tx(self, tx_id: str) -> FoundTx | None:
        """Return a transaction as it was signed, from whichever endpoint has one that is what its id says."""
        spelled = self.tx_id_of(tx_id)
        if spelled is None:
            return None
        return await self.pool.ask_any(
            lambda endpoint: self.tx_found(endpoint, spelled), lambda found: found is not None
        )

    def tx_id_of(self, text: str) -> str | None:
        """Return the one spelling of an id, None for what is none."""
        _ = text
        return None

    async def token_answers(self, endpoint: E, contract: str) -> tuple[bytes, bytes] | None:
        """Return what a contract answered to ``decimals()`` and ``symbol()``. None where a chain has no such thing."""
        _ = endpoint, contract
        return None

    async def token_at(self, contract: str) -> Token | None:
        """Return what a contract tells of itself, which two endpoints must tell alike where there are several."""
        told = await self.pool.ask_all(lambda endpoint: self.token_answers(endpoint, contract))
        answer, count = Counter(told).most_common(1)[0]
        if count < self.witnesses:
            message = f"{self.witnesses} endpoints of {self.info.id} must tell the same of {contract}, and {count} do"
            raise ChainUnavailableError(message)
        return None if answer is None else token_told(contract, *answer)

    def endpoints(self) -> Sequence[EndpointHealth]:
        return self.pool.health()

    async def verified(self) -> tuple[list[E], list[str]]:
        """Ask every endpoint which chain it serves; return those that serve this one, and what the others said."""
        good: list[E] = []
        problems: list[str] = []
        for endpoint in self.pool.endpoints:
            try:
                await answer_of(endpoint, endpoint.verify())
            except ChainError as error:
                problems.append(str(error))
            else:
                good.append(endpoint)
        return good, problems
