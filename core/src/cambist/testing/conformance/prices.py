"""What every price source promises."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from cambist.plugin import PricePair, PriceSource, PriceUnavailableError
from cambist.testing.blocking import blocking_noticed
from cambist.testing.guard import Conformance

UNKNOWN: PricePair = ("NOSUCHTOKEN", "usd")


class PriceHarness(ABC):
    """What a price source's author supplies: the source, and a service behind it that the tests control.

    ``known`` are at least two pairs that the service answers for. ``now`` is the time as the source sees it.
    """

    source: PriceSource
    known: Sequence[PricePair]

    @abstractmethod
    def now(self) -> datetime:
        """Return the time that the source was lent."""

    def outage(self) -> AbstractAsyncContextManager[None] | None:
        """Make the service unreachable until the context ends; None where nothing can be out of reach."""
        return None


class PriceSourceConformance(Conformance):
    """Subclass it, and give the fixture ``harness``, which yields a PriceHarness."""

    @pytest.fixture
    async def harness(self) -> PriceHarness:
        """Return the source under the kit's control."""
        raise NotImplementedError

    async def test_a_source_has_a_name(self, harness: PriceHarness) -> None:
        """It is shown to merchants."""
        assert re.fullmatch(r"[a-z][a-z0-9_.-]{0,31}", harness.source.name)

    async def test_known_pairs_have_a_price(self, harness: PriceHarness) -> None:
        """All of them, asked together."""
        assert len(harness.known) >= 2
        prices = await harness.source.prices(harness.known)
        assert set(prices) == set(harness.known)

    async def test_a_price_is_a_positive_decimal(self, harness: PriceHarness) -> None:
        """Never a float, zero, negative or not a number."""
        for price in (await harness.source.prices(harness.known)).values():
            assert type(price.value) is Decimal
            assert price.value.is_finite()
            assert price.value > 0

    async def test_a_price_tells_its_time(self, harness: PriceHarness) -> None:
        """With a time zone, and not from the future."""
        for price in (await harness.source.prices(harness.known)).values():
            assert price.observed_at.tzinfo is not None
            assert price.observed_at <= harness.now() + timedelta(seconds=1)

    async def test_only_what_was_asked_is_answered(self, harness: PriceHarness) -> None:
        """One pair alone, whatever else the source knows."""
        for pair in harness.known:
            assert set(await harness.source.prices([pair])) == {pair}

    async def test_an_unknown_pair_is_left_out(self, harness: PriceHarness) -> None:
        """And costs the known ones nothing."""
        prices = await harness.source.prices([*harness.known, UNKNOWN])
        assert set(prices) == set(harness.known)

    async def test_only_unknown_pairs_give_nothing(self, harness: PriceHarness) -> None:
        """Nothing known is either an empty answer or PriceUnavailableError."""
        try:
            prices = await harness.source.prices([UNKNOWN])
        except PriceUnavailableError:
            return
        assert prices == {}

    async def test_no_pairs_give_no_prices(self, harness: PriceHarness) -> None:
        """Asking for nothing is no error."""
        assert await harness.source.prices([]) == {}

    async def test_it_can_be_asked_several_times_at_once(self, harness: PriceHarness) -> None:
        """Answers do not get mixed up."""
        asked = [[pair] for pair in harness.known] * 3
        answers = await asyncio.gather(*(harness.source.prices(pairs) for pairs in asked))
        assert [set(answer) for answer in answers] == [set(pairs) for pairs in asked]

    async def test_nobody_else_waits_while_it_is_asked(self, harness: PriceHarness) -> None:
        """Every merchant and webhook of a process shares its event loop: whoever blocks it stops them all."""
        with blocking_noticed() as blocking:
            await harness.source.prices(harness.known)
        assert blocking == []

    async def test_an_outage_says_so_and_passes(self, harness: PriceHarness) -> None:
        """PriceUnavailableError while nobody answers, and prices again afterwards."""
        outage = harness.outage()
        if outage is not None:
            async with outage:
                with pytest.raises(PriceUnavailableError):
                    await harness.source.prices(harness.known)
        assert set(await harness.source.prices(harness.known)) == set(harness.known)
