"""Sources that break the contract: none of them costs the others their prices."""

from __future__ import annotations

import asyncio
from datetime import datetime, tzinfo
from decimal import Decimal

import pytest

from cambist.deadlines import LEFT_BEHIND_MAX
from cambist.plugin import Price, PriceUnavailableError
from cambist.services.pricing.prices import NotPricedError, RateBook, RateBookLimits, RateUnavailableError
from cambist.testing.clock import START
from tests.core.test_prices import ShelfSource
from tests.support.stubborn import stay


class NoZone(tzinfo):
    """A time zone that says that it is none."""

    def utcoffset(self, _):
        return None


class BrokenZone(tzinfo):
    def utcoffset(self, _):
        raise LookupError


class SpeechlessError(PriceUnavailableError):
    """What says why by what it has not got."""

    def __str__(self):
        return self.response.text


ODD_ANSWERS = {
    "no mapping": [1, 2],
    "no price": {("ETH", "usd"): Decimal(5)},
    "nothing": {("ETH", "usd"): None},
    "no number": {("ETH", "usd"): Price(value=Decimal("sNaN"), observed_at=START)},
    "no time": {("ETH", "usd"): Price(value=Decimal(5), observed_at=None)},
    "a float as time": {("ETH", "usd"): Price(value=Decimal(5), observed_at=START.timestamp())},
    "no zone": {("ETH", "usd"): Price(value=Decimal(5), observed_at=START.replace(tzinfo=NoZone()))},
    "a zone that fails": {("ETH", "usd"): Price(value=Decimal(5), observed_at=START.replace(tzinfo=BrokenZone()))},
    "a time before all": {
        ("ETH", "usd"): Price(value=Decimal(5), observed_at=datetime.min.replace(tzinfo=START.tzinfo))
    },
}


@pytest.mark.parametrize("answer", ODD_ANSWERS.values(), ids=ODD_ANSWERS)
async def test_an_answer_that_makes_no_sense_costs_the_others_nothing(clock, monkeypatch, answer):
    odd, good = ShelfSource("odd", clock), ShelfSource("good", clock, ETH="2000")

    async def prices(_):
        return answer

    monkeypatch.setattr(odd, "prices", prices)
    assert (await RateBook([odd, good], clock).rate("ETH", "usd")).source == "good"
    with pytest.raises(RateUnavailableError) as refused:
        await RateBook([odd], clock).rate("ETH", "usd")
    assert not isinstance(refused.value, NotPricedError), "it may have meant one"


@pytest.mark.parametrize(
    "error",
    [asyncio.CancelledError(), BaseException("panic"), SpeechlessError()],
    ids=["cancelled", "panic", "speechless"],
)
async def test_a_source_that_ends_with_what_nobody_expects_costs_the_others_nothing(clock, error):
    odd, good = ShelfSource("odd", clock), ShelfSource("good", clock, ETH="2000")
    odd.error = error
    book = RateBook([odd, good], clock)
    assert (await book.rate("ETH", "usd")).source == "good"
    polled = await book.poll_sources(["ETH"], "usd")
    assert [one.source for one, _ in polled.judged["ETH"]] == ["good"]
    assert polled.away == {"odd"}


async def test_a_source_that_catches_its_cancellation_is_late_like_any_other(clock, monkeypatch):
    odd, good, freed = ShelfSource("odd", clock), ShelfSource("good", clock, ETH="2000"), asyncio.Event()

    async def prices(_):
        await stay(freed)
        return {}

    monkeypatch.setattr(odd, "prices", prices)
    book = RateBook([odd, good], clock, limits=RateBookLimits(timeout_ms=10))
    async with asyncio.timeout(5):
        assert (await book.rate("ETH", "usd")).source == "good"
    freed.set()


async def test_a_source_that_takes_pairs_away_as_it_asks_for_them_takes_them_from_nobody_else(clock, monkeypatch):
    odd, good = ShelfSource("odd", clock), ShelfSource("good", clock, ETH="2000", BTC="90000")

    async def prices(pairs):
        while pairs:
            pairs.pop()
        return {}

    monkeypatch.setattr(odd, "prices", prices)
    book = RateBook([odd, good], clock)
    for _ in range(2):
        for symbol in ("ETH", "BTC"):
            assert (await book.rate(symbol, "usd")).source == "good"
        clock.advance(60)
        good.age_s = 0.0
    assert {pair for asked in good.asked for pair in asked} == {("ETH", "usd"), ("BTC", "usd")}


async def test_a_source_that_never_ends_what_it_was_asked_is_asked_so_often_and_no_more(clock, monkeypatch):
    """Else each refresh would leave some of it behind, until the process has no memory any more."""
    odd, good, freed, asked = ShelfSource("odd", clock), ShelfSource("good", clock, ETH="2000"), asyncio.Event(), []

    async def prices(pairs):
        asked.append(pairs)
        await stay(freed)
        return {}

    monkeypatch.setattr(odd, "prices", prices)
    book = RateBook([odd, good], clock, limits=RateBookLimits(timeout_ms=1))
    for _ in range(LEFT_BEHIND_MAX + 3):
        assert (await book.rate("ETH", "usd")).source == "good"
        clock.advance(60)
    assert len(asked) == LEFT_BEHIND_MAX
    freed.set()
    async with asyncio.timeout(5):
        while len(asked) == LEFT_BEHIND_MAX:
            await book.rate("ETH", "usd")
            clock.advance(60)
