"""Prices, for statements that say what money was worth at the time."""

from __future__ import annotations

from cambist.bootstrap import Gateway
from cambist.services.pricing import price_points


async def record_prices(gateway: Gateway) -> bool:
    """Write down what every token costs now."""
    symbols = price_points.symbols_of(gateway.registry)
    await price_points.record(gateway.db, gateway.rates, symbols, gateway.clock.now())
    return False
