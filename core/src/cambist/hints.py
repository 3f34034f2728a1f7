"""Wakes whoever waits for something, sooner than the clock would; losing a hint costs time and nothing else.

Topics: ``webhooks`` (something was put into the outbox), ``payment:<public id>`` and ``account:<public id>`` (it
changed), ``outbound`` (there is something to send), ``exchanges`` (one was asked for), ``jobs`` (one was queued),
``chains`` (an endpoint or token was asked for, or is in force).
Publish after the commit, for a waiter looks at once. Within the process hints travel directly, between processes by
Redis.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import structlog
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

PREFIX = "cambist:hint:"
PUBLISH_TIMEOUT_S = 0.5
PAUSE_S = 1.0
"""How long Redis is left alone after it failed, so that its outage does not slow every request down."""

log = structlog.get_logger(__name__)
_FAILURES = (RedisError, OSError, TimeoutError)


class Subscription:
    """Waits for hints of one topic. A hint that comes while nobody waits is kept for the next wait."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """End the present wait, or the next one."""
        self._woken.set()

    async def wait(self, timeout_s: float) -> bool:
        """Return True on a hint, False when the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True


class Hints:
    """One process's end of the hints. Without Redis they stay within the process."""

    def __init__(self, redis: Redis | None) -> None:
        """Use this client, which stays its owner's to close."""
        self._redis = redis
        self._subscriptions: dict[str, set[Subscription]] = {}
        self._pubsub: PubSub | None = None
        self._listener: asyncio.Task[None] | None = None
        self._paused_until = 0.0

    async def publish(self, *topics: str) -> None:
        """Wake everybody who waits for one of the topics. Never raises, and never takes long."""
        for topic in topics:
            self._wake(topic)
        loop = asyncio.get_running_loop()
        if self._redis is None or not topics or loop.time() < self._paused_until:
            return
        try:
            async with asyncio.timeout(PUBLISH_TIMEOUT_S), self._redis.pipeline(transaction=False) as pipeline:
                for topic in topics:
                    pipeline.publish(PREFIX + topic, b"")
                await pipeline.execute()
        except _FAILURES as error:
            self._paused_until = loop.time() + PAUSE_S
            log.warning("hints_not_published", topics=len(topics), error=repr(error))

    @asynccontextmanager
    async def subscribe(self, *topics: str) -> AsyncIterator[Subscription]:
        """Listen for any of the topics until the context ends."""
        subscription = Subscription()
        try:
            for topic in topics:
                self._subscriptions.setdefault(topic, set()).add(subscription)
            self._start_listening()
            for topic in topics:
                if len(self._subscriptions[topic]) == 1:
                    await self._tell_redis("subscribe", topic)
            yield subscription
        finally:
            for topic in topics:
                await self._leave(topic, subscription)

    async def _leave(self, topic: str, subscription: Subscription) -> None:
        waiting = self._subscriptions.get(topic, set())
        waiting.discard(subscription)
        if not waiting and self._subscriptions.pop(topic, None) is not None:
            await self._tell_redis("unsubscribe", topic)

    async def aclose(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            with suppress(asyncio.CancelledError):
                await self._listener
            self._listener = None

    def _wake(self, topic: str) -> None:
        for subscription in self._subscriptions.get(topic, ()):
            subscription.wake()

    def _start_listening(self) -> None:
        if self._redis is not None and (self._listener is None or self._listener.done()):
            self._listener = asyncio.create_task(self._listen(self._redis), name="hints")

    async def _tell_redis(self, command: str, topic: str) -> None:
        """Follow a change of topics on the open connection; a new connection starts from all of them anyway."""
        if self._pubsub is None:
            return
        with suppress(*_FAILURES):
            async with asyncio.timeout(PUBLISH_TIMEOUT_S):
                await getattr(self._pubsub, command)(PREFIX + topic)

    async def _listen(self, redis: Redis) -> None:
        while True:
            try:
                async with redis.pubsub(ignore_subscribe_messages=True) as pubsub:
                    await self._follow(pubsub)
            except _FAILURES as error:
                log.warning("hints_interrupted", error=repr(error))
            finally:
                self._pubsub = None
            await asyncio.sleep(PAUSE_S)

    async def _follow(self, pubsub: PubSub) -> None:
        # A channel of its own keeps the connection subscribed, whatever else comes and goes.
        await pubsub.subscribe(PREFIX, *[PREFIX + topic for topic in self._subscriptions])
        self._pubsub = pubsub
        # Whatever was published while nobody listened is made up for by waking everybody once.
        for topic in list(self._subscriptions):
            self._wake(topic)
        while True:
            message: dict[str, Any] | None = await pubsub.get_message(timeout=None)
            if message is not None:
                channel = message["channel"]
                name = channel.decode() if isinstance(channel, bytes) else channel
                self._wake(name.removeprefix(PREFIX))
