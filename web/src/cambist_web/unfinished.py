"""Bodies that do not arrive: each has a deadline, an address may have few that are late, and cut ones are refused.

The server itself bounds the time and the size of headers (``cambist_web/server.py``), and knows no such limit for
bodies: a request whose body never ends would hold its connection for as long as the client likes.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from litestar.connection import ASGIConnection
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, HTTPDisconnectEvent, Message, Receive, ReceiveMessage, Scope, Send

from cambist.services.errors import TooManyError

from .context import web_of
from .errors import BodyCutError, BodyTimeoutError
from .origin import Connection, address_of

LATE_AFTER_S = 1.0
"""A body that takes longer than this counts for its address. Those of honest clients arrive with their headers."""


class BodyDeadline(ASGIMiddleware):
    """Ends requests whose body is late, with 408, and with 429 where too many of an address are."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Let the request pass, with a body that ends in time or raises."""
        if not _has_body(scope):
            await next_app(scope, receive, send)
            return
        connection: Connection = ASGIConnection(scope)
        web = web_of(connection.app)
        limit = web.settings.web.unfinished_per_address
        body = _Body(receive, send, web.unfinished, connection, limit, web.settings.web.body_timeout_s)
        try:
            await next_app(scope, body.receive, body.send)
        finally:
            body.end()


def _has_body(scope: Scope) -> bool:
    for name, value in scope["headers"]:
        if name == b"transfer-encoding" or (name == b"content-length" and value != b"0"):
            return True
    return False


class _Body:
    """The body of one request, as it arrives. ``late`` counts those that are late, by address."""

    def __init__(  # noqa: PLR0913, PLR0917  what it stands between, and its limits
        self,
        receive: Receive,
        send: Send,
        late: Counter[str],
        connection: Connection,
        limit: int,
        timeout_s: float,
    ) -> None:
        self._receive = receive
        self._send = send
        self._late = late
        self._connection = connection
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        self._deadline = self._begun + timeout_s
        self._address: str | None = None
        self._ended = self._answered = self._refused = False

    async def receive(self) -> ReceiveMessage:
        """Return the next message.

        Raises BodyTimeoutError, BodyCutError and TooManyError, unless the answer has begun.
        """
        if self._ended:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline) as timeout:
                late = None
                if self._address is None:
                    late = self._loop.call_at(self._begun + LATE_AFTER_S, self._count, timeout)
                try:
                    message = await self._receive()
                finally:
                    if late is not None:
                        late.cancel()
        except TimeoutError:
            refused = self._refused
            self.end()
            if self._answered:
                gone: HTTPDisconnectEvent = {"type": "http.disconnect"}
                return gone
            if refused:
                raise TooManyError(
                    "TOO_MANY_UNFINISHED",
                    "Too many requests from this address wait for the rest of their bodies.",
                    retry_after_s=1,
                ) from None
            raise BodyTimeoutError from None
        if message["type"] != "http.request" or not message.get("more_body", False):
            self.end()
        if message["type"] == "http.disconnect" and not self._answered:
            # The framework would take it for a mistake of ours, and any client could fill the log with tracebacks.
            raise BodyCutError
        return message

    async def send(self, message: Message) -> None:
        self._answered = True
        await self._send(message)

    def end(self) -> None:
        """Stop counting: the body is there, or nobody waits for it any more."""
        self._ended = True
        if self._address is not None:
            self._late[self._address] -= 1
            if self._late[self._address] <= 0:
                del self._late[self._address]
            self._address = None

    def _count(self, timeout: asyncio.Timeout) -> None:
        if self._ended:
            return
        self._address = address_of(self._connection)
        self._late[self._address] += 1
        if self._limit and self._late[self._address] > self._limit:
            self._refused = True
            timeout.reschedule(self._loop.time())
