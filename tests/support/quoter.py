"""A market beside the stories, which two price sources read: what they say of USDX is the story's to change."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Self

from aiohttp import web


class Quoter:
    """Says what one USDX costs in US dollars, as Kraken and as CoinGecko write it."""

    def __init__(self) -> None:
        self.url = ""
        self.kraken = self.coingecko = "1"

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/0/public/Ticker", self._ticker)
        app.router.add_get("/api/v3/simple/price", self._price)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def settings(self) -> Sequence[str]:
        """Return the lines of the operator's file that have both sources ask here, for this coin alone, and watched."""
        nothing = 'BNB = "", BTC = "", DAI = "", ETH = "", POL = "", TRX = "", USDC = "", USDT = ""'
        return [
            "[prices]", "watch_s = 5",
            "[plugins.prices.kraken]", f'base_url = "{self.url}"', 'fiats = ["usd"]',
            f'assets = {{ USDX = "USDX", {nothing} }}',
            "[plugins.prices.coingecko]", f'base_url = "{self.url}"', f'ids = {{ USDX = "usdx", {nothing} }}',
        ]  # fmt: skip

    async def _ticker(self, request: web.Request) -> web.Response:
        (pair,) = request.query["pair"].split(",")
        return web.json_response({"error": [], "result": {pair: {"a": [self.kraken], "b": [self.kraken]}}})

    async def _price(self, _: web.Request) -> web.Response:
        now = int(time.time())
        text = f'{{"usdx": {{"usd": {self.coingecko}, "last_updated_at": {now}}}}}'
        return web.Response(text=text, content_type="application/json")
