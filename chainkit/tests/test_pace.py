"""No more requests a second than are allowed."""

from __future__ import annotations

import pytest

from cambist.plugin import RateLimitedError
from cambist.testing.clock import ManualClock
from cambist_chainkit.pace import WAIT_MAX_S, Pace


async def sent(clock: ManualClock, pace: Pace, requests: int) -> list[float]:
    """Return when each request was sent, one after the other."""
    times = []
    for _ in range(requests):
        await pace.wait("node")
        times.append(clock.monotonic())
    return times


@pytest.fixture
def pace(clock: ManualClock) -> Pace:
    async def sleep(seconds: float) -> None:
        clock.advance(seconds)

    return Pace(10, clock.monotonic, sleep)


@pytest.mark.parametrize("pause", [0.0, 0.05, 0.3, 3.0])
async def test_no_second_holds_more_requests_than_are_allowed(clock: ManualClock, pace: Pace, pause: float) -> None:
    """A second's worth at once where nothing was asked for a while, and then none before that second is over."""
    times = await sent(clock, pace, 15)
    clock.advance(pause)
    times += await sent(clock, pace, 30)
    for start in times:
        assert sum(start <= time < start + 0.999 for time in times) <= 10
    assert times[9] == pytest.approx(times[0])
    assert times[-1] - times[0] == pytest.approx(6 if pause > 1 else 4)


async def test_what_is_not_used_up_is_not_saved_for_ever(clock: ManualClock, pace: Pace) -> None:
    """After an hour's rest, a second's worth."""
    clock.advance(3600)
    times = await sent(clock, pace, 12)
    assert [time - times[0] for time in times[9:]] == pytest.approx([0.0, 1.0, 1.0], abs=1e-6)


async def test_where_too_many_wait_already_nobody_waits_for_long(clock: ManualClock) -> None:
    """Better an error that says so than an answer that nobody waits for any more."""

    async def sleep(seconds: float) -> None:
        """Wait beside all others, and not one after the other."""

    pace = Pace(1, clock.monotonic, sleep)
    with pytest.raises(RateLimitedError, match="node has more asked of it than it allows") as caught:
        await sent(clock, pace, 100)
    assert caught.value.retry_after == WAIT_MAX_S / 2
