"""JSON-RPC: batches, strict ids, and answers decoded straight into Structs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET

from cambist.plugin import ChainError, ChainUnavailableError, InconsistentChainError
from cambist_chainkit.answers import decode_deep, unreadable
from cambist_chainkit.http import Answered, HttpClient

from .rpc_errors import from_answer
from .wire import Answer, RpcFailure

T = TypeVar("T")

BatchDecoder = msgspec.json.Decoder[list[Answer[T]]]

KEPT_BYTES_MAX: Final = 1 << 24
"""A batch of full blocks is a few megabytes. The memory of a larger answer is given back."""

_ENCODER: Final = msgspec.json.Encoder()
_LONE_ANSWER: Final = msgspec.json.Decoder(Answer[msgspec.Raw])


class JsonRpc:
    """One endpoint's JSON-RPC. Counts its calls; keeps no other state, and retries nothing.

    Raises ChainError and nothing else.
    """

    def __init__(self, http: HttpClient, *, batch_calls_max: int) -> None:
        self.name = http.name
        self.calls = 0
        self._http = http
        self._batch_calls_max = batch_calls_max
        self._ids = count(1)
        self._buffer = bytearray()

    async def call(self, method: str, params: Sequence[Any], decoder: BatchDecoder[T]) -> T | None:
        """Return the result of one call, None for null."""
        return (await self.batch([(method, params)], decoder))[0]

    async def batch(self, calls: Sequence[tuple[str, Sequence[Any]]], decoder: BatchDecoder[T]) -> list[T | None]:
        """Return the results in the order of the calls, None for null. Any error is an error of the whole batch."""
        results: list[T | None] = []
        for first in range(0, len(calls), self._batch_calls_max):
            answered: list[T | None] = await self._request(calls[first : first + self._batch_calls_max], decoder)
            results += answered
        return results

    async def each(
        self, calls: Sequence[tuple[str, Sequence[Any]]], decoder: BatchDecoder[T]
    ) -> list[T | RpcFailure | None]:
        """Return the results of one request, in the order of the calls. An error of one call stands in its place."""
        answers: list[Answer[T]] = await self._answers(calls, decoder)
        outcomes: list[T | RpcFailure | None] = []
        for answer in answers:
            outcome: T | RpcFailure | None = self._outcome(answer, calls[0][0])
            outcomes.append(outcome)
        return outcomes

    def error(self, method: str, failure: RpcFailure) -> ChainError:
        """Return the error that a failure which stood in a result's place is."""
        return from_answer(self.name, method, failure)

    async def _request(self, calls: Sequence[tuple[str, Sequence[Any]]], decoder: BatchDecoder[T]) -> list[T | None]:
        results: list[T | None] = []
        for answer in await self._answers(calls, decoder):
            outcome = self._outcome(answer, calls[0][0])
            if isinstance(outcome, RpcFailure):
                raise self.error(calls[0][0], outcome)
            results.append(outcome)
        return results

    async def _answers(self, calls: Sequence[tuple[str, Sequence[Any]]], decoder: BatchDecoder[T]) -> list[Answer[T]]:
        """Send one request and return the answers in the order of the calls."""
        self.calls += len(calls)
        ids = [next(self._ids) for _ in calls]
        request = [
            {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
            for id_, (method, params) in zip(ids, calls, strict=True)
        ]
        # Not every node takes a batch of one, and every node takes a lone call.
        lone = len(request) == 1
        method = calls[0][0]
        chunks = await self._post(_ENCODER.encode(request[0] if lone else request), method)
        body = self._joined([b"[", *chunks, b"]"] if lone else chunks)
        return self._in_order(body, ids, method, decoder)

    def _joined(self, chunks: Sequence[bytes]) -> memoryview:
        """Return the pieces as one, until the next answer: to get megabytes of memory costs as much as to fill them."""
        size = sum(map(len, chunks))
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        buffer, end = memoryview(self._buffer), 0
        for chunk in chunks:
            start, end = end, end + len(chunk)
            buffer[start:end] = chunk
        if size > KEPT_BYTES_MAX:
            self._buffer = bytearray()
        return buffer[:size]

    async def _post(self, body: bytes, method: str) -> list[bytes]:
        answered = await self._http.post(body, method)
        if not answered.ok and not _tells(answered):
            raise self._http.error(answered)
        return answered.chunks

    def _in_order(self, body: memoryview, ids: Sequence[int], method: str, decoder: BatchDecoder[T]) -> list[Answer[T]]:
        answers = self._decode(body, method, decoder)
        by_id = {answer.id: answer for answer in answers}
        if len(answers) != len(ids) or by_id.keys() != set(ids):
            for answer in answers:
                failure = _failure(answer)
                if failure is not None and answer.id is None:
                    raise self._error(method, failure)
            message = f"{self.name} answered {method} with other ids than it was asked with"
            raise InconsistentChainError(message)
        return [by_id[id_] for id_ in ids]

    def _outcome(self, answer: Answer[T], method: str) -> T | RpcFailure | None:
        failure = _failure(answer)
        if failure is not None:
            return self._redacted(failure)
        if answer.result is UNSET:
            message = f"{self.name} answered {method} with neither result nor error"
            raise ChainUnavailableError(message)
        return answer.result

    def _decode(self, body: memoryview, method: str, decoder: BatchDecoder[T]) -> list[Answer[T]]:
        try:
            return decode_deep(decoder, body)
        except (RecursionError, msgspec.DecodeError, UnicodeDecodeError) as error:
            # A batch that is refused as a whole is answered by one object instead of a list.
            if isinstance(error, msgspec.ValidationError) and (failure := _lone_failure(body)) is not None:
                raise self._error(method, failure) from None
            raise unreadable(self.name, method, bytes(body), error) from error

    def _error(self, method: str, failure: RpcFailure) -> ChainError:
        return self.error(method, self._redacted(failure))

    def _redacted(self, failure: RpcFailure) -> RpcFailure:
        return RpcFailure(code=failure.code, message=self._http.redacted(failure.message), data=failure.data)


def _tells(refused: Answered) -> bool:
    """Return whether a refusal's body says what is wrong: many providers put a JSON-RPC error into a 4xx."""
    body = refused.body
    return body.lstrip().startswith(b"[") or _lone_failure(body) is not None


def _lone_failure(body: bytes | memoryview) -> RpcFailure | None:
    """Return the error that a body holds beside any list, None where it holds something else."""
    try:
        return _failure(decode_deep(_LONE_ANSWER, body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _failure(answer: Answer[Any]) -> RpcFailure | None:
    error = answer.error
    return RpcFailure(message=error) if isinstance(error, str) else error
