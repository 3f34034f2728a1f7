"""An answer that streams, and lets a client go that does not take what it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import structlog
from litestar.response import Stream
from litestar.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    # Proxies such as nginx would otherwise hold events back until a buffer is full.
    "X-Accel-Buffering": "no",
}

log = structlog.get_logger(__name__)


class TooSlowError(Exception):
    """A client did not take what it was sent in time."""


class LiveStream(Stream):
    """Server-sent events. A connection on which one write takes longer than ``send_s`` is given up."""

    def __init__(self, events: AsyncGenerator[bytes, None], send_s: float) -> None:
        super().__init__(events, media_type="text/event-stream", headers=HEADERS)
        self._events = events
        self._send_s = send_s

    def to_asgi_response(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401  the framework's own signature
        """Return the framework's answer behind something that does not wait for ever."""
        return _Impatient(super().to_asgi_response(*args, **options), self._events, self._send_s)


class _Impatient:
    def __init__(self, answer: ASGIApp, events: AsyncGenerator[bytes, None], send_s: float) -> None:
        self._answer = answer
        self._events = events
        self._send_s = send_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(self._send_s):
                    await send(message)
            except TimeoutError:
                raise TooSlowError from None

        try:
            await self._answer(scope, receive, send_in_time)
        except* TooSlowError:
            log.info("stream_dropped", path=scope["path"])
        finally:
            await self._events.aclose()
