"""One endpoint: how it is asked, and how blocks are read from it."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from cambist.plugin import Block, Broadcast, ChainUnavailableError, EndpointHealth, Head, InconsistentChainError
from cambist_chainkit.answers import UnsupportedError, unreadable
from cambist_chainkit.gathering import gather_all
from cambist_chainkit.http import HttpClient
from cambist_chainkit.pace import Pace
from cambist_chainkit.record import AGAIN_S, MISSING_AGAIN_MAX
from cambist_chainkit.record import Endpoint as Record

from .config import ChainSetup
from .headers import check_header
from .refusals import MANY_BLOCKS, from_refused_path, from_text
from .wire import B, BlockList, Failure, MaybeHeader, NodeInfo, TronBlock, TronHeader, TxInfo

A = TypeVar("A")
T = TypeVar("T")

Lacking: TypeAlias = Literal["node info", "headers", "pending"]
"""What some do without: ``getnodeinfo``, the one question that answers for the head and the newest solid block at once;
blocks without their transactions; what waits to be mined."""

_ENCODER: Final = msgspec.json.Encoder()
_FAILURE: Final = msgspec.json.Decoder(Failure)

_FAILURE_BYTES_MAX: Final = 1 << 16
PROVEN_KEPT: Final = 64

_NUMBER_AND_ID: Final = re.compile(r"Num:(\d{1,18}),ID:([0-9a-f]{64})", re.ASCII)


class Endpoint(Record):
    """One node's HTTP interface.

    ``proven`` holds the blocks that it gave last, which need not be the chain's any more, and ``told`` what it said of
    the transactions that it was handed last.
    """

    def __init__(self, http: HttpClient, setup: ChainSetup, pace: Pace | None, monotonic: Callable[[], float]) -> None:
        super().__init__(http.name)
        self.proven: OrderedDict[int, Block] = OrderedDict()
        self.told: OrderedDict[str, Broadcast] = OrderedDict()
        self._http = http
        self._setup = setup
        self._pace = pace
        self._now = monotonic
        self._refused_at: dict[Lacking, float] = {}
        self._of_many = asyncio.Semaphore(setup.config.requests_at_once_max)

    def lacks(self, what: Lacking) -> bool:
        """Return whether it said lately that it does not offer this."""
        refused_at = self._refused_at.get(what)
        return refused_at is not None and self._now() - refused_at < AGAIN_S

    def note_lack(self, what: Lacking) -> None:
        """Remember that it does not offer this, and ask for less than that for a while."""
        self._refused_at[what] = self._now()

    def health(self, now: float) -> EndpointHealth:
        self.latency_ms = self._http.latency_ms
        return super().health(now)

    async def post(self, path: str, body: Mapping[str, Any], kind: type[T]) -> T:
        """Ask one question, such as ``wallet/getaccount``, and return its answer, which is of this kind.

        Waits where the endpoint allows only so many requests a second. What nodes say instead of an
        answer, whatever the HTTP status, is an error: RateLimitedError, UnsupportedError, RefusedError, or whatever
        the status means.
        """
        if self._pace is not None:
            await self._pace.wait(self.name)
        self.calls += 1
        answered = await self._http.post(_ENCODER.encode(body), path, "/" + path)
        told = self._told(answered.chunks)
        if told is not None and answered.status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            raise from_text(self.name, path, self._http.redacted(told))
        if not answered.ok:
            raise from_refused_path(self.name, path, answered.status) or self._http.error(answered)
        whole = answered.body
        try:
            return msgspec.json.decode(whole, type=kind)
        except (RecursionError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unreadable(path, whole, error) from error

    def _told(self, chunks: Sequence[bytes]) -> str | None:
        """Return what a short answer says where it is an error. Long ones are none."""
        if sum(map(len, chunks)) > _FAILURE_BYTES_MAX:
            return None
        body = b"".join(chunks)
        if not body.lstrip().startswith(b"{"):
            return None
        try:
            return _FAILURE.decode(body).text
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def _unreadable(self, path: str, body: bytes, error: Exception) -> Exception:
        """Return the error of an answer that is no JSON: some refusals are plain text."""
        text = body[:_FAILURE_BYTES_MAX].strip().decode("utf-8", "replace")
        if text[:1].isalpha() and not isinstance(error, msgspec.ValidationError):
            return from_text(self.name, path, self._http.redacted(text))
        return unreadable(self.name, path, body, error)

    async def each(self, ask: Callable[[A], Awaitable[T]], many: Iterable[A]) -> list[T]:
        """Ask about each of many, and return the answers in their order. Whoever is asked about must not ask so again.

        Only so many such questions are under way at once, whoever asks: each is sent when it can be answered, and what
        is asked beside them does not wait behind hundreds.
        """

        async def one(about: A) -> T:
            async with self._of_many:
                return await ask(about)

        answers: list[T] = await gather_all(*map(one, many))
        return answers

    async def verify(self) -> None:
        """Ask for the first block, which no two networks share. Raises ChainUnavailableError."""
        wanted = self._setup.genesis_id
        if wanted is not None:
            first = await self._header(0)
            if first is None or first.id != wanted:
                message = f"{self.name} does not serve {self._setup.info.name}: its first block is another"
                raise ChainUnavailableError(message)
        self.verified = True

    async def newest(self) -> Head:
        """Return the newest block and the height of the newest solid one, both told by the same node."""
        (height, block_id), (solid, _) = await self._newest_and_solid()
        self.head = height
        return Head(height=height, hash=block_id, finalized_height=min(solid, height))

    async def _newest_and_solid(self) -> tuple[tuple[int, str], tuple[int, str]]:
        if not self.lacks("node info"):
            try:
                info = await self.post("wallet/getnodeinfo", {}, NodeInfo)
            except UnsupportedError:
                self.note_lack("node info")
            else:
                return self._number_and_id(info.block), self._number_and_id(info.solidity_block)
        try:
            newest, solid = await gather_all(
                self.post("wallet/getnowblock", {}, TronHeader), self.post("walletsolidity/getnowblock", {}, TronHeader)
            )
        except UnsupportedError:
            # Who offers neither is of no use: so the first is asked for again at once.
            self._refused_at.pop("node info", None)
            raise
        return (newest.raw.number, newest.id), (solid.raw.number, solid.id)

    def _number_and_id(self, text: str) -> tuple[int, str]:
        found = _NUMBER_AND_ID.fullmatch(text)
        if found is None or int(found[2][:16], 16) != int(found[1]):
            raise InconsistentChainError(f"{self.name} names a block as {text[:120]!r}")
        return int(found[1]), found[2]

    async def latest(self, state: str = "wallet") -> MaybeHeader:
        """Return the newest block as it is told; of the solid state where it is ``walletsolidity``."""
        return await self.post(f"{state}/getnowblock", {}, MaybeHeader)

    async def block(self, height: int) -> Block:
        for _ in range(1 + MISSING_AGAIN_MAX):
            found = await self.find(height)
            if found is not None:
                return found
        raise InconsistentChainError(f"{self.name} has no block {height}")

    async def find(self, height: int) -> Block | None:
        """Return the block at this height, None where the endpoint has none."""
        header = await self._header(height)
        return None if header is None else self.prove(header, height)

    def prove(self, block: TronHeader, height: int) -> Block:
        """Return the block with its number and parent checked, and remember it. Raises InconsistentChainError."""
        checked = check_header(block, height)
        self.proven[height] = checked
        self.proven.move_to_end(height)
        if len(self.proven) > PROVEN_KEPT:
            self.proven.popitem(last=False)
        return checked

    async def _header(self, height: int) -> TronHeader | None:
        if not self.lacks("headers"):
            try:
                found = await self.post("wallet/getblock", {"id_or_num": str(height), "detail": False}, MaybeHeader)
            except UnsupportedError:
                self.note_lack("headers")
            else:
                return found.header
        return (await self.post("wallet/getblockbynum", {"num": height}, MaybeHeader)).header

    async def blocks(self, first: int, count: int) -> list[TronBlock]:
        """Return so many blocks in a row with their transactions. A missing one is InconsistentChainError."""
        return await self.listed(first, count, BlockList[TronBlock])

    async def listed(self, first: int, count: int, kind: type[BlockList[B]]) -> list[B]:
        """Return the same, with as much of them as this kind of list holds.

        What is missing at the end is asked for again: behind one address there are often several nodes, and one of them
        may not have the block yet of which another has told just now.
        """
        found: list[B] = []
        for _ in range(1 + MISSING_AGAIN_MAX):
            body = {"startNum": first + len(found), "endNum": first + count}
            found += (await self.post(MANY_BLOCKS, body, kind)).block
            if len(found) >= count:
                break
        if len(found) != count:
            raise InconsistentChainError(f"{self.name} has {len(found)} of the {count} blocks from {first} on")
        return found

    async def infos(self, height: int) -> list[TxInfo]:
        """Return what came of each transaction of a block. Nodes answer ``{}`` for blocks that they do not know."""
        return await self.post("wallet/gettransactioninfobyblocknum", {"num": height}, list[TxInfo])
