"""The source: one question for all pairs, and what of the answer can be believed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from http import HTTPStatus
from typing import ClassVar

import aiohttp
import msgspec
from msgspec import Struct

from cambist.plugin import Price, PricePair, PriceSource, PriceUnavailableError

ANSWER_BYTES_MAX = 1_000_000
PRICE_MIN, PRICE_MAX = Decimal("1e-15"), Decimal("1e12")


class Told(Struct, frozen=True):
    """One price of the answer: a decimal as text, and when it was so, in seconds since 1970 UTC."""

    symbol: str
    fiat: str
    price: str
    at: int


class FlorinSource(PriceSource):
    """Asks ``/prices?pairs=ETH-usd,BTC-usd``. Remembers nothing: the gateway does."""

    name: ClassVar[str] = "florin"

    def __init__(
        self, session: aiohttp.ClientSession, url: str, *, timeout_s: float, now: Callable[[], datetime]
    ) -> None:
        """Ask over this session, which the caller closes."""
        self._session = session
        self._url = url.rstrip("/") + "/prices"
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._now = now

    async def prices(self, pairs: Collection[PricePair]) -> Mapping[PricePair, Price]:
        """Return what the server has a usable price for; what else it says, nobody asked for."""
        wanted = set(pairs)
        if not wanted:
            return {}
        found: dict[PricePair, Price] = {}
        for told in await self._ask(sorted(wanted)):
            price = self._price(told)
            if (told.symbol, told.fiat) in wanted and price is not None:
                found[told.symbol, told.fiat] = price
        return found

    def _price(self, told: Told) -> Price | None:
        """Return what can be believed: a number that a token can cost, at a time that there was."""
        try:
            value, observed_at = Decimal(told.price), datetime.fromtimestamp(told.at, UTC)
        except (InvalidOperation, ValueError, OverflowError, OSError):
            return None
        if not value.is_finite() or not PRICE_MIN <= value <= PRICE_MAX:
            return None
        # Clocks differ by a little. Nothing was observed later than now.
        return Price(value=value, observed_at=min(observed_at, self._now()))

    async def _ask(self, pairs: Collection[PricePair]) -> list[Told]:
        """Return the answer, bounded in size and time. An error's own text may hold the address, so it is not told."""
        params = {"pairs": ",".join(f"{symbol}-{fiat}" for symbol, fiat in pairs)}
        try:
            async with self._session.get(
                self._url, params=params, timeout=self._timeout, allow_redirects=False
            ) as response:
                if response.status != HTTPStatus.OK:
                    raise PriceUnavailableError(f"{self.name} answers with status {response.status}")
                body = b""
                async for chunk in response.content.iter_any():
                    body += chunk
                    if len(body) > ANSWER_BYTES_MAX:
                        raise PriceUnavailableError(f"{self.name} answers with more than {ANSWER_BYTES_MAX} bytes")
            return msgspec.json.decode(body, type=list[Told])
        except (msgspec.DecodeError, RecursionError) as error:
            raise PriceUnavailableError(f"{self.name} answers with something else than prices") from error
        except TimeoutError as error:
            raise PriceUnavailableError(f"{self.name} did not answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise PriceUnavailableError(f"{self.name} cannot be reached: {type(error).__name__}") from None
