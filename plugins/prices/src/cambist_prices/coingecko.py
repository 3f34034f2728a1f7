"""Prices from CoinGecko's public API, in one request for all pairs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from decimal import Decimal

import aiohttp

from cambist.plugin import Price, PricePair, PriceSource

from .config import COINGECKO_IDS, CoinGeckoConfig, is_sane
from .http import get_json

_BASE_URLS = {"demo": "https://api.coingecko.com", "pro": "https://pro-api.coingecko.com"}
_TIME_FIELD = "last_updated_at"
_TIME_MAX = Decimal(32_503_680_000)  # the year 3000


class CoinGeckoSource(PriceSource):
    """Asks ``/api/v3/simple/price``; each price carries the time at which CoinGecko saw it change."""

    name = "coingecko"

    def __init__(self, session: aiohttp.ClientSession, config: CoinGeckoConfig) -> None:
        """Ask over this session, which the caller closes."""
        self._session = session
        self._timeout_ms = config.timeout_ms
        self._url = (config.base_url or _BASE_URLS[config.plan]).rstrip("/") + "/api/v3/simple/price"
        self._headers = {f"x-cg-{config.plan}-api-key": config.api_key} if config.api_key else {}
        ids = COINGECKO_IDS | {symbol.upper(): coin_id for symbol, coin_id in config.ids.items()}
        self._ids = {symbol: coin_id for symbol, coin_id in ids.items() if coin_id}

    async def prices(self, pairs: Collection[PricePair]) -> Mapping[PricePair, Price]:
        """Ask for all known symbols in all currencies at once, and pick the pairs."""
        wanted = [pair for pair in pairs if pair[0] in self._ids]
        if not wanted:
            return {}
        answer = await get_json(
            self._session,
            self._url,
            dict[str, dict[str, Decimal | None]],  # made of a number's own digits, so that no float comes between
            source=self.name,
            wanted="prices",
            params={
                "ids": ",".join(sorted({self._ids[symbol] for symbol, _ in wanted})),
                "vs_currencies": ",".join(sorted({fiat for _, fiat in wanted})),
                f"include_{_TIME_FIELD}": "true",
                "precision": "full",
            },
            headers=self._headers,
            timeout_ms=self._timeout_ms,
        )
        found = ((pair, _price(answer.get(self._ids[pair[0]], {}), pair[1])) for pair in wanted)
        return {pair: price for pair, price in found if price is not None}


def _price(coin: Mapping[str, Decimal | None], fiat: str) -> Price | None:
    value, seconds = coin.get(fiat), coin.get(_TIME_FIELD)
    # A price without its time might be of any age, so it is none.
    if value is None or seconds is None or not is_sane(value):
        return None
    if not (seconds.is_finite() and 0 < seconds < _TIME_MAX):
        return None
    return Price(value=value, observed_at=datetime.fromtimestamp(int(seconds), UTC))
