"""Servers on loopback that answer like the price APIs, from the recorded answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestServer

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> bytes:
    """Return a recorded answer as it is."""
    return (RECORDED / name).read_bytes()


class PriceServer:
    """Serves one path; ``body`` and ``status`` stand in for the usual answer while they are set."""

    path = "/"

    def __init__(self) -> None:
        self.requests: list[web.Request] = []
        self.status = 200
        self.body: bytes | None = None
        self.delay_s = 0.0
        self._server: TestServer | None = None

    @property
    def base_url(self) -> str:
        """Where it can be reached."""
        return str(self._server.make_url("")).rstrip("/")

    def usual(self, request: web.Request) -> bytes:
        """Return what the real service would."""
        raise NotImplementedError

    async def answer(self, request: web.Request) -> web.Response:
        """Keep the request and answer it."""
        self.requests.append(request)
        await asyncio.sleep(self.delay_s)
        body = self.usual(request) if self.body is None else self.body
        return web.Response(status=self.status, body=body, content_type="application/json")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[PriceServer]:
        """Listen on a free port of the loopback until the context ends."""
        app = web.Application()
        app.router.add_get(self.path, self.answer)
        async with TestServer(app) as self._server:
            yield self


class CoinGeckoServer(PriceServer):
    """Knows the recorded coins; leaves out ids and currencies it does not know, as the real one does."""

    path = "/api/v3/simple/price"

    def usual(self, request: web.Request) -> bytes:
        """Cut the recorded answer down to what was asked, without touching a number's digits."""
        ids = request.query["ids"].split(",")
        fields = [*request.query["vs_currencies"].split(","), "last_updated_at"]
        coins = json.loads(recorded("coingecko_simple_price.json"), parse_float=RawNumber, parse_int=RawNumber)
        chosen = {
            coin: {key: coins[coin][key] for key in fields if key in coins[coin]} for coin in ids if coin in coins
        }
        return written(chosen).encode()


class KrakenServer(PriceServer):
    """Knows the recorded pairs under their short names; one unknown pair spoils the whole request."""

    path = "/0/public/Ticker"

    def usual(self, request: web.Request) -> bytes:
        """Cut the recorded answer down to what was asked."""
        tickers = json.loads(recorded("kraken_ticker.json"))["result"]
        short = {"ETHEUR": "XETHZEUR", "ETHUSD": "XETHZUSD", "USDTUSD": "USDTZUSD", "XBTUSD": "XXBTZUSD"}
        asked = request.query["pair"].split(",")
        if not set(asked) <= short.keys():
            return recorded("kraken_unknown_pair.json")
        return json.dumps({"error": [], "result": {short[pair]: tickers[short[pair]] for pair in asked}}).encode()


class RawNumber(str):
    """A number as it was written."""

    __slots__ = ()


def written(value: object) -> str:
    """Write JSON with numbers exactly as they were read."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{written(item)}" for key, item in value.items()) + "}"
    return str(value)
