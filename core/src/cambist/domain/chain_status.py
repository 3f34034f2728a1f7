"""Whether a chain is being read as it should be: facts in, a word out."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from msgspec import Struct

Status: TypeAlias = Literal["working", "delayed", "down", "paused"]
Overall: TypeAlias = Literal["working", "degraded", "down"]

QUIET_MAX = timedelta(seconds=60)
"""How long nobody may have heard of a chain that is polled every second or so."""
POLLS_MISSED_MAX = 10
"""How many polls may fail in a row, where they are that rare."""
DOWN_FACTOR = 5
"""After so many times that long it is no delay any more."""
BLOCK_AGE_MAX = timedelta(seconds=120)
GAPS_MAX = 3
"""How many times the longest pause between recent blocks may pass without one, where that is longer."""


class ChainReading(Struct, frozen=True, kw_only=True):
    """How far a chain was read, in the last poll that worked; ``polled_at`` is when that was, to within five seconds.

    ``height`` is the last block that is stored, made at ``mined_at``; ``head`` the chain's newest then.
    ``longest_gap`` is the longest time between two blocks among the last hundred, None where there are too few to tell.
    ``books_from`` is the height at which balances were booked as they were, None before they were.
    """

    head: int
    height: int
    polled_at: datetime
    mined_at: datetime | None
    longest_gap: timedelta | None
    finalized: int | None = None
    books_from: int | None = None


def judge(reading: ChainReading | None, poll_interval_ms: int, now: datetime) -> Status:
    """Say how reading a chain goes. A chain that was never read is down.

    A node that answers and stands still is noticed by the age of its newest block: chains that make blocks only when
    there is something in them have long pauses anyway.
    """
    if reading is None:
        return "down"
    quiet = now - reading.polled_at
    quiet_max = max(QUIET_MAX, POLLS_MISSED_MAX * timedelta(milliseconds=poll_interval_ms))
    if quiet > DOWN_FACTOR * quiet_max:
        return "down"
    age_max = max(BLOCK_AGE_MAX, GAPS_MAX * (reading.longest_gap or timedelta()))
    is_old = reading.mined_at is not None and now - reading.mined_at > age_max
    return "delayed" if quiet > quiet_max or is_old else "working"


def overall(chains: Collection[Status], *, impaired: bool) -> Overall:
    """Say how the gateway does: ``impaired`` where it works without a part of it."""
    if chains and all(status in {"down", "paused"} for status in chains):
        return "down"
    return "degraded" if impaired or any(status != "working" for status in chains) else "working"
