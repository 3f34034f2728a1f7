"""JSON-RPC: batches, strict ids, and answers decoded straight into Structs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET

from cambist.plugin import (
    ChainError,
    ChainUnavailableError,
    InconsistentChainError,
    RateLimitedError,
    SpanTooWideError,
    StateUnavailableError,
)
from cambist_chainkit.answers import TooLongError, UnsupportedError, decode_deep, unreadable
from cambist_chainkit.http import Answered, HttpClient

from .wire import Answer, RpcFailure

T = TypeVar("T")

KEPT_BYTES_MAX: Final = 1 << 24
"""A batch of full blocks is a few megabytes. The memory of a larger answer is given back."""

_ENCODER: Final = msgspec.json.Encoder()
_LONE_ANSWER: Final = msgspec.json.Decoder(Answer[msgspec.Raw])


TEXT_MAX: Final = 200

_RATE: Final = re.compile(
    r"rate.?limit|too many requests|requests? (?:limit|count)|compute units|quota|capacity|throttl|per second|"
    r"slow down",
    re.IGNORECASE,
)
_SPAN: Final = re.compile(
    r"range|too many (?:blocks|results|logs|calls)|more than \d+ (?:results|blocks)|response size|too (?:large|big)|"
    r"size exceed|exceeds? (?:the )?(?:max|limit)|query timeout|execution timeout",
    re.IGNORECASE,
)
# Behind "revert" come the words of a contract, which whoever is paid may choose.
_BATCH: Final = re.compile(
    r"^(?!.*\brevert).*(?:"
    r"\bbatch\b(?!.*response).*(?:\bsize\b|\btoo\b|limit|large|\bonly\b|not (?:supported|allowed|enabled))|"
    r"\btoo many\b.*\bbatch\b)",
    re.IGNORECASE,
)
_LOGS_SPAN: Final = re.compile(
    r"(?:limit|max|at most|more than|up to)\b.*\bblocks?\b|number of (?:requested )?blocks|blocks? distance|"
    r"limited to|smaller than size",
    re.IGNORECASE,
)
_UNREACHED: Final = re.compile(r"\bbeyond\b.*\bhead\b|\bexceeds\b.*\bhead\b", re.IGNORECASE)
_OF_THE_PAST: Final = frozenset({"eth_call", "eth_getBalance"})
_STATE: Final = re.compile(
    r"missing trie node|historical state|no state available|due to pruning|\barchiv|"
    r"state\b.{0,80}\b(?:not available|unavailable|pruned)",
    re.IGNORECASE,
)
_LENGTH: Final = re.compile(r"response size|too (?:large|big)|size exceed", re.IGNORECASE)
_TIME: Final = re.compile(r"timeout|timed out", re.IGNORECASE)
_UNSUPPORTED: Final = re.compile(
    r"method\b:?[^:;,]*\b(?:not (?:found|exist|supported|available|allowed|enabled)|does not exist|is not|unavailable|"
    r"disabled)|"
    r"\b[a-z]+_[a-z]+ is (?:not (?:available|supported|allowed|enabled)|unavailable|disabled|only available)|"
    r"trace requests are not available|not allowed to access method|"
    r"(?:unsupported|unknown|invalid) method|not supported|not implemented|upgrade.*plan",
    re.IGNORECASE,
)
# What an endpoint offers, it does not always do: blocks that are read without traces meanwhile are not read again.
_FOR_NOW: Final = re.compile(
    r"\b(?:reached|exceeded|exhausted|consumed|used up|time-?out|timed out|respond(?:ing)?|temporar\w+|again later)\b",
    re.IGNORECASE,
)
_RATE_CODES: Final = frozenset({429, -32005, -32007, -32029, -32097, "429", "-32005"})
_UNSUPPORTED_CODES: Final = frozenset({-32601, -32004, -32053, "-32601"})


class BatchRefusedError(TooLongError):
    """The endpoint takes fewer calls in one request than these, whatever they ask for."""


class JsonRpc:
    """One endpoint's JSON-RPC. Counts its calls, and learns how many it takes in one request; retries nothing else.

    Raises ChainError and nothing else.
    """

    def __init__(self, http: HttpClient, *, batch_calls_max: int) -> None:
        self.name = http.name
        self.calls = 0
        self._http = http
        self._batch_calls_max = batch_calls_max
        self._ids = count(1)
        self._buffer = bytearray()

    @property
    def latency_ms(self) -> float | None:
        """How long answers take lately."""
        return self._http.latency_ms

    async def call(self, method: str, params: Sequence[Any], kind: type[T]) -> T | None:
        """Return the result of one call, None for null."""
        return (await self.batch([(method, params)], kind))[0]

    async def batch(self, calls: Sequence[tuple[str, Sequence[Any]]], kind: type[T]) -> list[T | None]:
        """Return the results in the order of the calls, None for null. Any error is an error of the whole batch.

        An endpoint that refuses so many calls in one request is asked for half as many, from now on.
        """
        results: list[T | None] = []
        while len(results) < len(calls):
            some = calls[len(results) : len(results) + self._batch_calls_max]
            try:
                answers = await self._answers(some, kind)
            except BatchRefusedError:
                if len(some) == 1:
                    raise
                self._batch_calls_max = min(self._batch_calls_max, len(some) // 2)
                continue
            for answer in answers:
                outcome = self._outcome(answer, some[0][0])
                if isinstance(outcome, RpcFailure):
                    raise self.error(some[0][0], outcome)
                results.append(outcome)
        return results

    async def each(self, calls: Sequence[tuple[str, Sequence[Any]]], kind: type[T]) -> list[T | RpcFailure | None]:
        """Return the results of one request, in the order of the calls. An error of one call stands in its place."""
        answers = await self._answers(calls, kind)
        outcomes: list[T | RpcFailure | None] = []
        for answer in answers:
            outcome: T | RpcFailure | None = self._outcome(answer, calls[0][0])
            outcomes.append(outcome)
        return outcomes

    def error(self, method: str, failure: RpcFailure) -> ChainError:
        """Return the error that a failure which stood in a result's place is."""
        return from_answer(self.name, method, failure)

    async def _answers(self, calls: Sequence[tuple[str, Sequence[Any]]], kind: type[T]) -> list[Answer[T]]:
        """Send one request and return the answers in the order of the calls. Raises BatchRefusedError for too many."""
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
        answers = self._in_order(body, ids, method, kind)
        if not lone:
            self._check_taken(answers, method)
        return answers

    def _check_taken(self, answers: Sequence[Answer[Any]], method: str) -> None:
        """Raise BatchRefusedError where each call of a request was refused because there are so many of them."""
        first = _failure(answers[0])
        if first is None:
            return
        error = self._error(method, first)
        if isinstance(error, BatchRefusedError) and all(_failure(answer) is not None for answer in answers):
            raise error

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

    def _in_order(self, body: memoryview, ids: Sequence[int], method: str, kind: type[T]) -> list[Answer[T]]:
        answers = self._decode(body, method, kind)
        by_id = {answer.id: answer for answer in answers}
        if len(answers) != len(ids) or by_id.keys() != set(ids):
            for answer in answers:
                failure = _failure(answer)
                if failure is not None and answer.id is None:
                    raise self._error(method, failure)
            raise InconsistentChainError(f"{self.name} answered {method} with other ids than it was asked with")
        return [by_id[id_] for id_ in ids]

    def _outcome(self, answer: Answer[T], method: str) -> T | RpcFailure | None:
        failure = _failure(answer)
        if failure is not None:
            return self._redacted(failure)
        if answer.result is UNSET:
            raise ChainUnavailableError(f"{self.name} answered {method} with neither result nor error")
        return answer.result

    def _decode(self, body: memoryview, method: str, kind: type[T]) -> list[Answer[T]]:
        try:
            return decode_deep(msgspec.json.Decoder(list[Answer[kind]]), body)  # type: ignore[valid-type]
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


def from_answer(who: str, method: str, failure: RpcFailure) -> ChainError:
    """Return the error that a JSON-RPC error object stands for, in any of the ways in which nodes and providers refuse.

    Codes are not uniform (-32005 is a rate limit with one provider and a result limit with the next), so the text
    decides where it says something, and the code where it does not.
    """
    text = failure.message[:TEXT_MAX]
    said = f"{who} answered {method} with error {failure.code}: {text}"
    if method in _OF_THE_PAST and _STATE.search(text):
        return StateUnavailableError(said)
    if method == "eth_getLogs" and (error := _of_logs(said, text)) is not None:
        return error
    if _BATCH.search(text):
        return BatchRefusedError(said)
    if _SPAN.search(text):
        # What took too long the same endpoint can often tell later, and another at once.
        too_long = _LENGTH.search(text) is not None and _TIME.search(text) is None
        return TooLongError(said) if too_long else SpanTooWideError(said)
    if _RATE.search(text):
        return RateLimitedError(said)
    if failure.code in _UNSUPPORTED_CODES or (_UNSUPPORTED.search(text) and not _FOR_NOW.search(text)):
        return UnsupportedError(said)
    if failure.code in _RATE_CODES:
        return RateLimitedError(said)
    return ChainUnavailableError(said)


def _of_logs(said: str, text: str) -> ChainError | None:
    """Return what is meant by words that only a query of logs is refused with, None for all others."""
    if _UNREACHED.search(text):
        return ChainUnavailableError(said)  # one of several nodes behind the address is late
    narrower = _LOGS_SPAN.search(text) is not None or _TIME.search(text) is not None
    return SpanTooWideError(said) if narrower and not _RATE.search(text) else None
