"""Sends one webhook once: signed, guarded, and bounded in time and in what is read back."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader
from msgspec import Struct

from cambist import __version__
from cambist.domain.webhooks import sign_webhook
from cambist.ports import Clock
from cambist.settings import WebhookTargets

from .tls_failures import tls_sentence
from .urls import guarded_socket_factory, webhook_url_refusal

RESPONSE_BYTES_MAX = 64 * 1024
PREVIEW_CHARS_MAX = 500
BODY_TIMEOUT_S = 1.0
"""A receiver has answered with its status; its words are waited for no longer than this."""
INTERIM_MAX = 8
"""Answers such as 103 that may come before the one that counts. Without end they would take the whole event loop."""
HEAD_END = re.compile(rb"\n\r?\n")
HEAD_END_KEPT = 2
"""So many bytes of what came may be the beginning of such an end."""
BODILESS = (204, 304)
"""Statuses behind which there is no body, whatever the head announces."""
RESOLVER_THREADS = 64
USER_AGENT = f"Cambist-Webhooks/{__version__}"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class AttemptResult(Struct, frozen=True, kw_only=True):
    """What one attempt came to. ``error`` is None exactly where it was delivered."""

    status_code: int | None
    duration_ms: int
    error: str | None
    response_preview: str | None
    signature: str
    timestamp_ms: int
    attempted_at: datetime

    @property
    def delivered(self) -> bool:
        """Whether the receiver answered with a 2xx status."""
        return self.error is None


class Message(Struct, frozen=True, kw_only=True):
    """What is sent. ``secret`` is None where nothing is signed; ``id`` stays the same over attempts and targets.

    ``previous_secret`` signs beside it while a rotation overlaps.
    """

    id: str
    event: str
    body: bytes
    secret: str | None
    previous_secret: str | None = None
    is_test: bool = False


class Resolver(AbstractResolver):
    """Looks names up in threads of its own, so that slow name servers of merchants delay nobody else's."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="webhook-dns")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        infos = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        )
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=port,
                family=family_found,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for family_found, _, protocol, _, address in infos
        ]

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Protocol(ResponseHandler):
    """Reads the head of an answer before whatever comes with it, and one answer to each request.

    The parser forgets a head that it has read where the same bytes go on with what it does not take: a body behind
    204, or one that is longer than its Content-Length. The receiver has answered, and its status is what counts.
    """

    _before = b""
    _has_answered = False

    def set_response_params(self, **params: Any) -> None:  # noqa: ANN401  aiohttp's own
        """Prepare for the answer to the request that is about to be sent."""
        self._has_answered = False
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Hand the parser what has come, each head by itself. A body may be cut as well: it is read on all the same.

        A head may have begun to end in the bytes before. No data at all has the parser go on with what it has.
        """
        if not data:
            super().data_received(data)
            return
        known, begin = self._before, 0
        seen = known + data
        self._before = seen[-HEAD_END_KEPT:]
        for found in islice(HEAD_END.finditer(seen), INTERIM_MAX + 2):
            end = found.end() - len(known)
            super().data_received(data[begin:end])
            begin = end
        if begin < len(data):
            super().data_received(data[begin:])

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Keep an answer. A second one closes the connection: the next request would be told that it is its own."""
        message, _ = data
        if self._has_answered:
            self.force_close()
            if self.transport is not None:
                self.transport.close()
            return
        self._has_answered = not 100 <= message.code < 200  # noqa: PLR2004  the 1xx of HTTP
        if message.code in BODILESS and (
            message.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in message.headers
        ):
            # What it announces may come yet, in front of the next answer.
            self.force_close()
        super().feed_data(data, size)


class _Connector(aiohttp.TCPConnector):
    """Opens connections that read so, to where they may go, as many as are asked for."""

    def __init__(self, resolver: AbstractResolver, targets: WebhookTargets) -> None:
        super().__init__(
            limit=0,
            resolver=resolver,
            socket_factory=guarded_socket_factory(allow_private=targets.allow_private),
        )
        protocol: type[ResponseHandler] = _Protocol
        self._factory = partial(protocol, loop=self._loop)


class _Answer(aiohttp.ClientResponse):
    """An answer before which only so many others may come."""

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


class Sender:
    """Sends signed webhooks. Never raises for anything that the target does."""

    def __init__(
        self, session: aiohttp.ClientSession, *, clock: Clock, timeout_ms: int, targets: WebhookTargets
    ) -> None:
        self._session = session
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._targets = targets
        # aiohttp would round timeouts above five seconds up to a full second of its loop's clock.
        self._timeout = aiohttp.ClientTimeout(total=timeout_ms / 1000, ceil_threshold=timeout_ms)

    async def send_once(self, url: str, message: Message) -> AttemptResult:
        """Sign and post the message, and return what came of it."""
        attempted_at = self._clock.now()
        timestamp_ms = (attempted_at - _EPOCH) // timedelta(milliseconds=1)
        signature = sign_webhook(message.secret, timestamp_ms, message.body)
        started = self._clock.monotonic()
        status, preview, error = await self._post(url, message, signature, timestamp_ms)
        return AttemptResult(
            status_code=status,
            duration_ms=round((self._clock.monotonic() - started) * 1000),
            error=error,
            response_preview=preview,
            signature=signature,
            timestamp_ms=timestamp_ms,
            attempted_at=attempted_at,
        )

    async def _post(
        self, url: str, message: Message, signature: str, timestamp_ms: int
    ) -> tuple[int | None, str | None, str | None]:
        if (refusal := webhook_url_refusal(url, self._targets)) is not None:
            return None, None, f"the URL {refusal}"
        headers = {
            "Content-Type": "application/json",
            "X-Webhook-Id": message.id,
            "X-Webhook-Event": message.event,
            "X-Webhook-Timestamp": str(timestamp_ms),
            "X-Webhook-Signature": signature,
        }
        if message.previous_secret is not None:
            previous = sign_webhook(message.previous_secret, timestamp_ms, message.body)
            headers["X-Webhook-Signature-Previous"] = previous
        if message.is_test:
            headers["X-Webhook-Test"] = "true"
        try:
            async with self._session.post(
                url, data=message.body, headers=headers, timeout=self._timeout, allow_redirects=False
            ) as response:
                return response.status, await _preview(response), _status_error(response.status)
        except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError is an OSError
            return None, None, self._sentence(error)

    def _sentence(self, error: Exception) -> str:
        """Say what went wrong, without addresses of ours or of name servers inside."""
        if isinstance(error, TimeoutError):
            return f"no answer within {self._timeout_ms} ms"
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return "the host's name does not resolve"
        if isinstance(error, aiohttp.ClientSSLError):
            return tls_sentence(error.__cause__)
        if isinstance(error, aiohttp.ClientConnectorError):
            # What was not the system's error has a text alone; a handshake that was closed has neither.
            told = error.os_error.strerror or str(error.os_error)
            return f"cannot connect: {told}" if told else "the receiver closed the connection while it was set up"
        if isinstance(error, aiohttp.ServerDisconnectedError):
            return "the receiver closed the connection without an answer"
        if isinstance(error, (aiohttp.ClientOSError, ConnectionError)):
            return "the connection broke off before an answer"
        return f"the answer is not HTTP as it should be ({type(error).__name__})"


def _status_error(status: int) -> str | None:
    if 200 <= status < 300:  # noqa: PLR2004  the 2xx of HTTP
        return None
    if 300 <= status < 400:  # noqa: PLR2004  the 3xx of HTTP
        return f"HTTP {status}: redirects are not followed"
    return f"HTTP {status}"


async def _preview(response: aiohttp.ClientResponse) -> str | None:
    """Return the beginning of the body, fit for a database and a page. The body decides nothing."""
    received = bytearray()
    with suppress(aiohttp.ClientError, OSError, ValueError):
        if response.content.is_eof():
            received += response.content.read_nowait()
        else:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                await _read(response.content, received)
    # Four bytes make a character at most.
    text = bytes(received[: PREVIEW_CHARS_MAX * 4]).decode("utf-8", "replace")
    return text[:PREVIEW_CHARS_MAX].replace("\x00", "\N{REPLACEMENT CHARACTER}") or None


async def _read(content: aiohttp.StreamReader, received: bytearray) -> None:
    """Read on past the preview, to the end if that is near, so that the connection can be used again."""
    while len(received) < RESPONSE_BYTES_MAX:
        chunk = await content.readany()
        if not chunk:
            return
        received += chunk


@asynccontextmanager
async def open_sender(
    *, clock: Clock, timeout_ms: int, targets: WebhookTargets, resolver: AbstractResolver | None = None
) -> AsyncIterator[Sender]:
    """Open the one guarded way out for webhooks.

    No proxies, cookies, or credentials from the environment, no redirects, nothing decompressed. How many
    connections there are is the caller's to bound.
    """
    connector = _Connector(resolver or Resolver(), targets)
    async with aiohttp.ClientSession(
        connector=connector,
        response_class=_Answer,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "identity"},
        auto_decompress=False,
        trust_env=False,
    ) as session:
        yield Sender(session, clock=clock, timeout_ms=timeout_ms, targets=targets)
