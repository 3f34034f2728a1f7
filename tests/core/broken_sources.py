"""Price sources, each broken in one way, by the test of the kit that catches it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from decimal import Decimal

from cambist.plugin import Price, PriceSource, PriceUnavailableError
from cambist.testing.clock import ManualClock
from cambist.testing.conformance import PriceHarness

KNOWN = {("ETH", "usd"): Decimal(2000), ("ETH", "eur"): Decimal(1900)}
BROKEN: dict[str, Callable[[], PriceHarness]] = {}


class Shelf(PriceSource):
    """A right source, which each broken one changes in one way."""

    name = "shelf"

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.down = False

    async def prices(self, pairs):
        if self.down:
            raise PriceUnavailableError("down")
        return {pair: self.price(KNOWN[pair]) for pair in pairs if pair in KNOWN}

    def price(self, value):
        return Price(value=value, observed_at=self.clock.now())


class ShelfHarness(PriceHarness):
    """Drives a shelf."""

    def __init__(self, kind: type[Shelf] = Shelf) -> None:
        self.clock = ManualClock()
        self.source = kind(self.clock)
        self.known = list(KNOWN)

    def now(self):
        return self.clock.now()

    @asynccontextmanager
    async def outage(self):
        self.source.down = True
        yield
        self.source.down = False


def caught_by(test: str) -> Callable[[type[Shelf]], type[Shelf]]:
    """Register a broken source under the test that must catch it."""

    def register(broken: type[Shelf]) -> type[Shelf]:
        BROKEN[test] = lambda: ShelfHarness(broken)
        return broken

    return register


@caught_by("test_a_source_has_a_name")
class Nameless(Shelf):
    name = "My Shelf"


@caught_by("test_known_pairs_have_a_price")
class FirstOnly(Shelf):
    async def prices(self, pairs):
        return await super().prices(list(pairs)[:1])


@caught_by("test_a_price_is_a_positive_decimal")
class Float(Shelf):
    def price(self, value):
        return super().price(float(value))


@caught_by("test_a_price_tells_its_time")
class Prophet(Shelf):
    def price(self, value):
        return Price(value=value, observed_at=self.clock.now() + timedelta(hours=1))


@caught_by("test_only_what_was_asked_is_answered")
class Talkative(Shelf):
    async def prices(self, pairs):
        return await super().prices([*pairs, *KNOWN] if pairs else [])


@caught_by("test_an_unknown_pair_is_left_out")
class AllOrNothing(Shelf):
    async def prices(self, pairs):
        return await super().prices(pairs) if set(pairs) <= KNOWN.keys() else {}


@caught_by("test_only_unknown_pairs_give_nothing")
class Crashing(Shelf):
    async def prices(self, pairs):
        return {pair: self.price(KNOWN[pair]) for pair in pairs}


@caught_by("test_no_pairs_give_no_prices")
class Generous(Shelf):
    async def prices(self, pairs):
        return await super().prices(pairs or KNOWN)


@caught_by("test_it_can_be_asked_several_times_at_once")
class Muddled(Shelf):
    async def prices(self, pairs):
        self.asked = pairs
        await asyncio.sleep(0)
        return await super().prices(self.asked)


@caught_by("test_an_outage_says_so_and_passes")
class Deaf(Shelf):
    async def prices(self, pairs):
        self.down = False
        return await super().prices(pairs)


@caught_by("test_nobody_else_waits_while_it_is_asked")
class Sleepy(Shelf):
    async def prices(self, pairs):
        time.sleep(0.001)  # noqa: ASYNC251  what it is here for
        return await super().prices(pairs)
