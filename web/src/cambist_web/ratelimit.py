"""How often somebody may ask: token buckets, shared through Redis where there is one.

A worker fetches tokens in small batches and spends them itself, so that most requests ask nobody. Without
Redis, or while it is gone, each worker keeps buckets of its own: a limit is never a reason to fail a request.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict

import structlog
from msgspec import Struct, field
from redis.asyncio import Redis
from redis.exceptions import RedisError

from cambist.ports import Clock
from cambist.services.errors import TooManyError

PREFIX = "cambist:rate:"
REDIS_TIMEOUT_S = 0.2
PAUSE_S = 1.0
BUCKETS_MAX = 50_000
BATCH_SHARE = 50
"""A batch is one part in so many of the bucket: what a worker that restarts or idles can waste."""
BATCH_LIFETIME_S = 2.0

log = structlog.get_logger(__name__)

# Time is the server's, so that workers' clocks need not agree. Returns what was granted, and milliseconds to wait.
_TAKE = """
local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
local size, wanted, period_ms = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(state[1] or size)
tokens = math.min(size, tokens + (now_ms - tonumber(state[2] or now_ms)) * size / period_ms)
local granted = math.min(wanted, math.floor(tokens))
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens - granted), 'at', tostring(now_ms))
redis.call('PEXPIRE', KEYS[1], period_ms + 1000)
if granted > 0 then return {granted, 0} end
return {0, math.ceil((1 - tokens) * period_ms / size)}
"""

_GIVE_BACK = """
local tokens = redis.call('HGET', KEYS[1], 'tokens')
if tokens then redis.call('HSET', KEYS[1], 'tokens', tostring(math.min(tonumber(ARGV[1]), tokens + 1))) end
"""


class RateLimit(Struct, frozen=True):
    """So many requests in ``period_s``, which may come all at once. ``name`` keeps its buckets apart from others'."""

    name: str
    most: int
    period_s: int = 60

    @property
    def batch(self) -> int:
        return max(1, self.most // BATCH_SHARE)


class _Bucket(Struct):
    tokens: float
    at: float
    refused_until: float = -math.inf
    refilled_at: float = -math.inf
    fetching: asyncio.Lock = field(default_factory=asyncio.Lock)


class RateLimiter:
    """Counts for one worker. Buckets that were not used for longest are forgotten first, which is generous."""

    def __init__(self, redis: Redis | None, clock: Clock) -> None:
        """Use this client, which stays its owner's to close."""
        self._redis = redis
        self._clock = clock
        self._batches: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()
        self._own: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()
        self._paused_until = -math.inf

    async def take(self, limit: RateLimit, who: str) -> None:
        """Count one request. Raises TooManyError, which says when to come again."""
        if limit.most == 0:
            return
        batch = _bucket(self._batches, (limit.name, who), _Bucket(0, -math.inf))
        if self._spend(batch):
            return
        # One request fetches for all that wait: otherwise each would fetch, and waste, a batch of its own.
        async with batch.fetching:
            if self._spend(batch):
                return
            now = self._clock.monotonic()
            granted, wait_s = await self._fetch(limit, who, now)
            if granted == 0:
                batch.refused_until, batch.refilled_at = now + min(wait_s, 1.0), now + wait_s
                raise _too_many(wait_s)
            batch.tokens, batch.at = granted - 1, now

    async def give_back(self, limit: RateLimit, who: str) -> None:
        """Undo one ``take``: what was counted before it was done turned out to be nothing that counts."""
        if limit.most == 0:
            return
        batch = self._batches.get((limit.name, who))
        if batch is not None:
            batch.refused_until = -math.inf
        own = self._own.get((limit.name, who))
        if own is not None:
            own.tokens = min(limit.most, own.tokens + 1)
        if self._redis is None or self._clock.monotonic() < self._paused_until:
            return
        try:
            async with asyncio.timeout(REDIS_TIMEOUT_S):
                await self._redis.eval(  # type: ignore[misc]  # typed for both clients
                    _GIVE_BACK, 1, f"{PREFIX}{limit.name}:{who}", str(limit.most)
                )
        except (RedisError, OSError, TimeoutError) as error:
            self._pause(error)

    def _spend(self, batch: _Bucket) -> bool:
        now = self._clock.monotonic()
        if now < batch.refused_until:
            raise _too_many(batch.refilled_at - now)
        if batch.tokens < 1 or now - batch.at >= BATCH_LIFETIME_S:
            return False
        batch.tokens -= 1
        return True

    async def _fetch(self, limit: RateLimit, who: str, now: float) -> tuple[int, float]:
        if self._redis is not None and now >= self._paused_until:
            try:
                async with asyncio.timeout(REDIS_TIMEOUT_S):
                    granted, wait_ms = await self._redis.eval(  # type: ignore[misc]  # typed for both clients
                        *(_TAKE, 1, f"{PREFIX}{limit.name}:{who}"),
                        *(str(limit.most), str(limit.batch), str(limit.period_s * 1000)),
                    )
                return int(granted), int(wait_ms) / 1000
            except (RedisError, OSError, TimeoutError) as error:
                self._pause(error)
        return self._fetch_own(limit, who, now)

    def _pause(self, error: Exception) -> None:
        self._paused_until = self._clock.monotonic() + PAUSE_S
        log.warning("rate_limits_local", error=repr(error))

    def _fetch_own(self, limit: RateLimit, who: str, now: float) -> tuple[int, float]:
        per_s = limit.most / limit.period_s
        bucket = _bucket(self._own, (limit.name, who), _Bucket(limit.most, now))
        bucket.tokens = min(limit.most, bucket.tokens + (now - bucket.at) * per_s)
        bucket.at = now
        if bucket.tokens < 1:
            return 0, (1 - bucket.tokens) / per_s
        bucket.tokens -= 1
        return 1, 0.0


def _bucket(buckets: OrderedDict[tuple[str, str], _Bucket], key: tuple[str, str], new: _Bucket) -> _Bucket:
    bucket = buckets.get(key)
    if bucket is None:
        bucket = buckets[key] = new
        if len(buckets) > BUCKETS_MAX:
            buckets.popitem(last=False)
    else:
        buckets.move_to_end(key)
    return bucket


def _too_many(wait_s: float) -> TooManyError:
    return TooManyError(
        "RATE_LIMITED",
        "Too many requests. Retry-After says when to come again.",
        retry_after_s=max(1, math.ceil(wait_s)),
    )
