"""JSON-RPC over one long-lived HTTP session: batches, strict ids, and answers decoded straight into Structs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from http import HTTPStatus
from itertools import count
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import aiohttp
import msgspec
from msgspec import UNSET

from cambist.plugin import ChainError, ChainUnavailableError, InconsistentChainError, SpanTooWideError

from .rpc_errors import NestedTooDeeplyError, NoAnswerError, from_answer, from_status
from .wire import Answer, RpcFailure

T = TypeVar("T")

BatchDecoder = msgspec.json.Decoder[list[Answer[T]]]

NESTED_MAX: Final = 4000
SECRET_CHARS_MIN: Final = 6
ERROR_BODY_BYTES_MAX: Final = 1 << 16

_ENCODER: Final = msgspec.json.Encoder()
_LONE_ANSWER: Final = msgspec.json.Decoder(Answer[msgspec.Raw])


class JsonRpc:
    """One endpoint's JSON-RPC. Counts its calls; keeps no other state, and retries nothing.

    Raises ChainError and nothing else. The endpoint's address, which may carry a key, is in no message: they
    say ``name``, and what a node says is searched for the address's secrets before it is repeated.
    """

    def __init__(  # noqa: PLR0913 - what an endpoint is, by keyword
        self,
        session: aiohttp.ClientSession,
        url: str,
        name: str,
        *,
        now: Callable[[], datetime],
        timeout_s: float,
        batch_calls_max: int,
        response_bytes_max: int,
    ) -> None:
        """Prepare; nothing is sent."""
        self.name = name
        self.calls = 0
        self._session = session
        self._url = url
        self._secrets = _secrets(url)
        self._now = now
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._batch_calls_max = batch_calls_max
        self._response_bytes_max = response_bytes_max
        self._ids = count(1)

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
        return self._in_order(b"".join([b"[", *chunks, b"]"] if lone else chunks), ids, method, decoder)

    async def _post(self, body: bytes, method: str) -> list[bytes]:
        headers = {"Content-Type": "application/json"}
        try:
            async with self._session.post(
                self._url, data=body, headers=headers, timeout=self._timeout, allow_redirects=False
            ) as response:
                if response.status == HTTPStatus.OK:
                    return await self._read(response, self._response_bytes_max)
                return [await self._refusal(response)]
        except TimeoutError as error:
            message = f"{self.name} did not answer {method} in {self._timeout.total} s"
            raise NoAnswerError(message) from error
        except (aiohttp.ClientError, OSError) as error:
            # Only the error's type: its text can hold the address.
            message = f"{self.name} could not be reached for {method}: {type(error).__name__}"
            raise ChainUnavailableError(message) from None

    async def _read(self, response: aiohttp.ClientResponse, bytes_max: int) -> list[bytes]:
        """Return the body in the pieces in which it came: megabytes, to be joined once and not twice."""
        chunks: list[bytes] = []
        size = 0
        async for chunk, _ in response.content.iter_chunks():
            size += len(chunk)
            if size > bytes_max:
                message = f"{self.name} answered with more than {bytes_max} bytes"
                raise SpanTooWideError(message)
            chunks.append(chunk)
        return chunks

    async def _refusal(self, response: aiohttp.ClientResponse) -> bytes:
        """Return a body that tells what is wrong: many providers put a JSON-RPC error into a 4xx.

        Where it does not tell, or the status says more than it could, raise what the status means.
        """
        by_status = from_status(self.name, response.status, response.headers.get("Retry-After"), self._now)
        if response.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise by_status
        try:
            body = b"".join(await self._read(response, ERROR_BODY_BYTES_MAX))
        except SpanTooWideError:
            raise by_status from None
        answers_to_a_batch = body.lstrip().startswith(b"[")
        if not answers_to_a_batch and _lone_failure(body) is None:
            raise by_status
        return body

    def _in_order(self, body: bytes, ids: Sequence[int], method: str, decoder: BatchDecoder[T]) -> list[Answer[T]]:
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

    def _decode(self, body: bytes, method: str, decoder: BatchDecoder[T]) -> list[Answer[T]]:
        try:
            return decode_deep(decoder, body)
        except RecursionError as error:
            message = f"{self.name} answered {method} with something nested too deeply"
            raise NestedTooDeeplyError(message) from error
        except msgspec.ValidationError as error:
            # A batch that is refused as a whole is answered by one object instead of a list.
            failure = _lone_failure(body)
            if failure is not None:
                raise self._error(method, failure) from None
            message = f"{self.name} answered {method} with something else than that: {error}"
            raise InconsistentChainError(message) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            page = body.lstrip(b"[ \r\n\t").startswith(b"<")
            message = f"{self.name} answered {method} with {'a web page' if page else 'broken JSON'}"
            raise ChainUnavailableError(message) from error

    def _error(self, method: str, failure: RpcFailure) -> ChainError:
        return self.error(method, self._redacted(failure))

    def _redacted(self, failure: RpcFailure) -> RpcFailure:
        text = failure.message
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return RpcFailure(code=failure.code, message=text, data=failure.data)


async def gather_all(*awaitables: Any) -> list[Any]:  # noqa: ANN401 - as wide as asyncio.gather
    """Await all at once; at the first error, cancel the rest and raise that error itself, not a group of one."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_as_coroutine(awaitable)) for awaitable in awaitables]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


async def _as_coroutine(awaitable: Any) -> Any:  # noqa: ANN401 - passes through whatever it is given
    return await awaitable


def decode_deep(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """Decode however deep the calls of a trace are nested, and refuse deeper nesting with RecursionError.

    The EVM allows 1024 calls, each is two levels of JSON, and a transaction that goes so deep costs its sender
    little. It must not be able to stop the chain by Python's limit, which is 1000 by default; nor to kill the
    process where a library has put that limit so high that the stack ends before it, as py_ecc does. Python 3.12
    alone has a second limit, at about 750 calls, which cannot be moved.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(NESTED_MAX)
    try:
        return decoder.decode(body)
    finally:
        sys.setrecursionlimit(limit)


def _lone_failure(body: bytes) -> RpcFailure | None:
    """Return the error that a body holds beside any list, None where it holds something else."""
    try:
        return _failure(decode_deep(_LONE_ANSWER, body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _failure(answer: Answer[Any]) -> RpcFailure | None:
    error = answer.error
    return RpcFailure(message=error) if isinstance(error, str) else error


def _secrets(url: str) -> Sequence[str]:
    """Return the parts of an endpoint's address that may be a key, longest first."""
    parts = urlsplit(url)
    found = {parts.username or "", parts.password or "", *parts.path.split("/")}
    found.update(value for _, value in parse_qsl(parts.query))
    found.update(unquote(part) for part in tuple(found))
    found.add(url)
    return sorted((part for part in found if len(part) >= SECRET_CHARS_MIN), key=len, reverse=True)


def endpoint_names(urls: Sequence[str]) -> Sequence[str]:
    """Return a name for each endpoint: host and port, and a number where they share it. Never path, key or user."""
    names: list[str] = []
    seen: dict[str, int] = {}
    for url in urls:
        parts = urlsplit(url)
        host = parts.hostname or "?"
        host = f"[{host}]" if ":" in host else host
        name = host if parts.port is None else f"{host}:{parts.port}"
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names
