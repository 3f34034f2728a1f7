"""The signer in a process of its own, as the gateway's other processes see it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from . import frames
from .peers import group_id, peer_of, refusal
from .protocol import REQUESTS_MAX, VOIDS_MAX, KeyPath, Signer, SignerUnavailableError, SignReply, SignRequest, Voided
from .reports import AnswerToQuestion, Outcome, Report

CALL_TIMEOUT_S = 60.0
BATCH_BYTES_MAX = 4 * 2**20
PATH_BYTES = 24
PUBLIC_KEYS_MAX = 10_000

A = TypeVar("A", bound=frames.Answer)


class RemoteSigner(Signer):
    """Asks over a Unix socket, one call at a time, on a connection that is made anew when it breaks.

    Believes only a process of this account, or of one in the group: another's public keys would be another's addresses.
    """

    def __init__(self, socket: Path, *, group: str | None = None, timeout_s: float = CALL_TIMEOUT_S) -> None:
        """Raise SettingsError where there is no such group."""
        self._socket = socket
        self._group = None if group is None else group_id(group)
        self._timeout_s = timeout_s
        self._lock = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._public_keys: dict[frames.PublicKeyCall, bytes] = {}

    async def aclose(self) -> None:
        async with self._lock:
            self._drop()

    async def account_xpub(self, mode: str, coin_type: int, account_index: int) -> str:
        return (await self._ask(frames.XpubCall(mode, coin_type, account_index), frames.Xpub)).xpub

    async def sign(self, requests: Sequence[SignRequest]) -> Sequence[SignReply]:
        replies: list[SignReply] = []
        for batch in _batches(requests):
            answer = await self._ask(frames.SignCall(tuple(batch)), frames.Signed)
            if len(answer.replies) != len(batch):
                raise _unexpected(answer)
            replies += answer.replies
        return replies

    async def void(self, mode: str, chain: str, references: Sequence[str]) -> Sequence[Voided]:
        voided: list[Voided] = []
        for first in range(0, len(references), VOIDS_MAX):
            some = tuple(references[first : first + VOIDS_MAX])
            answer = await self._ask(frames.VoidCall(mode, chain, some), frames.AreVoided)
            if len(answer.voided) != len(some):
                raise _unexpected(answer)
            voided += answer.voided
        return voided

    async def report(self) -> Report:
        return (await self._ask(frames.ReportCall(), frames.Reported)).report

    async def answer(self, answer: AnswerToQuestion) -> Outcome:
        """Ask once. Where the connection broke, asking again is harmless: what was answered does not wait any more."""
        return (await self._ask(frames.AnswerCall(answer), frames.Answered)).outcome

    async def public_key(self, mode: str, coin_type: int, path: KeyPath) -> bytes:
        """Ask once for each path, as long as the connection lasts: behind another there may be another keystore."""
        asked = frames.PublicKeyCall(mode, coin_type, path)
        if asked not in self._public_keys:
            found = (await self._ask(asked, frames.PublicKey)).public_key
            if len(self._public_keys) >= PUBLIC_KEYS_MAX:
                self._public_keys.clear()
            self._public_keys[asked] = found
        return self._public_keys[asked]

    async def learn(self, mode: str, chain: str, account: int, address: str) -> datetime:
        return (await self._ask(frames.LearnCall(mode, chain, account, address), frames.Learned)).since

    async def knows_token(self, chain: str, contract: str) -> bool:
        return (await self._ask(frames.KnowsTokenCall(chain, contract), frames.TokenKnown)).known

    async def _ask(self, call: frames.Call, expected: type[A]) -> A:
        answer = await self._answer(frames.encode(call))
        if not isinstance(answer, expected):
            raise _unexpected(answer)
        return answer

    async def _answer(self, frame: bytes) -> frames.Answer:
        """Ask, once more if the connection turns out to be dead: asking twice is no harm."""
        async with self._lock:
            kept = self._streams is not None
            try:
                return await self._exchange(frame)
            except (OSError, frames.FrameError, TimeoutError) as error:
                if not kept or isinstance(error, TimeoutError):
                    raise self._unavailable(error) from error
            try:
                return await self._exchange(frame)
            except (OSError, frames.FrameError, TimeoutError) as error:
                raise self._unavailable(error) from error

    async def _exchange(self, frame: bytes) -> frames.Answer:
        try:
            async with asyncio.timeout(self._timeout_s):
                if self._streams is None:
                    self._streams = await asyncio.open_unix_connection(str(self._socket))
                    self._refuse_stranger(self._streams[1])
                reader, writer = self._streams
                writer.write(frame)
                await writer.drain()
                answer = await frames.read(reader, frames.ANSWERS, timeout_s=self._timeout_s)
        except BaseException:  # cancelled, too: the answer to come would be taken for the next call's
            self._drop()
            raise
        if answer is None:
            self._drop()
            raise frames.FrameError("it hung up")
        return answer

    def _refuse_stranger(self, writer: asyncio.StreamWriter) -> None:
        if (reason := refusal(peer_of(writer.get_extra_info("socket")), self._group)) is not None:
            raise frames.FrameError(reason)

    def _drop(self) -> None:
        self._public_keys.clear()
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    def _unavailable(self, error: Exception) -> SignerUnavailableError:
        words = str(error) or type(error).__name__
        return SignerUnavailableError(f"The signer at {self._socket} does not answer: {words}.")


def _unexpected(answer: frames.Answer) -> Exception:
    if isinstance(answer, frames.Failed):
        return ValueError(answer.message) if answer.wrong else SignerUnavailableError(answer.message)
    return SignerUnavailableError("The signer answered something else than it was asked.")


def _batches(requests: Sequence[SignRequest]) -> Iterator[Sequence[SignRequest]]:
    batch: list[SignRequest] = []
    size = 0
    for request in requests:
        weight = len(request.payload) + PATH_BYTES * (len(request.own) + 8)
        if batch and (len(batch) >= REQUESTS_MAX or size + weight > BATCH_BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(request)
        size += weight
    if batch:
        yield batch
