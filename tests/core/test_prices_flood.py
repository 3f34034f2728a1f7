"""Merchants who ask for ever more pairs: sources are asked only so often, and what others need is served meanwhile."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from itertools import pairwise

import pytest

from cambist.domain.money import CURRENCIES
from cambist.plugin import PriceUnavailableError
from cambist.services.pricing import price_points, prices
from cambist.services.pricing.prices import (
    BATCH_MAX,
    REFRESHED_MIN,
    NotPricedError,
    RateBook,
    RateBookLimits,
    RateUnavailableError,
)
from tests.core.test_prices import ShelfSource

LIMITS = RateBookLimits()
PAIRS = [(symbol, fiat) for symbol in ("USDT", "ETH", "POL") for fiat in sorted(CURRENCIES)]
UNPRICED = [pair for pair in PAIRS if pair[1] != "usd"]


class TimedSource(ShelfSource):
    """Remembers when it was asked."""

    def __init__(self, name, clock, **shelf):
        super().__init__(name, clock, **shelf)
        self.asked_at = []

    async def prices(self, pairs):
        self.asked_at.append(self.clock.monotonic())
        return await super().prices(pairs)


class Pause:
    """What a book sleeps by: nothing goes on until the test lets it, and then the time has passed."""

    def __init__(self, clock):
        self.clock = clock
        self.is_over = asyncio.Event()
        self.slept = []

    async def __call__(self, seconds):
        self.slept.append(seconds)
        await self.is_over.wait()
        self.is_over.clear()
        self.clock.advance(seconds)


@pytest.fixture
def source(clock):
    return TimedSource("a", clock, USDT="1", ETH="2000", POL="0.5")


@pytest.fixture
def pause(clock):
    return Pause(clock)


@pytest.fixture
def book(source, clock, pause):
    return RateBook([source], clock, sleep=pause)


async def run_what_is_ready():
    for _ in range(20):
        await asyncio.sleep(0)


async def ask(book, pair, asked_by="mer_flood"):
    try:
        return (await book.rate(*pair, asked_by=asked_by)).value
    except RateUnavailableError as error:
        return error


async def use_up(book, source):
    """Ask as often in a row as the sources may be asked, each time about a pair of its own."""
    for pair in UNPRICED[: LIMITS.burst - len(source.asked)]:
        assert isinstance(await ask(book, pair), NotPricedError)
    assert len(source.asked) == LIMITS.burst


async def go_on(pause):
    """Let the time until the next question pass, and that be asked."""
    await run_what_is_ready()
    pause.is_over.set()
    await run_what_is_ready()


async def end(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_after_the_other_is_paced_whatever_is_asked(source, clock):
    async def sleep(seconds):
        clock.advance(seconds)

    book = RateBook([source], clock, sleep=sleep)
    for pair in PAIRS:
        await ask(book, pair)
    assert {pair for asked in source.asked for pair in asked} == set(PAIRS)
    assert source.asked_at[: LIMITS.burst] == [1000.0] * LIMITS.burst
    assert {after - before for before, after in pairwise(source.asked_at[LIMITS.burst - 1 :])} == {LIMITS.gap_s}


async def test_all_at_once_are_few_questions(book, source, pause):
    answers = await asyncio.gather(*(ask(book, pair) for pair in PAIRS))
    assert answers.count(1) == answers.count(2000) == answers.count(Decimal("0.5")) == 1
    assert len(source.asked) == -(-len(PAIRS) // BATCH_MAX) <= LIMITS.burst
    assert pause.slept == []


async def test_an_idle_gateway_asks_at_once(book, clock, source, pause):
    for number, pair in enumerate(PAIRS[:30], start=1):
        clock.advance(LIMITS.gap_s)
        await ask(book, pair)
        assert len(source.asked) == number
    assert pause.slept == []


async def test_an_unpriced_pair_asked_for_again_and_again_is_answered_and_paced(book, clock, source, pause):
    pause.is_over.set()
    for _ in range(600):
        for pair in UNPRICED[:4]:
            assert isinstance(await ask(book, pair), NotPricedError)
        clock.advance(0.5)
        pause.is_over.set()
        await run_what_is_ready()
    took_s = clock.monotonic() - 1000.0
    assert LIMITS.burst < len(source.asked) <= LIMITS.burst + took_s / LIMITS.gap_s + 1


async def test_a_rate_in_use_is_served_at_once_during_a_flood_and_is_in_the_next_question(clock, source, pause):
    book = RateBook([source], clock, limits=RateBookLimits(ttl_s=1), sleep=pause)
    assert await ask(book, ("ETH", "usd"), "mer_honest") == 2000
    await use_up(book, source)
    flood = [asyncio.create_task(ask(book, pair)) for pair in UNPRICED[LIMITS.burst :]]
    clock.advance(LIMITS.gap_s - 1)
    source.prices_usd["ETH"] = "2100"
    assert [await ask(book, ("ETH", "usd"), "mer_honest") for _ in range(5)] == [2000] * 5
    assert len(source.asked) == LIMITS.burst
    await go_on(pause)
    assert ("ETH", "usd") in source.asked[-1]
    assert await ask(book, ("ETH", "usd"), "mer_honest") == 2100
    assert len(source.asked) == LIMITS.burst + 1
    await end(flood)


@pytest.mark.parametrize("is_flooded_too", [False, True], ids=["alone", "wanted by the flood as well"])
async def test_a_new_pair_of_another_merchant_is_in_the_next_question(book, source, pause, is_flooded_too):
    await use_up(book, source)
    pairs = UNPRICED[LIMITS.burst :] + [("ETH", "usd")] * is_flooded_too
    flood = [asyncio.create_task(ask(book, pair)) for pair in pairs]
    await run_what_is_ready()
    honest = asyncio.create_task(ask(book, ("ETH", "usd"), "mer_honest"))
    await run_what_is_ready()
    assert len(source.asked) == LIMITS.burst
    await go_on(pause)
    assert await honest == 2000
    assert len(source.asked) == LIMITS.burst + 1
    assert pause.slept[0] <= LIMITS.gap_s
    await end(flood)


async def test_a_new_pair_waits_for_one_more_question_where_very_many_merchants_want_others(book, source, pause):
    await use_up(book, source)
    pairs, flood = UNPRICED[LIMITS.burst :], []
    for number in range(BATCH_MAX + 10):
        moved = pairs[number * 5 :] + pairs[: number * 5]
        flood += [asyncio.create_task(ask(book, pair, f"mer_{number}")) for pair in moved[:100]]
    honest = asyncio.create_task(ask(book, ("ETH", "usd"), "mer_honest"))
    await go_on(pause)
    assert not honest.done()
    await go_on(pause)
    assert await honest == 2000
    await end(flood)


async def test_new_pairs_do_not_keep_rates_in_use_waiting(clock, pause):
    symbols = [f"S{number}" for number in range(BATCH_MAX)]
    source = TimedSource("a", clock, **dict.fromkeys(symbols, "1"))
    book = RateBook([source], clock, limits=RateBookLimits(ttl_s=1), sleep=pause)
    await asyncio.gather(*(book.rate(symbol, "usd") for symbol in symbols))
    for pair in UNPRICED[: LIMITS.burst - 1]:
        await ask(book, pair)
    clock.advance(1)
    flood = [asyncio.create_task(ask(book, pair)) for pair in UNPRICED[LIMITS.burst : 300]]
    for _ in range(2):
        await go_on(pause)
    refreshed = [{pair for pair in asked if pair[0] in symbols} for asked in source.asked[-2:]]
    assert [len(pairs) for pairs in refreshed] == [REFRESHED_MIN, REFRESHED_MIN]
    assert refreshed[0] | refreshed[1] == {(symbol, "usd") for symbol in symbols}, "the stalest first"
    assert all(len(asked) == BATCH_MAX for asked in source.asked[-2:])
    await end(flood)


async def test_a_rate_too_old_to_be_used_is_waited_for_and_not_served(book, clock, source, pause):
    assert await ask(book, ("ETH", "usd")) == 2000
    clock.advance(LIMITS.warm_s + 1)
    source.asked.clear()
    await use_up(book, source)
    source.prices_usd["ETH"] = "2100"
    asking = asyncio.create_task(ask(book, ("ETH", "usd")))
    await run_what_is_ready()
    assert not asking.done()
    await go_on(pause)
    assert await asking == 2100


async def test_nobody_waits_for_a_turn_without_end(book, source, monkeypatch):
    await use_up(book, source)
    monkeypatch.setattr(prices, "WAIT_S_MAX", -LIMITS.timeout_ms / 1000)
    assert isinstance(await ask(book, ("ETH", "usd")), RateUnavailableError)
    assert len(source.asked) == LIMITS.burst


async def test_prices_are_written_down_with_one_question(db, book, source, clock):
    assert await price_points.record(db, book, ["ETH", "POL", "USDT"], clock.now(), ["eur", "gbp"]) == 3
    assert [len(asked) for asked in source.asked] == [9]


async def test_a_pair_whose_question_failed_is_in_the_next_one_however_many_new_ones_there_are(
    book, clock, source, pause
):
    source.error = PriceUnavailableError("it is busy")
    assert isinstance(await ask(book, ("ETH", "usd"), "mer_honest"), RateUnavailableError)
    source.error = None
    await use_up(book, source)
    flood = [asyncio.create_task(ask(book, pair)) for pair in UNPRICED[LIMITS.burst :]]
    clock.advance(LIMITS.retry_s)
    assert isinstance(await ask(book, ("ETH", "usd"), "mer_honest"), RateUnavailableError)
    await go_on(pause)
    assert await ask(book, ("ETH", "usd"), "mer_honest") == 2000
    assert len(source.asked) == LIMITS.burst + 1
    await end(flood)
