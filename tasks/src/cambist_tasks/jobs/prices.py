"""Prices, for statements that say what money was worth at the time, and for deposits to accounts."""

from __future__ import annotations

from cambist.bootstrap import Gateway
from cambist.services.pricing import price_points, watch
from cambist.services.receiving.accounts import snapshots


async def record_prices(gateway: Gateway) -> bool:
    """Write down what every token costs now."""
    symbols = price_points.symbols_of(gateway.registry)
    currencies = gateway.settings.prices.snapshot_currencies
    await price_points.record(gateway.db, gateway.rates, symbols, gateway.clock.now(), currencies)
    return False


async def watch_prices(gateway: Gateway) -> bool:
    """Look whether the sources agree, and whether every coin that can be received has a price."""
    symbols = price_points.symbols_of(gateway.registry, live=True)
    await watch.watch(gateway.db, gateway.rates, symbols, price_points.CURRENCY, gateway.clock.now())
    return False


async def fill_snapshots(gateway: Gateway) -> bool:
    """Fill in what deposits to accounts were worth, where no price was there when they were detected."""
    currencies, after = gateway.settings.prices.snapshot_currencies, 0
    while True:
        async with gateway.db.transaction() as conn:
            last = await snapshots.fill(conn, currencies, gateway.clock.now(), after)
        if last is None:
            return False
        after = last
