"""How many requests go, and when none goes for a while."""

from __future__ import annotations

import asyncio

import pytest

from cambist.plugin import ProviderUnavailableError
from cambist_swap_1inch.budget import BACKOFF_MAX_S, TokenBucket


class Sleeper:
    """Lets the clock run for as long as somebody sleeps."""

    def __init__(self, clock):
        self.clock = clock
        self.slept = []

    async def __call__(self, seconds):
        self.slept.append(seconds)
        self.clock.advance(seconds)


@pytest.fixture
def sleeper(clock):
    return Sleeper(clock)


async def test_no_second_sees_more_requests_than_it_may(clock, sleeper):
    bucket = TokenBucket(4, clock.monotonic, sleeper)
    sent = []
    for _ in range(12):
        await bucket.take()
        sent.append(clock.monotonic())
    assert all(later - earlier >= 1 for earlier, later in zip(sent, sent[4:], strict=False))
    clock.advance(60)
    await bucket.take()
    assert clock.monotonic() - sent[-1] == 60  # nobody waits after a rest
    await bucket.take()
    assert sleeper.slept[-1] == 0.25  # but a rest saves nothing up


async def test_those_who_ask_at_once_queue_and_who_would_wait_too_long_is_told_so_at_once(clock):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)
        await asyncio.sleep(0)

    bucket = TokenBucket(1, clock.monotonic, sleep)
    answers = await asyncio.gather(*(bucket.take() for _ in range(10)), return_exceptions=True)
    assert waits == [1, 2, 3, 4, 5]
    refused = [one for one in answers if one is not None]
    assert len(refused) == 4
    assert all(isinstance(one, ProviderUnavailableError) and one.retry_after == 6 for one in refused)


async def test_a_limited_key_rests_for_twice_as_long_each_time_up_to_a_ceiling(clock, sleeper):
    bucket = TokenBucket(10, clock.monotonic, sleeper)
    waits = [bucket.limited(0) for _ in range(9)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    with pytest.raises(ProviderUnavailableError, match="fewer") as refused:
        await bucket.take()
    assert refused.value.retry_after == BACKOFF_MAX_S
    clock.advance(BACKOFF_MAX_S)
    await bucket.take()
    bucket.answered()
    assert bucket.limited(0) == 1


async def test_what_the_server_says_is_waited_for_at_least(clock, sleeper):
    bucket = TokenBucket(10, clock.monotonic, sleeper)
    assert bucket.limited(17) == 17
    clock.advance(16)
    assert bucket.limited(0.5) == 2
    clock.advance(1)
    with pytest.raises(ProviderUnavailableError):
        await bucket.take()


async def test_who_waits_while_the_server_wants_fewer_is_not_sent(clock):
    async def sleep(seconds):
        clock.advance(seconds)
        bucket.limited(30)

    bucket = TokenBucket(1, clock.monotonic, sleep)
    await bucket.take()
    with pytest.raises(ProviderUnavailableError):
        await bucket.take()
