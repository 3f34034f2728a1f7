"""A remembered value is read as often as it grows old, and once for all who ask at the same time."""

from __future__ import annotations

import asyncio

import pytest

from cambist.plugin import ChainUnavailableError
from cambist.testing.clock import ManualClock
from cambist_chainkit.remembered import Remembered, RememberedByKey


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


async def test_each_key_has_its_value_and_those_asked_for_least_are_forgotten() -> None:
    """As many as may be kept."""
    clock = ManualClock()
    reads: list[str] = []

    async def read(key: str) -> str:
        reads.append(key)
        return key.upper()

    remembered = RememberedByKey(read, clock.monotonic, seconds=10, keys_max=2)
    assert [await remembered.now(key) for key in ("a", "b", "a", "c", "a", "b")] == ["A", "B", "A", "C", "A", "B"]
    assert reads == ["a", "b", "c", "b"]
    clock.advance(10)
    assert await remembered.now("a") == "A"
    assert reads[4:] == ["a"]
