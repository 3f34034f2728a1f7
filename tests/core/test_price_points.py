"""Prices are written down every few minutes, kept finely for a month and by the hour for ever."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from cambist.plugin import Price, PriceSource
from cambist.services.pricing import price_points
from cambist.services.pricing.prices import RateBook


class Market(PriceSource):
    name = "market"

    def __init__(self, clock):
        self.clock = clock
        self.prices_now = {"USDX": "1", "ETH": "2500.123456789012345678"}

    async def prices(self, pairs):
        return {
            pair: Price(value=Decimal(self.prices_now[pair[0]]), observed_at=self.clock.now())
            for pair in pairs
            if pair[0] in self.prices_now
        }


@pytest.fixture
def market(clock):
    return Market(clock)


@pytest.fixture
def rates(market, clock):
    return RateBook([market], clock)


async def stored(db):
    async with db.transaction() as conn:
        rows = await conn.exec_driver_sql("SELECT * FROM price_points ORDER BY observed_at, symbol")
        return list(rows)


async def test_every_known_price_is_written_down_exactly(db, rates, clock):
    assert await price_points.record(db, rates, ["ETH", "NOPE", "USDX"], clock.now()) == 2
    eth, usdx = await stored(db)
    assert (eth.symbol, eth.fiat_currency, eth.value, eth.source) == (
        "ETH", "usd", Decimal("2500.123456789012345678"), "market",
    )  # fmt: skip
    assert (usdx.symbol, usdx.value, usdx.observed_at) == ("USDX", Decimal(1), clock.now())


async def test_the_same_moment_is_written_down_once(db, rates, clock):
    for _ in range(2):
        await price_points.record(db, rates, ["USDX"], clock.now())
    assert len(await stored(db)) == 1


async def test_after_a_month_one_price_an_hour_is_left(db, rates, clock):
    for _ in range(24):
        await price_points.record(db, rates, ["USDX"], clock.now())
        clock.advance(600)
    assert len(await stored(db)) == 24
    clock.advance(30 * 86_400)
    await price_points.record(db, rates, ["USDX"], clock.now())
    left = await stored(db)
    assert len(left) == 5
    assert {point.observed_at.minute for point in left} == {0}


async def test_a_moment_has_the_price_before_it_unless_that_is_too_old(db, rates, market, clock):
    start = clock.now()
    await price_points.record(db, rates, ["USDX"], clock.now())
    clock.advance(600)
    market.prices_now["USDX"] = "1.01"
    await price_points.record(db, rates, ["USDX"], clock.now())
    minutes = [-1, 0, 9, 10, 120, 131]
    moments = [("usdx", start + timedelta(minutes=minute)) for minute in minutes]
    async with db.transaction() as conn:
        found = await price_points.values_at(conn, [*moments, ("ETH", start)])
    assert found == [None, Decimal(1), Decimal(1), Decimal("1.01"), Decimal("1.01"), None, None]
