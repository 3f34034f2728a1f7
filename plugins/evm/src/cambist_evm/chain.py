"""One EVM network, connected: views for watching, and single questions that any endpoint may answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeVar

import msgspec

from cambist.plugin import (
    Block,
    Chain,
    ChainError,
    ChainUnavailableError,
    ChainView,
    EndpointHealth,
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

from .config import ChainSetup
from .decode import check_header, number_of
from .doctor import token_problems
from .endpoint import HEADER, TEXT, Endpoint
from .pool import EndpointPool
from .quorum import agreed, without_traces
from .scanner import read_span
from .wire import Answer, RpcReceiptTotals, RpcSeen

T = TypeVar("T")

_BALANCE_OF: Final = "0x70a08231" + "0" * 24
_WORD_CHARS: Final = 2 + 64
_TOTALS: Final = msgspec.json.Decoder(list[Answer[RpcReceiptTotals]])
_SEEN: Final = msgspec.json.Decoder(list[Answer[RpcSeen]])


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


class EvmChain(Chain):
    """One network. Keeps the record of its endpoints, and nothing of the chain itself."""

    def __init__(self, setup: ChainSetup, pool: EndpointPool) -> None:
        """Keep both. Nothing is asked yet."""
        self.info = setup.info
        self._setup = setup
        self._pool = pool

    def view(self) -> AbstractAsyncContextManager[ChainView]:
        """Pin the endpoint that is in the best shape."""
        return self._view()

    @asynccontextmanager
    async def _view(self) -> AsyncIterator[ChainView]:
        async with self._pool.pin() as endpoint:
            yield EvmView(endpoint, self._pool, self._setup)

    async def balance(self, address: str, token: Token, at: int | None = None) -> Units:
        """Return what the address holds. An old height needs an endpoint that keeps old states."""
        where = "latest" if at is None else hex(at)

        async def ask(endpoint: Endpoint) -> Units:
            if token.contract is None:
                return Units(await endpoint.quantity("eth_getBalance", address, where))
            call = {"to": token.contract, "data": _BALANCE_OF + address[2:].lower()}
            answer = await endpoint.rpc.call("eth_call", (call, where), TEXT)
            if answer is None or len(answer) < _WORD_CHARS:
                message = f"{endpoint.name} finds no token contract at {token.contract}"
                raise InconsistentChainError(message)
            return Units(int(answer[:_WORD_CHARS], 16))

        return await self._any(ask)

    async def transaction(self, tx_id: str) -> TxStatus:
        """Return what is known of the transaction, asking the next endpoint where one has never heard of it."""

        async def ask(endpoint: Endpoint) -> TxStatus:
            return await self._status(endpoint, tx_id)

        return await self._any(ask, lambda status: status.state != "unknown")

    async def _status(self, endpoint: Endpoint, tx_id: str) -> TxStatus:
        receipt = await endpoint.rpc.call("eth_getTransactionReceipt", (tx_id,), _TOTALS)
        if receipt is None:
            seen = await endpoint.rpc.call("eth_getTransactionByHash", (tx_id,), _SEEN)
            return TxStatus(state="unknown" if seen is None else "pending")
        header = await endpoint.rpc.call("eth_getBlockByHash", (receipt.block_hash, False), HEADER)
        if header is None or header.hash != receipt.block_hash or receipt.status is None:
            message = f"{endpoint.name} has a receipt of {tx_id} that fits no block"
            raise InconsistentChainError(message)
        fee = int(receipt.gas_used, 16) * int(receipt.effective_gas_price, 16) + int(receipt.l1_fee or "0x0", 16)
        return TxStatus(
            state="succeeded" if int(receipt.status, 16) == 1 else "reverted",
            block=check_header(header, number_of(header)),
            fee=Units(fee),
        )

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
        """Ask every endpoint for its chain id, and the chain for its tokens' decimals and symbols."""
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
            except ChainError as error:
                found.append(str(error))
        return found
