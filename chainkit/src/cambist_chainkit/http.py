"""Asking a node over one long-lived HTTP session: with limits, and without telling anybody the node's secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from msgspec import Struct

from cambist.plugin import ChainError, ChainUnavailableError, PluginContext

from .answers import NoAnswerError, TooLongError, from_status

SECRET_CHARS_MIN: Final = 6
ERROR_BODY_BYTES_MAX: Final = 1 << 16
CONNECTIONS_MAX: Final = 32
INTERIM_MAX: Final = 8
"""Answers such as 103 that may come before the one that counts. Without end they would take the whole event loop."""
LATENCY_WEIGHT: Final = 0.1
"""How much the last answer counts, against all that were before it."""


class Answered(Struct, frozen=True):
    """What came back: the body in the pieces in which it came, megabytes that are joined once and not twice.

    An error's body is empty where it was too long to be one.
    """

    status: int
    retry_after: str | None
    chunks: list[bytes]

    @property
    def ok(self) -> bool:
        """Whether the node took the question."""
        return self.status == HTTPStatus.OK

    @property
    def body(self) -> bytes:
        """The pieces as one."""
        return b"".join(self.chunks)


class BoundedResponse(aiohttp.ClientResponse):
    """An answer before which only so many others may come.

    The gateway's sender of webhooks has its like: a plugin sees nothing of the gateway but the contract.
    """

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Read the head of the answer. Raises ClientResponseError, also where interim answers do not end."""
        protocol, heads = connection.protocol, 0
        if protocol is None:
            return await super().start(connection)
        read = protocol.read

        async def counted() -> Any:  # noqa: ANN401  what aiohttp's parser makes of a head
            nonlocal heads
            heads += 1
            if heads > INTERIM_MAX + 1:
                raise HttpProcessingError(code=0, message="interim answers without end")
            return await read()

        protocol.read = counted  # type: ignore[method-assign]  # for this answer alone
        try:
            return await super().start(connection)
        finally:
            del protocol.read


class HttpClient:
    """One endpoint's HTTP. Keeps no state but how long answers take lately, and retries nothing.

    Raises ChainError and nothing else. The endpoint's address, which may carry a key, is in no message: they say
    ``name``, and ``redacted`` takes the secrets out of what a node says before it is repeated. The values of
    ``secret_headers`` are as secret as the address.
    """

    def __init__(  # noqa: PLR0913 - what an endpoint is, by keyword
        self,
        session: aiohttp.ClientSession,
        url: str,
        name: str,
        *,
        now: Callable[[], datetime],
        timeout_s: float,
        response_bytes_max: int,
        secret_headers: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._session = session
        self._url = url
        self._headers = {"Content-Type": "application/json", **(secret_headers or {})}
        self._secrets = _secrets(url, (secret_headers or {}).values())
        self.latency_ms: float | None = None
        self._now = now
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._response_bytes_max = response_bytes_max

    async def post(self, body: bytes, asked: str, path: str = "") -> Answered:
        """Send JSON and return what comes back, whatever its status; ``asked`` names the question in messages."""
        asked_at = self._now()
        try:
            async with self._session.post(
                self._url + path, data=body, headers=self._headers, timeout=self._timeout, allow_redirects=False
            ) as response:
                # Too many requests is all that such an answer can say.
                chunks = [] if response.status == HTTPStatus.TOO_MANY_REQUESTS else await self._read(response)
                self._took((self._now() - asked_at).total_seconds() * 1000)
                return Answered(response.status, response.headers.get("Retry-After"), chunks)
        except TimeoutError as error:
            raise NoAnswerError(f"{self.name} did not answer {asked} in {self._timeout.total} s") from error
        except (aiohttp.ClientError, OSError) as error:
            # Only the error's type: its text can hold the address.
            message = f"{self.name} could not be reached for {asked}: {type(error).__name__}"
            raise ChainUnavailableError(message) from None

    def _took(self, took_ms: float) -> None:
        known = took_ms if self.latency_ms is None else self.latency_ms
        self.latency_ms = known + (took_ms - known) * LATENCY_WEIGHT

    async def _read(self, response: aiohttp.ClientResponse) -> list[bytes]:
        ok = response.status == HTTPStatus.OK
        bytes_max = self._response_bytes_max if ok else ERROR_BODY_BYTES_MAX
        chunks: list[bytes] = []
        size = 0
        async for chunk, _ in response.content.iter_chunks():
            size += len(chunk)
            if size > bytes_max:
                if not ok:
                    return []
                raise TooLongError(f"{self.name} answered with more than {bytes_max} bytes")
            chunks.append(chunk)
        return chunks

    def error(self, answered: Answered) -> ChainError:
        """Return what the status of a refusal stands for."""
        return from_status(self.name, answered.status, answered.retry_after, self._now)

    def redacted(self, text: str) -> str:
        """Return what a node said, without the endpoint's secrets."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def open_session(context: PluginContext) -> aiohttp.ClientSession:
    """Return a session fit for nodes: many connections, no cookies, room for answers of megabytes."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, limit_per_host=CONNECTIONS_MAX),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": context.user_agent},
        read_bufsize=1 << 20,
        response_class=BoundedResponse,
    )


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


def _secrets(url: str, others: Iterable[str]) -> Sequence[str]:
    """Return the parts of an endpoint's address that may be a key, and what else is secret, longest first."""
    parts = urlsplit(url)
    found = {parts.username or "", parts.password or "", *parts.path.split("/")}
    found.update(value for _, value in parse_qsl(parts.query))
    found.update(unquote(part) for part in tuple(found))
    found.update([url, *others])
    return sorted((part for part in found if len(part) >= SECRET_CHARS_MIN), key=len, reverse=True)
