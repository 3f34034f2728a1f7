"""One endpoint: what is known of it, and how blocks are read from it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal, TypeVar

from cambist.plugin import (
    Block,
    ChainError,
    ChainUnavailableError,
    EndpointHealth,
    Head,
    InconsistentChainError,
    RateLimitedError,
    SpanTooWideError,
)
from cambist_chainkit.answers import NoAnswerError, UnsupportedError
from cambist_chainkit.gathering import gather_all
from cambist_chainkit.record import AGAIN_S, MISSING_AGAIN_MAX
from cambist_chainkit.record import Endpoint as Record

from .config import ChainSetup, TraceMode
from .decode import ZERO_ADDRESS, check_header, is_synthetic
from .quantities import block_number, quantity
from .rpc import JsonRpc
from .wire import RpcBlock, RpcFailure, RpcHeader, RpcReceipt, RpcTransaction

T = TypeVar("T")


Calls = Sequence[tuple[str, Sequence[Any]]]

_LATEST: Final = ("eth_getBlockByNumber", ("latest", False))
_FINALIZED: Final = ("eth_getBlockByNumber", ("finalized", False))


class Endpoint(Record):
    """One node's JSON-RPC.

    ``short_calls_max`` is how many calls with short answers it takes in one request. ``tracing``, ``block_receipts``
    and ``simulates`` are what it was found to offer, None before it was asked. ``newest_block`` is what it told last.
    """

    def __init__(self, rpc: JsonRpc, setup: ChainSetup, monotonic: Callable[[], float]) -> None:
        super().__init__(rpc.name)
        self.chain = setup.info.id
        self.rpc = rpc
        self.tracing: Literal["debug", "trace", "none"] | None = _fixed_tracing(setup.config.trace)
        self.block_receipts: bool | None = None
        self.simulates: bool | None = None
        self.newest_block: Block | None = None
        self._tags_together = True
        self.short_calls_max = setup.short_calls_max
        self._setup = setup
        self._now = monotonic
        self._refused_at: dict[Literal["traces", "receipts", "trials"], float] = {}

    def is_untraced(self) -> bool:
        """Return whether to do without traces, as it was found to offer none; False now and then, to ask it again."""
        return self.tracing == "none" and (self._setup.config.trace == "off" or self._still_lacks("traces"))

    def note_untraced(self) -> None:
        """Remember that it offers no traces."""
        self.tracing, self._refused_at["traces"] = "none", self._now()

    def tries_alone(self) -> bool:
        """Return whether it was found to try no calls together; False now and then, to ask it again."""
        return self.simulates is False and self._still_lacks("trials")

    def note_tries_alone(self) -> None:
        """Remember that it tries no calls together."""
        self.simulates, self._refused_at["trials"] = False, self._now()

    def _still_lacks(self, what: Literal["traces", "receipts", "trials"]) -> bool:
        """Return whether it said lately that it does not offer this. Only one caller is told that it was long ago."""
        now = self._now()
        if now - self._refused_at[what] < AGAIN_S:
            return True
        self._refused_at[what] = now
        return False

    def health(self, now: float) -> EndpointHealth:
        self.calls, self.latency_ms = self.rpc.calls, self.rpc.latency_ms
        return super().health(now)

    async def verify(self) -> None:
        self.check_chain(await self.quantity("eth_chainId"))
        self.verified = True

    def check_chain(self, chain_id: int) -> None:
        """Raise ChainUnavailableError where this is another chain's id."""
        if chain_id != self._setup.network.chain_id:
            message = (
                f"{self.name} serves chain id {chain_id}, and {self._setup.info.id} is {self._setup.network.chain_id}"
            )
            raise ChainUnavailableError(message)

    async def quantity(self, method: str, *params: Any) -> int:  # noqa: ANN401 - JSON
        """Return the number that the method answers."""
        answer = await self.rpc.call(method, params, str)
        try:
            return quantity(answer or "")
        except InconsistentChainError as error:
            raise InconsistentChainError(f"{self.name} answered {method} with what is no number: {error}") from error

    async def request(self, calls: Calls, kind: type[T]) -> list[T | RpcFailure | None]:
        """Send the calls in one request; in smaller ones, from now on, where the endpoint finds them too many."""
        try:
            return await self.rpc.each(calls, kind)
        except SpanTooWideError:
            if len(calls) == 1:
                raise
        half = len(calls) // 2
        self.short_calls_max = min(self.short_calls_max, half)
        first = await self.request(calls[:half], kind)
        return [*first, *await self.request(calls[half:], kind)]

    async def each(self, calls: Calls, kind: type[T]) -> list[T | RpcFailure | None]:
        """Return the answers to calls with short answers, in their order; an error of one call stands in its place.

        Several requests are under way at once, so the calls must not depend on each other.
        """
        size = self.short_calls_max
        permits = asyncio.Semaphore(self._setup.config.requests_at_once_max)

        async def ask(some: Calls) -> list[T | RpcFailure | None]:
            async with permits:
                return await self.request(some, kind)

        parts = await gather_all(*(ask(calls[first : first + size]) for first in range(0, len(calls), size)))
        return [answer for part in parts for answer in part]

    async def all(self, calls: Calls, kind: type[T]) -> list[T | None]:
        """Return the answers to calls with short answers; an error of one call is an error of all."""
        outcomes = await self.each(calls, kind)
        answers: list[T | None] = []
        for (method, _), outcome in zip(calls, outcomes, strict=True):
            if isinstance(outcome, RpcFailure):
                raise self.rpc.error(method, outcome)
            answers.append(outcome)
        return answers

    async def newest(self) -> Head:
        """Return the newest block, and the finalized height where the node knows one."""
        newest, finalized = await self._newest_and_finalized()
        if newest is None:
            raise ChainUnavailableError(f"{self.name} has no newest block")
        head = check_header(newest, block_number(newest.number))
        self.head, self.newest_block = head.height, head
        return Head(height=head.height, hash=head.hash, finalized_height=finalized)

    async def _newest_and_finalized(self) -> tuple[RpcHeader | None, int | None]:
        """Ask for both in one request: every poll does, and most find no new block.

        An endpoint that refuses that, and answers each of them alone, is asked in two from then on; so is one of which
        it is known or said that it takes no two calls at once.
        """
        if self._tags_together and self.short_calls_max > 1:
            try:
                newest, finalized = await self.rpc.each([_LATEST, _FINALIZED], RpcHeader)
            except (NoAnswerError, RateLimitedError):
                raise
            except ChainError:
                pass
            else:
                if isinstance(newest, RpcFailure):
                    raise self.rpc.error(_LATEST[0], newest)
                if not isinstance(finalized, RpcFailure):
                    return newest, _height_of(finalized)
                # A node without finality refuses the tag, and some endpoints all but the first call of a request.
                alone = await self._finalized()
                self._tags_together = alone is None
                return newest, alone
        both = await gather_all(self.rpc.call(*_LATEST, RpcHeader), self._finalized())
        self._tags_together = False
        return both[0], both[1]

    async def _finalized(self) -> int | None:
        try:
            return _height_of(await self.rpc.call(*_FINALIZED, RpcHeader))
        except ChainError:
            # Nodes without finality refuse the tag, each in its own words. Not to know is an answer here.
            return None

    async def block(self, height: int) -> Block:
        return (await self.headers([height]))[0]

    async def headers(self, heights: Sequence[int]) -> list[Block]:
        """Return the blocks at these heights on the node's best chain; a missing one is InconsistentChainError."""
        calls = [("eth_getBlockByNumber", (hex(height), False)) for height in heights]
        found = await self._batch(calls, RpcHeader)
        return [
            check_header(self._present(header, f"block {height}"), height)
            for height, header in zip(heights, found, strict=True)
        ]

    async def blocks(self, heights: Sequence[int]) -> list[RpcBlock]:
        calls = [("eth_getBlockByNumber", (hex(height), True)) for height in heights]
        found = await self._batch(calls, RpcBlock)
        return [self._present(block, f"block {height}") for height, block in zip(heights, found, strict=True)]

    async def known(self, calls: Calls, kind: type[T]) -> list[T | None]:
        """Return the same as ``all``, asking again for what is null: another answer has told that it exists."""
        return await self._insistently(calls, lambda some: self.all(some, kind))

    async def _batch(self, calls: Calls, kind: type[T]) -> list[T | None]:
        """Return the answers, in the order of the calls; what is null is asked for again."""
        return await self._insistently(calls, lambda some: self.rpc.batch(some, kind))

    async def _insistently(self, calls: Calls, ask: Callable[[Calls], Awaitable[list[T | None]]]) -> list[T | None]:
        """Return the answers, asking again for what is null.

        Behind one address there are often several nodes, and one of them may not have the block yet of which another
        has told just now.
        """
        found = await ask(calls)
        for _ in range(MISSING_AGAIN_MAX):
            missing = [number for number, one in enumerate(found) if one is None]
            if not missing:
                break
            again = await ask([calls[number] for number in missing])
            for number, one in zip(missing, again, strict=True):
                found[number] = one
        return found

    def _present(self, found: T | None, what: str) -> T:
        if found is None:
            raise InconsistentChainError(f"{self.name} has no {what}")
        return found

    async def receipts(self, heights: Sequence[int]) -> list[list[RpcReceipt]] | None:
        """Return the receipts of the blocks at these heights, or None where the node gives none by block.

        None also for a block by itself whose receipts are too long. Logs are written down at far more length than they
        cost: whoever fills a block with them must not be able to stop the chain.
        """
        if self.block_receipts is False and self._still_lacks("receipts"):
            return None
        calls = [("eth_getBlockReceipts", (hex(height),)) for height in heights]
        try:
            found = await self._batch(calls, list[RpcReceipt])
        except UnsupportedError:
            self.block_receipts, self._refused_at["receipts"] = False, self._now()
            return None
        except SpanTooWideError:
            if len(heights) > 1:
                raise  # for fewer blocks, then
            return None
        self.block_receipts = True
        return [self._present(receipts, f"block {height}") for height, receipts in zip(heights, found, strict=True)]

    async def receipts_of(self, hashes: Sequence[str]) -> list[RpcReceipt]:
        """Return the receipts of these transactions, one by one. Raises InconsistentChainError for a missing one."""
        try:
            found = await self._batch([("eth_getTransactionReceipt", (tx_hash,)) for tx_hash in hashes], RpcReceipt)
        except SpanTooWideError:
            if len(hashes) == 1:
                raise
            half = len(hashes) // 2
            return [*await self.receipts_of(hashes[:half]), *await self.receipts_of(hashes[half:])]
        return [
            self._present(receipt, f"receipt of {tx_hash}, which it has in a block")
            for tx_hash, receipt in zip(hashes, found, strict=True)
        ]

    async def completed(self, block: RpcBlock, receipts: list[RpcReceipt]) -> list[RpcReceipt]:
        """Return the receipts, made as long as the block's transactions on Polygon, whose nodes disagree.

        The synthetic last transaction applies what was bridged in, which can pay watched addresses. Some nodes
        list it in the block, some among the receipts, and some in both.
        """
        listed = block.transactions
        if len(listed) == len(receipts) + 1 and is_synthetic(listed[-1]):
            return [*receipts, *await self.receipts_of([listed[-1].hash])]
        if len(receipts) == len(listed) + 1 and receipts[-1].gas_used in {"0x0", "0x"}:
            listed.append(RpcTransaction(receipts[-1].transaction_hash, ZERO_ADDRESS, "0x0", ZERO_ADDRESS))
        return receipts


def _fixed_tracing(mode: TraceMode) -> Literal["debug", "trace", "none"] | None:
    if mode == "auto":
        return None
    return "none" if mode == "off" else mode


def _height_of(header: RpcHeader | None) -> int | None:
    return None if header is None else block_number(header.number)
