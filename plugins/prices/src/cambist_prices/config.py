"""The operator's table ``[plugins.prices]``: each source is there exactly when its table is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

from msgspec import Struct, field

PRICE = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?", re.ASCII)
_FIAT = re.compile(r"[A-Za-z]{3}", re.ASCII)
_SYMBOL = re.compile(r"[!-~]{1,32}", re.ASCII)
_BASE_URL = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?", re.ASCII)

TIMEOUT_MS_MAX = 60_000
PRICE_MIN = Decimal("1e-15")
PRICE_MAX = Decimal("1e12")

COINGECKO_IDS = {
    "BNB": "binancecoin",
    "BTC": "bitcoin",
    "DAI": "dai",
    "ETH": "ethereum",
    "POL": "polygon-ecosystem-token",
    "TRX": "tron",
    "USDC": "usd-coin",
    "USDT": "tether",
}
KRAKEN_ASSETS = {
    "BNB": "BNB",
    "BTC": "XBT",  # Kraken writes bitcoin as ISO 4217 would
    "DAI": "DAI",
    "ETH": "ETH",
    "POL": "POL",
    "TRX": "TRX",
    "USDC": "USDC",
    "USDT": "USDT",
}


class CoinGeckoConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[plugins.prices.coingecko]``. ``ids`` adds to the built-in ids, by symbol; an empty id takes one away."""

    base_url: str = ""
    api_key: str | None = None
    plan: Literal["demo", "pro"] = "demo"
    ids: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int = 4000

    def __post_init__(self) -> None:
        _check_http(self.base_url, self.timeout_ms)
        if self.plan == "pro" and not self.api_key:
            raise ValueError("plan 'pro' needs an api_key")


class KrakenConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[plugins.prices.kraken]``. ``assets`` adds to the built-in codes, by symbol; an empty code takes one away."""

    base_url: str = ""
    assets: Mapping[str, str] = field(default_factory=dict)
    fiats: tuple[str, ...] = ("usd", "eur", "gbp", "cad", "aud", "jpy", "chf")
    timeout_ms: int = 4000

    def __post_init__(self) -> None:
        _check_http(self.base_url, self.timeout_ms)


class PricesConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[plugins.prices]``: at least one source."""

    static: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    coingecko: CoinGeckoConfig | None = None
    kraken: KrakenConfig | None = None

    def __post_init__(self) -> None:
        """Refuse a table without a source, and prices that are none."""
        if not self.static and self.coingecko is None and self.kraken is None:
            raise ValueError("no source is configured: add a table static, coingecko or kraken")
        for symbol, prices in self.static.items():
            if not _SYMBOL.fullmatch(symbol):
                raise ValueError(f"static: {symbol!r} is no token symbol")
            for fiat, price in prices.items():
                if not _FIAT.fullmatch(fiat):
                    raise ValueError(f"static.{symbol}: {fiat!r} is no currency code of three letters")
                if not PRICE.fullmatch(price) or Decimal(price) == 0:
                    raise ValueError(f'static.{symbol}.{fiat}: a price is written like "0.92", not {price!r}')


def _check_http(base_url: str, timeout_ms: int) -> None:
    if base_url and not _BASE_URL.fullmatch(base_url):
        raise ValueError("base_url is an http or https address without a query")
    if not 1 <= timeout_ms <= TIMEOUT_MS_MAX:
        raise ValueError(f"timeout_ms is between 1 and {TIMEOUT_MS_MAX}")


def is_sane(value: Decimal) -> bool:
    """Whether one token may cost this in any currency: finite, above zero, and not absurd."""
    return value.is_finite() and PRICE_MIN <= value <= PRICE_MAX
