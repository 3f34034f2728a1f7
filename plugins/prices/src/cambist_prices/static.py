"""Fixed prices from the operator's file, for development, tests, and tokens that no market quotes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from decimal import Decimal

from cambist.plugin import Price, PricePair, PriceSource


class StaticSource(PriceSource):
    """Always knows the same prices, and each is as of now: the operator vouches for them."""

    name = "static"

    def __init__(self, prices: Mapping[str, Mapping[str, str]], now: Callable[[], datetime]) -> None:
        """Take the prices as the file has them, by symbol and currency in any letter case."""
        self._now = now
        self._prices: dict[PricePair, Decimal] = {
            (symbol.upper(), fiat.lower()): Decimal(price)
            for symbol, by_fiat in prices.items()
            for fiat, price in by_fiat.items()
        }

    async def prices(self, pairs: Collection[PricePair]) -> Mapping[PricePair, Price]:
        """Return those of the pairs that the file names."""
        now = self._now()
        return {pair: Price(value=self._prices[pair], observed_at=now) for pair in pairs if pair in self._prices}
