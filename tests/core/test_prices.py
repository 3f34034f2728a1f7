"""Rates: which prices are believed, for how long, and how many questions that takes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from cambist.domain.prices import NoRateError, Observation, Rate, RatePolicy, agree_on_rate, median, spread
from cambist.plugin import Price, PricePair, PriceSource, PriceUnavailableError
from cambist.services.errors import TooManyError
from cambist.services.pricing import set_aside
from cambist.services.pricing.prices import NotPricedError, RateBook, RateBookLimits, RateUnavailableError
from cambist.services.pricing.set_aside import SetAside, SetAsideSources
from cambist.services.pricing.source_prices import KEPT_S, ROUNDS_MAX
from cambist.testing.clock import START, ManualClock

POLICY = RatePolicy(max_age_s=300)


class ShelfSource(PriceSource):
    """Tells the prices on its shelf, and remembers what it was asked."""

    def __init__(self, name: str, clock: ManualClock, **prices: str) -> None:
        self.name = name
        self.clock = clock
        self.prices_usd = prices
        self.age_s = 0.0
        self.error: BaseException | None = None
        self.gate: asyncio.Event | None = None
        self.asked: list[set[PricePair]] = []

    async def prices(self, pairs: Collection[PricePair]) -> Mapping[PricePair, Price]:
        self.asked.append(set(pairs))
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        seen = self.clock.now() - timedelta(seconds=self.age_s)
        return {
            (symbol, fiat): Price(value=Decimal(self.prices_usd[symbol]), observed_at=seen)
            for symbol, fiat in pairs
            if symbol in self.prices_usd and fiat == "usd"
        }


def until(clock: ManualClock, seconds: float) -> None:
    """Go on until so many seconds after the start."""
    clock.advance((START + timedelta(seconds=seconds) - clock.now()).total_seconds())


def seen(source: str, value: str, age_s: float = 0) -> Observation:
    return Observation(source=source, value=Decimal(value), observed_at=START - timedelta(seconds=age_s))


def agreed(*observations: Observation, policy: RatePolicy = POLICY, last: Rate | None = None) -> Rate:
    return agree_on_rate(observations, now=START, policy=policy, last=last)


def test_one_source_is_believed_and_named():
    assert agreed(seen("static", "1.05")) == Rate(value=Decimal("1.05"), source="static", observed_at=START)


def test_several_sources_give_their_median_as_old_as_the_oldest():
    rate = agreed(seen("kraken", "101", 5), seen("coingecko", "99", 60), seen("third", "100"))
    assert rate.value == 100
    assert rate.source == "median(coingecko,kraken,third)"
    assert rate.observed_at == START - timedelta(seconds=60)


@pytest.mark.parametrize("age_s, usable", [(0, True), (300, True), (300.001, False), (-60, True), (-60.001, False)])
def test_a_price_too_old_or_from_the_future_is_left_out(age_s, usable):
    if usable:
        assert agreed(seen("a", "1", age_s)).value == 1
    else:
        with pytest.raises(NoRateError, match="fresh") as refused:
            agreed(seen("a", "1", age_s))
        assert refused.value.why == "NONE_FRESH"


def test_a_stale_source_does_not_pull_the_median():
    assert agreed(seen("fresh", "100"), seen("stale", "108", 301)).value == 100


@pytest.mark.parametrize("value", ["0", "-1", "NaN", "sNaN", "Infinity", "1e-19", "1.1e12"])
def test_what_can_be_no_price_is_left_out(value):
    assert agreed(seen("a", "100"), seen("b", value)).source == "a"
    with pytest.raises(NoRateError):
        agreed(seen("b", value))


def test_an_outlier_among_three_is_left_out():
    rate = agreed(seen("a", "100"), seen("b", "101"), seen("wild", "1000"))
    assert (rate.value, rate.source) == (Decimal("100.5"), "median(a,b)")


def test_two_sources_that_disagree_are_both_refused():
    with pytest.raises(NoRateError, match="disagree") as refused:
        agreed(seen("a", "100"), seen("b", "130"))
    assert refused.value.why == "DISAGREE"


def test_fewer_sources_than_asked_for_are_refused():
    policy = RatePolicy(min_sources=2)
    with pytest.raises(NoRateError, match="1 of the 2") as refused:
        agreed(seen("a", "100"), seen("b", "100", 301), policy=policy)
    assert refused.value.why == "TOO_FEW"
    assert agreed(seen("a", "100"), seen("b", "100"), policy=policy).value == 100


@pytest.mark.parametrize("value", ["20.1", "4.9"])
def test_a_jump_needs_a_second_source(value):
    last = Rate(value=Decimal(10), source="a", observed_at=START - timedelta(seconds=30))
    with pytest.raises(NoRateError, match="alone says"):
        agreed(seen("a", value), last=last)
    assert agreed(seen("a", value), seen("b", value), last=last).value == Decimal(value)
    forgotten = Rate(value=Decimal(10), source="a", observed_at=START - timedelta(seconds=3601))
    assert agreed(seen("a", value), last=forgotten).value == Decimal(value)


@pytest.mark.parametrize("value", ["20", "5"])
def test_a_move_up_to_the_limit_is_no_jump(value):
    last = Rate(value=Decimal(10), source="a", observed_at=START)
    assert agreed(seen("a", value), last=last).value == Decimal(value)


prices = st.decimals(min_value="1e-9", max_value="1e9", places=9)


@given(st.lists(prices, min_size=1, max_size=9))
def test_a_median_has_as_many_prices_above_as_below(values):
    middle = median(values)
    assert min(values) <= middle <= max(values)
    assert abs(sum(value > middle for value in values) - sum(value < middle for value in values)) <= values.count(
        middle
    )


@given(prices, prices)
def test_the_median_of_two_is_exactly_between_them(low, high):
    assert 2 * median([low, high]) == low + high


async def test_a_rate_is_kept_for_a_moment(clock):
    source = ShelfSource("a", clock, ETH="2000")
    book = RateBook([source], clock)
    assert (await book.rate("eth", "USD")).value == 2000
    source.prices_usd["ETH"] = "2100"
    until(clock, 14.9)
    assert (await book.rate("ETH", "usd")).value == 2000
    until(clock, 15)
    assert (await book.rate("ETH", "usd")).value == 2100
    assert len(source.asked) == 2


async def test_callers_at_once_ask_once(clock):
    source = ShelfSource("a", clock, ETH="2000")
    source.gate = asyncio.Event()
    book = RateBook([source], clock)
    callers = [asyncio.create_task(book.rate("ETH", "usd")) for _ in range(50)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    source.gate.set()
    assert {rate.value for rate in await asyncio.gather(*callers)} == {Decimal(2000)}
    assert len(source.asked) == 1


async def test_a_caller_who_leaves_does_not_take_the_answer_along(clock):
    source = ShelfSource("a", clock, ETH="2000")
    source.gate = asyncio.Event()
    book = RateBook([source], clock)
    leaver, stayer = (asyncio.create_task(book.rate("ETH", "usd")) for _ in range(2))
    await asyncio.sleep(0.01)
    leaver.cancel()
    await asyncio.sleep(0)
    source.gate.set()
    assert (await stayer).value == 2000
    assert leaver.cancelled()


async def test_pairs_in_use_are_refreshed_together(clock):
    source = ShelfSource("a", clock, ETH="2000", BNB="600", POL="0.5")
    book = RateBook([source], clock)
    for symbol in ("ETH", "BNB", "POL"):
        await book.rate(symbol, "usd")
    until(clock, 100)
    await book.rate("ETH", "usd")
    until(clock, 150)
    await book.rate("ETH", "usd")
    assert source.asked[3] == {("ETH", "usd"), ("BNB", "usd"), ("POL", "usd")}
    assert source.asked[4] == {("ETH", "usd")}


async def test_sources_are_asked_at_the_same_time(clock):
    sources = [ShelfSource(name, clock, ETH="2000") for name in ("a", "b")]
    gate = asyncio.Event()
    for source in sources:
        source.gate = gate
    asking = asyncio.create_task(RateBook(sources, clock).rate("ETH", "usd"))
    await asyncio.sleep(0.01)
    assert [len(source.asked) for source in sources] == [1, 1]
    gate.set()
    assert (await asking).source == "median(a,b)"


@pytest.mark.slow
async def test_a_source_that_hangs_fails_or_is_broken_does_not_matter(clock):
    hanging, failing, broken, good = (ShelfSource(name, clock, ETH="2000") for name in ("h", "f", "b", "good"))
    hanging.gate = asyncio.Event()
    failing.error = PriceUnavailableError("down")
    broken.error = ZeroDivisionError()
    book = RateBook([hanging, failing, broken, good], clock, limits=RateBookLimits(timeout_ms=1_000))
    assert (await book.rate("ETH", "usd")).source == "good"


async def test_a_float_or_a_time_without_zone_is_not_taken(clock):
    class Sloppy(ShelfSource):
        async def prices(self, pairs):  # noqa: ARG002 - always the same
            return {
                ("ETH", "usd"): Price(value=2000.0, observed_at=START),
                ("BNB", "usd"): Price(value=Decimal(600), observed_at=START.replace(tzinfo=None)),
            }

    book = RateBook([Sloppy("a", clock)], clock)
    for symbol in ("ETH", "BNB"):
        with pytest.raises(RateUnavailableError):
            await book.rate(symbol, "usd")


async def test_the_last_rate_outlives_an_outage_but_not_its_own_age(clock):
    source = ShelfSource("a", clock, ETH="2000")
    book = RateBook([source], clock)
    await book.rate("ETH", "usd")
    source.error = PriceUnavailableError("down")
    until(clock, 300)
    assert (await book.rate("ETH", "usd")).value == 2000
    until(clock, 300.001)
    with pytest.raises(RateUnavailableError, match="no current USD price for ETH"):
        await book.rate("ETH", "usd")
    source.error = None
    until(clock, 303)
    assert (await book.rate("ETH", "usd")).observed_at == clock.now()


async def test_a_kept_rate_is_refused_the_moment_it_is_too_old(clock):
    source = ShelfSource("a", clock, ETH="2000")
    source.age_s = 295
    book = RateBook([source], clock, limits=RateBookLimits(ttl_s=60))
    await book.rate("ETH", "usd")
    until(clock, 6)
    with pytest.raises(RateUnavailableError):
        await book.rate("ETH", "usd")


async def test_a_doubted_rate_is_not_used_any_more(clock):
    source = ShelfSource("a", clock, ETH="2000")
    book = RateBook([source], clock)
    await book.rate("ETH", "usd")
    source.prices_usd["ETH"] = "9000"
    until(clock, 20)
    with pytest.raises(RateUnavailableError):
        await book.rate("ETH", "usd")
    source.prices_usd["ETH"] = "2050"
    until(clock, 25)
    assert (await book.rate("ETH", "usd")).value == 2050


async def test_a_pair_is_priced_by_nobody_only_where_every_source_says_so(clock):
    sources = ShelfSource("a", clock, USDX="1"), ShelfSource("b", clock)
    book = RateBook(sources, clock)
    with pytest.raises(NotPricedError):
        await book.rate("USDX", "xdr")
    sources[1].error = PriceUnavailableError("away")
    with pytest.raises(RateUnavailableError) as error:
        await book.rate("USDX", "jpy")
    assert not isinstance(error.value, NotPricedError), "the other one might know it"
    assert (await book.rate("USDX", "usd")).value == 1
    sources[1].error, sources[0].prices_usd = None, {}
    clock.advance(400)
    with pytest.raises(RateUnavailableError) as error:
        await book.rate("USDX", "usd")
    assert not isinstance(error.value, NotPricedError), "it was priced before"


async def test_a_refusal_is_kept_so_that_sources_are_left_alone(clock):
    source = ShelfSource("a", clock)
    book = RateBook([source], clock)
    for _ in range(5):
        with pytest.raises(RateUnavailableError):
            await book.rate("ETH", "usd")
    assert len(source.asked) == 1
    until(clock, 2)
    with pytest.raises(RateUnavailableError):
        await book.rate("ETH", "usd")
    assert len(source.asked) == 2


@pytest.mark.parametrize(
    "symbol, fiat", [("", "usd"), ("E\0H", "usd"), ("ETH", "dollar"), ("ETH", "us1"), ("E" * 33, "usd")]
)
async def test_what_is_no_pair_is_refused_without_asking(clock, symbol, fiat):
    source = ShelfSource("a", clock, ETH="2000")
    with pytest.raises(RateUnavailableError):
        await RateBook([source], clock).rate(symbol, fiat)
    assert source.asked == []


async def test_no_sources_mean_no_rates(clock):
    with pytest.raises(RateUnavailableError):
        await RateBook([], clock).rate("ETH", "usd")


@pytest.fixture
def crowd(clock, db):
    """Give three sources, of which one is wrong by half, and a book of theirs that minds who is set aside."""
    sources = [ShelfSource(name, clock, ETH=price) for name, price in (("a", "2000"), ("b", "2010"), ("wrong", "1000"))]
    return sources, RateBook(sources, clock, set_aside=SetAsideSources(db, clock))


async def put_aside(db, clock, book, *names):
    async with db.transaction() as conn:
        for name in names:
            new = SetAside(source=name, reason="it is wrong", set_aside_by="op_1", set_aside_at=clock.now())
            await set_aside.set_aside(conn, book.names, new)
    clock.advance(1)


async def test_a_source_that_is_far_off_while_two_agree_is_not_used_and_told(crowd):
    _, book = crowd
    with capture_logs() as logs:
        rate = await book.rate("ETH", "usd")
    assert (rate.value, rate.source) == (2005, "median(a,b)")
    assert dict(book.outliers) == {"wrong": 1}
    assert [one["source"] for one in logs if one["event"] == "prices.source_far_off"] == ["wrong"]


async def test_of_two_that_disagree_neither_is_used_until_one_is_set_aside(clock, db):
    sources = [ShelfSource("good", clock, ETH="2000"), ShelfSource("wrong", clock, ETH="500")]
    book = RateBook(sources, clock, set_aside=SetAsideSources(db, clock))
    with pytest.raises(RateUnavailableError):
        await book.rate("ETH", "usd")
    await put_aside(db, clock, book, "wrong")
    assert (await book.rate("ETH", "usd")).source == "good"
    async with db.transaction() as conn:
        await set_aside.take_back(conn, "wrong")
    clock.advance(1)
    with pytest.raises(RateUnavailableError):
        await book.rate("ETH", "usd")


async def test_what_a_source_said_is_forgotten_when_it_is_set_aside(clock, db):
    """A wrong rate is used by nobody any more, and is no measure of the right one, which one source alone tells."""
    wrong, good = ShelfSource("wrong", clock, ETH="500"), ShelfSource("good", clock)
    book = RateBook([wrong, good], clock, set_aside=SetAsideSources(db, clock))
    assert (await book.rate("ETH", "usd")).value == 500
    good.prices_usd["ETH"] = "2000"
    await put_aside(db, clock, book, "wrong")
    assert (await book.rate("ETH", "usd")).value == 2000
    assert len(wrong.asked) == 1


async def test_who_asked_before_a_source_was_set_aside_gets_the_answer_of_the_others(clock, db):
    sources = [ShelfSource("good", clock, ETH="2000"), ShelfSource("wrong", clock, ETH="1900")]
    book = RateBook(sources, clock, set_aside=SetAsideSources(db, clock))
    sources[1].gate = asyncio.Event()
    asking = asyncio.create_task(book.rate("ETH", "usd"))
    async with asyncio.timeout(30):
        while not sources[1].asked:  # noqa: ASYNC110  it is asked by another task
            await asyncio.sleep(0.001)
    await put_aside(db, clock, book, "wrong")
    sources[1].gate.set()
    assert (await asking).value == 2000


async def test_without_any_source_a_price_is_refused_and_not_unknown(crowd, clock, db):
    sources, book = crowd
    await put_aside(db, clock, book, *(source.name for source in sources))
    with pytest.raises(RateUnavailableError) as refused:
        await book.rate("ETH", "usd")
    assert not isinstance(refused.value, NotPricedError)


async def test_a_poll_judges_every_source_also_those_set_aside(crowd, clock, db):
    sources, book = crowd
    sources[0].age_s = 301
    await put_aside(db, clock, book, "b")
    found = await book.poll_sources(["ETH"], "usd")
    assert found.asked_at == clock.now()
    assert {one.source: verdict for one, verdict in found.judged["ETH"]} == {"a": "too_old", "b": None, "wrong": "used"}
    await put_aside(db, clock, book, "wrong")
    again = await book.poll_sources(["ETH"], "usd")
    assert {one.source: verdict for one, verdict in again.judged["ETH"]} == {"a": "too_old", "b": None, "wrong": None}
    assert again.asked_at == found.asked_at, "who is believed is judged anew, without asking anybody"
    assert spread([Decimal(2000), Decimal(2010), Decimal(1000)]) == Decimal("1.01")
    assert spread([Decimal(2000)]) is None


async def test_many_who_look_ask_the_sources_once_in_half_a_minute_for_each_currency(clock):
    source = ShelfSource("a", clock, ETH="2000")
    book = RateBook([source], clock)
    source.gate = asyncio.Event()
    polling = [asyncio.create_task(book.poll_sources(["ETH"], "usd")) for _ in range(10)]
    async with asyncio.timeout(30):
        while not source.asked:  # noqa: ASYNC110  it is asked by another task
            await asyncio.sleep(0.001)
    source.gate.set()
    assert len({id(polled.judged["ETH"]) for polled in await asyncio.gather(*polling)}) == 10, "each judges for itself"
    assert source.asked == [{("ETH", "usd")}]
    clock.advance(KEPT_S - 0.1)
    await book.poll_sources(["ETH"], "usd")
    assert len(source.asked) == 1
    await book.poll_sources(["DAI", "ETH"], "usd")
    assert source.asked[1:] == [{("DAI", "usd"), ("ETH", "usd")}], "a token that was added since is asked for"
    await book.poll_sources(["ETH"], "eur")
    clock.advance(KEPT_S)
    await book.poll_sources(["ETH"], "usd")
    assert len(source.asked) == 4


async def test_sources_are_asked_only_so_often_whatever_the_currencies(clock):
    source = ShelfSource("a", clock, ETH="2000")
    book = RateBook([source], clock)
    currencies = ["usd", "eur", "chf", "gbp", "jpy", "sek"]
    first = [await book.poll_sources(["ETH"], currency) for currency in currencies]
    assert len(source.asked) == len(currencies) == ROUNDS_MAX
    clock.advance(40)
    with pytest.raises(TooManyError) as refused:
        await book.poll_sources(["ETH"], "nok")
    assert (refused.value.code, refused.value.retry_after_s) == ("RATE_LIMITED", 20)
    stale = await book.poll_sources(["ETH"], "usd")
    assert (stale.asked_at, len(source.asked)) == (first[0].asked_at, ROUNDS_MAX)
    clock.advance(20)
    assert (await book.poll_sources(["ETH"], "nok")).asked_at == clock.now()
    assert len(source.asked) == ROUNDS_MAX + 1


async def test_whoever_goes_away_while_the_sources_are_asked_takes_nobody_along(clock):
    source = ShelfSource("a", clock, ETH="2000")
    book = RateBook([source], clock)
    source.gate = asyncio.Event()
    gone, stays = (asyncio.create_task(book.poll_sources(["ETH"], "usd")) for _ in range(2))
    async with asyncio.timeout(30):
        while not source.asked:  # noqa: ASYNC110  it is asked by another task
            await asyncio.sleep(0.001)
    gone.cancel()
    source.gate.set()
    assert [verdict for _, verdict in (await stays).judged["ETH"]] == ["used"]
