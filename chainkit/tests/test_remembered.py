"""A remembered value is read as often as it grows old, and once for all who ask at the same time."""

from __future__ import annotations

import asyncio

import pytest

from cambist.plugin import ChainUnavailableError
from cambist.testing.clock import ManualClock
from cambist_chainkit.remembered import Remembered


class Source:
    """Counts how often it is read, and fails while it is told to."""

    def __init__(self) -> None:
        self.reads = 0
        self.failing = False

    async def read(self) -> int:
        self.reads += 1
        await asyncio.sleep(0)
        if self.failing:
            raise ChainUnavailableError("nothing is known")
        return self.reads


async def test_a_value_is_read_again_once_it_is_old() -> None:
    """Not before, and by the clock that was given."""
    clock, source = ManualClock(), Source()
    remembered = Remembered(source.read, clock.monotonic, seconds=10)
    assert [await remembered.now() for _ in range(3)] == [1, 1, 1]
    clock.advance(9.9)
    assert await remembered.now() == 1
    clock.advance(0.1)
    assert await remembered.now() == 2


async def test_those_who_ask_at_once_share_one_read() -> None:
    """However many they are."""
    source = Source()
    remembered = Remembered(source.read, ManualClock().monotonic, seconds=10)
    assert await asyncio.gather(*(remembered.now() for _ in range(20))) == [1] * 20


async def test_a_failed_read_is_not_remembered() -> None:
    """And what is old is not told in its place."""
    clock, source = ManualClock(), Source()
    remembered = Remembered(source.read, clock.monotonic, seconds=10)
    assert await remembered.now() == 1
    clock.advance(10)
    source.failing = True
    with pytest.raises(ChainUnavailableError):
        await remembered.now()
    source.failing = False
    assert await remembered.now() == 3
