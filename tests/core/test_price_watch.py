"""What is the matter with price sources is noted, whoever looks, and each change of it is told once."""

from __future__ import annotations

from datetime import UTC, timedelta
from decimal import Decimal

import pytest

from cambist.domain.prices import RatePolicy
from cambist.plugin import Price, PriceUnavailableError
from cambist.services.overviews.operators import of_operators
from cambist.services.pricing import price_points, set_aside
from cambist.services.pricing.prices import RateBook, RateUnavailableError
from cambist.services.pricing.set_aside import SetAside, SetAsideSources
from cambist.services.pricing.source_prices import KEPT_S
from cambist.services.pricing.watch import watch

COINS = ["ETH", "USDX"]


class Source:
    """A source whose prices a test sets; with None it gives no answer."""

    def __init__(self, name, clock, **said):
        self.name, self.clock, self.said, self.age_s = name, clock, said, 0

    async def prices(self, pairs):
        if self.said is None:
            raise PriceUnavailableError("it is away")
        at = self.clock.now().astimezone(UTC) - timedelta(seconds=self.age_s)
        return {
            (symbol, fiat): Price(value=Decimal(self.said[symbol]), observed_at=at)
            for symbol, fiat in pairs
            if symbol in self.said
        }


@pytest.fixture
def sources(clock):
    return [Source(name, clock, ETH="2000", USDX="1") for name in ("one", "two", "three")]


async def stand_for(conn, clock, *, minutes):
    """Whether any price has been missing for so long."""
    since = (await conn.exec_driver_sql("SELECT min(since) FROM prices_missing")).scalar_one()
    return since is not None and clock.now() - since >= timedelta(minutes=minutes)


@pytest.fixture
def poll(db, clock, sources):
    """Give what has a worker poll a minute later, and returns what is written and what operators are told."""
    book = RateBook(sources, clock, policy=RatePolicy(min_sources=2), set_aside=SetAsideSources(db, clock))

    async def poll():
        clock.advance(KEPT_S + 30)
        await watch(db, book, COINS, "usd", clock.now())
        async with db.transaction() as conn:
            states = await conn.exec_driver_sql("SELECT source, verdict, symbols FROM price_source_states")
            missing = (await conn.exec_driver_sql("SELECT symbol FROM prices_missing ORDER BY symbol")).scalars().all()
            wrong = {source: (verdict, symbols) for source, verdict, symbols in states if verdict != "used"}
            told = {one.code: one for one in await of_operators(conn, "live", clock.now())}
            stand = await stand_for(conn, clock, minutes=2)
        assert ("PRICE_SOURCES_WRONG" in told) is bool(wrong)
        assert ("PRICES_MISSING" in told) is stand
        return wrong, list(missing)

    poll.book = book
    return poll


async def changes(db):
    async with db.transaction() as conn:
        found = await conn.exec_driver_sql("SELECT kind, object_id, status FROM changes ORDER BY id")
        told = [tuple(row) for row in found if row.kind in {"price", "price_source"}]
        await conn.exec_driver_sql("DELETE FROM changes")
    return told


async def test_where_all_is_well_there_is_nothing_to_tell(poll, db):
    assert await poll() == ({}, [])
    assert await changes(db) == []


async def test_a_source_that_is_far_off_old_or_away_is_told_once_and_again_when_it_is_well(poll, db, sources):
    sources[0].said = {"ETH": "2000", "USDX": "3"}
    assert await poll() == ({"one": ("too_far", ["USDX"])}, [])
    assert await poll() == ({"one": ("too_far", ["USDX"])}, [])
    assert await changes(db) == [("price_source", "one", "too_far")]
    sources[0].said, sources[1].age_s = {"ETH": "2000", "USDX": "1"}, 10_000
    assert await poll() == ({"two": ("too_old", COINS)}, [])
    assert sorted(await changes(db)) == [("price_source", "one", "used"), ("price_source", "two", "too_old")]
    sources[1].age_s, sources[2].said = 0, None
    assert await poll() == ({"three": ("away", [])}, [])
    sources[2].said = {}
    assert await poll() == ({}, []), "it answers, and prices nothing of this"


async def test_it_says_since_when_a_source_is_wrong(poll, db, clock, sources):
    sources[0].said = None
    await poll()
    since = clock.now()
    await poll()
    async with db.autocommit() as conn:
        told = {one.code: one for one in await of_operators(conn, "live", clock.now())}
    assert (told["PRICE_SOURCES_WRONG"].count, told["PRICE_SOURCES_WRONG"].since) == (1, since)


async def test_a_coin_that_loses_its_price_is_told_and_one_that_never_had_any_is_not(poll, db, clock, sources):
    for source in sources:
        source.said = {"USDX": "1"}
    assert await poll() == ({}, []), "nobody ever priced ETH"
    sources[0].said = sources[1].said = {"USDX": "1", "ETH": "2000"}
    assert await poll() == ({}, [])
    await price_points.record(db, poll.book, COINS, clock.now())
    sources[0].said = {"USDX": "1", "ETH": "9"}
    wrong, missing = await poll()
    assert (sorted(wrong), missing) == (["one", "two"], ["ETH"]), "nobody can tell which of two is wrong"
    assert ("price", "ETH", "missing") in await changes(db)
    sources[0].said = sources[1].said = {"USDX": "1"}
    assert await poll() == ({}, ["ETH"]), "it had a price once"
    sources[0].said = sources[1].said = {"USDX": "1", "ETH": "2000"}
    assert await poll() == ({}, [])
    assert ("price", "ETH", "found") in await changes(db)


async def test_a_coin_without_a_price_is_told_once_that_has_stood_for_two_minutes(poll, db, clock, sources):
    await price_points.record(db, poll.book, COINS, clock.now())
    for source in sources:
        source.said = {"USDX": "1"}
    await poll()
    async with db.autocommit() as conn:
        since = (await conn.exec_driver_sql("SELECT since FROM prices_missing")).scalar_one()
        for seconds, told in ((119, []), (120, [("PRICES_MISSING", 1, since)])):
            found = await of_operators(conn, "live", since + timedelta(seconds=seconds))
            assert [(one.code, one.count, one.since) for one in found] == told


async def test_a_rate_that_jumped_and_that_one_source_alone_has_is_told_as_missing(db, clock):
    source = Source("one", clock, ETH="2000", USDX="1")
    book = RateBook([source], clock, set_aside=SetAsideSources(db, clock))
    await price_points.record(db, book, COINS, clock.now())
    source.said["ETH"] = "9000"
    clock.advance(KEPT_S + 30)
    found = await watch(db, book, COINS, "usd", clock.now())
    assert [symbol for symbol, _ in found.missing] == ["ETH"]
    assert "just before" in found.missing[0][1]
    with pytest.raises(RateUnavailableError):
        await book.rate("ETH", "usd")


async def test_one_that_is_set_aside_is_not_judged(poll, db, clock, sources):
    sources[0].said = None
    async with db.transaction() as conn:
        aside = SetAside(source="one", reason="it is away", set_aside_by="op_1", set_aside_at=clock.now())
        await set_aside.set_aside(conn, poll.book.names, aside)
    assert await poll() == ({}, [])


async def test_without_sources_nothing_is_missing(db, clock):
    found = await watch(db, RateBook([], clock), COINS, "usd", clock.now())
    assert (found.sources, found.missing) == ([], [])
