"""Prices from Kraken's public ticker: the middle between the best bid and the best ask."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from decimal import Decimal

import aiohttp
from msgspec import Struct

from cambist.plugin import PluginContext, Price, PricePair, PriceSource, PriceUnavailableError

from .config import KRAKEN_ASSETS, PRICE, KrakenConfig, is_sane
from .http import get_json

BASE_URL = "https://api.kraken.com"
UNKNOWN_FOR_S = 3600
"""How long a pair that Kraken did not know is not asked for again."""

SPREAD_MAX = Decimal("0.05")
"""A market with a wider gap between bid and ask, as a part of the ask, has no price worth the name."""

_UNKNOWN_PAIR = "EQuery:Unknown asset pair"


class _Ticker(Struct, frozen=True):
    """The two fields that matter: each starts with the price, as text."""

    a: list[str] = []
    b: list[str] = []


class _Answer(Struct, frozen=True):
    error: list[str] = []
    result: dict[str, _Ticker] = {}


class _UnknownPairError(Exception):
    """Kraken refused the whole request because it does not know one of the pairs."""


class KrakenSource(PriceSource):
    """Asks ``/0/public/Ticker``, which gives no time of its own: a price is as of the moment of the answer.

    One unknown pair spoils a whole request. Then those that Kraken has priced before are asked for together and each
    of the others alone, and the unknown ones are left out for an hour.
    """

    name = "kraken"

    def __init__(self, session: aiohttp.ClientSession, config: KrakenConfig, context: PluginContext) -> None:
        """Ask over this session, which the caller closes."""
        self._session = session
        self._timeout_ms = config.timeout_ms
        self._url = (config.base_url or BASE_URL).rstrip("/") + "/0/public/Ticker"
        assets = KRAKEN_ASSETS | {symbol.upper(): code for symbol, code in config.assets.items()}
        self._assets = {symbol: code for symbol, code in assets.items() if code}
        self._fiats = frozenset(fiat.lower() for fiat in config.fiats)
        self._now: Callable[[], datetime] = context.now
        self._monotonic: Callable[[], float] = context.monotonic
        self._unknown_until: dict[PricePair, float] = {}
        self._known: set[PricePair] = set()

    async def prices(self, pairs: Collection[PricePair]) -> Mapping[PricePair, Price]:
        """Ask for all pairs at once, or for each new one alone where one of them is unknown to Kraken."""
        wanted = [pair for pair in dict.fromkeys(pairs) if self._may_know(pair)]
        if not wanted:
            return {}
        try:
            return await self._ask(wanted)
        except _UnknownPairError:
            return await self._ask_apart(wanted)

    def _may_know(self, pair: PricePair) -> bool:
        symbol, fiat = pair
        if symbol not in self._assets or fiat not in self._fiats:
            return False
        return self._unknown_until.get(pair, float("-inf")) <= self._monotonic()

    async def _ask_apart(self, pairs: Collection[PricePair]) -> Mapping[PricePair, Price]:
        known = [pair for pair in pairs if pair in self._known]
        if not known or len(known) == len(pairs):
            return await self._ask_each(pairs)
        try:
            found = await self._ask(known)
        except _UnknownPairError:
            return await self._ask_each(pairs)
        return {**found, **await self._ask_each([pair for pair in pairs if pair not in self._known])}

    async def _ask_each(self, pairs: Collection[PricePair]) -> Mapping[PricePair, Price]:
        found: dict[PricePair, Price] = {}
        for pair in pairs:
            try:
                found |= await self._ask([pair])
            except _UnknownPairError:
                self._known.discard(pair)
                self._unknown_until[pair] = self._monotonic() + UNKNOWN_FOR_S
        return found

    async def _ask(self, pairs: Collection[PricePair]) -> Mapping[PricePair, Price]:
        answer = await get_json(
            self._session,
            self._url,
            _Answer,
            source=self.name,
            wanted="tickers",
            params={"pair": ",".join(self._assets[symbol] + fiat.upper() for symbol, fiat in pairs)},
            headers={},
            timeout_ms=self._timeout_ms,
        )
        if any(error.startswith(_UNKNOWN_PAIR) for error in answer.error):
            raise _UnknownPairError
        if answer.error:
            raise PriceUnavailableError(f"{self.name} says: {', '.join(answer.error)[:200]}")
        self._known.update(pairs)
        now = self._now()
        values = {pair: self._middle(answer.result, pair) for pair in pairs}
        return {pair: Price(value=value, observed_at=now) for pair, value in values.items() if value is not None}

    def _middle(self, tickers: Mapping[str, _Ticker], pair: PricePair) -> Decimal | None:
        asset, fiat = self._assets[pair[0]], pair[1].upper()
        # The answer's keys are Kraken's full names, where old assets carry an X and currencies a Z.
        names = (asset + fiat, f"X{asset}Z{fiat}", f"{asset}Z{fiat}", f"X{asset}{fiat}")
        ticker = next((tickers[name] for name in names if name in tickers), None)
        if ticker is None:
            return None
        ask, bid = _first(ticker.a), _first(ticker.b)
        if ask is None or bid is None or not 0 <= ask - bid <= SPREAD_MAX * ask:
            return None
        return (ask + bid) / 2


def _first(fields: list[str]) -> Decimal | None:
    if not fields or not PRICE.fullmatch(fields[0]):
        return None
    value = Decimal(fields[0])
    return value if is_sane(value) else None
