"""Shares the ways out among receivers, so that one that hangs delays no other.

Each receiver (scheme, host and port) has a lane, which starts narrow and widens with every quick end of an attempt.
A lane with an attempt that takes long is slow until one ends quickly: the slow lanes divide a share of their own.
"""

from __future__ import annotations

from msgspec import Struct

LANE_START = 8
LANE_SLOW_MIN = 4
IDLE_LANES_MAX = 500


class Limits(Struct, frozen=True, kw_only=True):
    """How many attempts may run at once in one process: quick ones in all, and to one receiver."""

    quick_max: int = 512
    lane_max: int = 128

    @property
    def slow_max(self) -> int:
        """The share of all slow lanes together. A hanging attempt costs a socket and little else."""
        return 2 * self.quick_max

    @property
    def attempts_max(self) -> int:
        """All that can be open at once, a socket each."""
        return self.quick_max + self.slow_max


class Lane(Struct):
    """One receiver's share."""

    limit: int
    in_flight: int = 0
    slow: bool = False


class Room(Struct, frozen=True, kw_only=True):
    """How much more may start now: in all, per receiver that something is known of, and per other receiver."""

    attempts: int
    unknown: int
    by_origin: dict[str, int]

    @property
    def full(self) -> list[str]:
        """Receivers that nothing can be sent to now."""
        return [origin for origin, room in self.by_origin.items() if room <= 0]


class Lanes:
    """All lanes of one process."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lanes: dict[str, Lane] = {}
        self.in_flight = 0  # how many attempts are running
        self._slow_in_flight = 0

    def room(self) -> Room:
        quick = self._limits.quick_max - (self.in_flight - self._slow_in_flight)
        slow = self._limits.slow_max - self._slow_in_flight
        share = self._slow_share()
        rooms = {
            origin: min(share - lane.in_flight, slow) if lane.slow else lane.limit - lane.in_flight
            for origin, lane in self._lanes.items()
        }
        return Room(
            attempts=max(0, min(quick, self._limits.attempts_max - self.in_flight)),
            unknown=min(LANE_START, self._limits.lane_max),
            by_origin=rooms,
        )

    def enter(self, origin: str) -> Lane:
        """Count an attempt that starts."""
        lane = self._lanes.get(origin)
        if lane is None:
            self._forget_idle()
            lane = self._lanes[origin] = Lane(min(LANE_START, self._limits.lane_max))
        lane.in_flight += 1
        self.in_flight += 1
        self._slow_in_flight += lane.slow
        return lane

    def mark_slow(self, lane: Lane) -> None:
        """Count the lane's attempts among the slow ones: one of them takes long."""
        if not lane.slow:
            lane.slow = True
            self._slow_in_flight += lane.in_flight

    def leave(self, lane: Lane, *, quick: bool) -> None:
        """Count an attempt that ended. A quick one widens its lane, and redeems a slow one."""
        if quick:
            lane.limit = min(self._limits.lane_max, lane.limit + 1)
            if lane.slow:
                lane.slow = False
                self._slow_in_flight -= lane.in_flight
        self._slow_in_flight -= lane.slow
        lane.in_flight -= 1
        self.in_flight -= 1

    def _slow_share(self) -> int:
        busy = sum(lane.slow and lane.in_flight > 0 for lane in self._lanes.values())
        return min(self._limits.lane_max, max(LANE_SLOW_MIN, self._limits.slow_max // (busy + 1)))

    def _forget_idle(self) -> None:
        if len(self._lanes) < IDLE_LANES_MAX:
            return
        idle = [origin for origin, lane in self._lanes.items() if not lane.in_flight and not lane.slow]
        idle = idle or [origin for origin, lane in self._lanes.items() if not lane.in_flight]
        for origin in idle[: IDLE_LANES_MAX // 2]:
            del self._lanes[origin]
