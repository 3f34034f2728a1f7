"""Budgets of requests to providers that all processes share, through Redis; without it, each counts for itself."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from .plugin.budgets import (
    BACKOFF_MAX_S,
    PAUSE_FIRST_S,
    PAUSE_MAX_S,
    QUIET_S,
    WAIT_MAX_S,
    OwnBudget,
    OwnBudgets,
    RequestBudget,
    RequestBudgets,
    out_of_turn,
    paused,
)
from .ports import Clock

PREFIX: Final = "cambist:budget:"
REDIS_TIMEOUT_S: Final = 0.2
AWAY_S: Final = 1.0
"""How long Redis is left alone after it failed."""

LINE_MAX_S: Final = 60.0
"""No line of requests is as long. A moment further away means that Redis's clock was set back."""

KEPT_MS: Final = 2 * int((PAUSE_MAX_S + LINE_MAX_S) * 1000)

log = structlog.get_logger(__name__)

# Moments are microseconds of the server's clock, so that processes' clocks need not agree. Numbers are written by
# '%.0f', for Lua writes large ones with 14 digits only.
_STATE: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local told = redis.call('HMGET', KEYS[1], 'free_at', 'paused_until', 'backoff')
local free_at, paused_until, backoff = tonumber(told[1] or 0), tonumber(told[2] or 0), tonumber(told[3] or 0)
if paused_until - now > tonumber(ARGV[1]) then paused_until = 0 end
local function keep(name, value)
  redis.call('HSET', KEYS[1], name, string.format('%.0f', value))
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
"""

# Returns how long a pause still lasts, how long to wait for the turn, and whether it was taken: not where that is long.
_TAKE: Final = (
    _STATE
    + """
local interval, ahead, wait_max = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
if paused_until > now then return {math.ceil(paused_until - now), 0, 0} end
if free_at < now or free_at - ahead - now > tonumber(ARGV[6]) then free_at = now end
local wait = math.max(0, math.ceil(free_at - ahead - now))
if wait > wait_max then return {0, wait, 0} end
keep('free_at', free_at + interval)
return {0, wait, 1}
"""
)

_PAUSED: Final = _STATE + "return math.max(0, math.ceil(paused_until - now))"

# As OwnBudget.pause does it; returns how long the pause still lasts.
_PAUSE: Final = (
    _STATE
    + """
local asked, first, most, quiet = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
if paused_until <= now then
  if now - paused_until >= math.max(backoff, quiet) then backoff = first else backoff = math.min(2 * backoff, most) end
  keep('backoff', backoff)
  asked = math.max(asked, backoff)
end
paused_until = math.max(paused_until, now + asked)
keep('paused_until', paused_until)
return math.ceil(paused_until - now)
"""
)


class SharedBudgets(RequestBudgets):
    """The budgets of all processes that use one Redis. While it is away or slow, this process counts for itself."""

    def __init__(self, redis: Redis, clock: Clock, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Use this client, which stays its owner's to close."""
        self._redis = redis
        self._clock = clock
        self._own = OwnBudgets(clock.monotonic, sleep)
        self._sleep = sleep
        self._away_until = -math.inf

    def of(self, account: str, *, per_second: float, burst: int = 1) -> RequestBudget:
        own = self._own.of(account, per_second=per_second, burst=burst)
        return _SharedBudget(self, account, own, per_second, burst)

    async def sleep(self, seconds: float) -> None:
        await self._sleep(seconds)

    async def run(self, script: str, account: str, *seconds: float) -> list[float] | None:
        """Return what a script says of an account, in seconds; None while Redis is away."""
        if self._clock.monotonic() < self._away_until:
            return None
        given = [str(_us(PAUSE_MAX_S)), str(KEPT_MS), *(str(_us(one)) for one in seconds)]
        try:
            async with asyncio.timeout(REDIS_TIMEOUT_S):
                told = await self._redis.eval(script, 1, PREFIX + account, *given)  # type: ignore[misc]  # typed for both clients
            return [int(one) / 1_000_000 for one in (told if isinstance(told, list) else [told])]
        except (RedisError, OSError, TimeoutError) as error:
            self._away_until = self._clock.monotonic() + AWAY_S
            log.warning("request_budgets_local", error=repr(error))
            return None


class _SharedBudget(RequestBudget):
    """One account's requests. A pause is noted here, too: it holds although Redis forgets it or goes away."""

    def __init__(self, shared: SharedBudgets, account: str, own: OwnBudget, per_second: float, burst: int) -> None:
        self._shared = shared
        self._account = account
        self._own = own
        self._interval_s = 1 / per_second
        self._ahead_s = (burst - 1) * self._interval_s

    async def take(self, wait_max_s: float = WAIT_MAX_S) -> None:
        self._own.check_paused()
        wait_max_s = min(wait_max_s, LINE_MAX_S)
        told = await self._shared.run(
            _TAKE, self._account, self._interval_s, self._ahead_s, wait_max_s, LINE_MAX_S + self._interval_s
        )
        if told is None:
            await self._own.take(wait_max_s)
            return
        pause, wait, taken = told
        if pause > 0:
            raise paused(self._account, pause)
        if not taken:
            raise out_of_turn(self._account, wait)
        if wait > 0:
            await self._shared.sleep(wait)
            await self._check_paused()

    async def pause(self, retry_after: float = 0.0) -> float:
        own = await self._own.pause(retry_after)
        asked = min(retry_after, PAUSE_MAX_S)
        told = await self._shared.run(_PAUSE, self._account, asked, PAUSE_FIRST_S, BACKOFF_MAX_S, QUIET_S)
        return own if told is None else max(own, told[0])

    async def _check_paused(self) -> None:
        """Raise ProviderUnavailableError where somebody paused the account while this request waited."""
        self._own.check_paused()
        told = await self._shared.run(_PAUSED, self._account)
        if told is not None and told[0] > 0:
            raise paused(self._account, told[0])


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)
