"""Answers for a few pairs, on a free port of the loopback interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self

import msgspec
from aiohttp import web

from ..source import Told

PRICES: Mapping[tuple[str, str], str] = {
    ("ETH", "usd"): "3120.55",
    ("ETH", "eur"): "2874.01",
    ("USDC", "usd"): "0.9998",
}


class ExampleServer:
    """``async with`` runs it. While ``silent`` it tells nothing, and while it has a ``body`` it tells that."""

    def __init__(self, now: Callable[[], float], port: int = 0) -> None:
        """Port 0 is any that is free."""
        self.silent = False
        self.body: bytes | None = None
        self._now = now
        self._port = port
        app = web.Application()
        app.router.add_get("/prices", self._answer)
        self._runner = web.AppRunner(app)

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def __aenter__(self) -> Self:
        """Listen."""
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        if self.silent:
            raise web.HTTPServiceUnavailable
        asked = [tuple(pair.rpartition("-")[::2]) for pair in request.query["pairs"].split(",")]
        at = int(self._now())
        told = [Told(symbol, fiat, price, at) for (symbol, fiat), price in PRICES.items() if (symbol, fiat) in asked]
        body = msgspec.json.encode(told) if self.body is None else self.body
        return web.Response(body=body, content_type="application/json")
