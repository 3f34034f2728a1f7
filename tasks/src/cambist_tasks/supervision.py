"""Keeps the worker's tasks running: one that crashes is logged and started again, the others do not notice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import structlog
from asyncpg import PostgresError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from sqlalchemy.exc import SQLAlchemyError

from cambist.db.engine import why_unreached
from cambist.signer import SignerUnavailableError

log = structlog.get_logger(__name__)

STABLE_S = 60.0
"""Who ran this long before it crashed is started again at once."""


class Backoff:
    """Pauses in seconds that double up to a ceiling; ``reset`` begins again with the first."""

    def __init__(self, first_s: float, max_s: float) -> None:
        self._first_s = first_s
        self._max_s = max_s
        self._next_s = first_s

    def next_s(self) -> float:
        pause_s, self._next_s = self._next_s, min(self._max_s, self._next_s * 2)
        return pause_s

    def reset(self) -> None:
        self._next_s = self._first_s


async def keep_running(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run ``work`` for ever, in a task of its own each time; it should not end, so its end is a crash too."""
    loop = asyncio.get_running_loop()
    pauses = Backoff(0.5, 30.0)
    while True:
        started = loop.time()
        running = asyncio.create_task(work(), name=name)
        try:
            await asyncio.wait([running])
        finally:
            running.cancel()
            await asyncio.wait([running])
        try:
            running.result()
            log.error("task_ended", task=name)
        except KeyboardInterrupt:
            # It asks for the end of the process. asyncio has raised it out of the loop already, so that going on here
            # would only run until the loop is closed. A SystemExit is some plugin's: see ``ending``.
            raise
        except BaseException as error:  # nobody stopped it: it was cancelled from within, or what it called panicked
            if (away := _why_away(error)) is None:
                log.exception("task_crashed", task=name)
            else:  # which lasts, and says all that there is to say
                log.warning("task_crashed", task=name, error=away)
        if loop.time() - started >= STABLE_S:
            pauses.reset()
        await asyncio.sleep(pauses.next_s())


def _why_away(error: BaseException) -> str | None:
    """Return why PostgreSQL, Redis or the signer is away, where that is what the error says."""
    if isinstance(error, RedisConnectionError | RedisTimeoutError | SignerUnavailableError):
        return str(error)
    return why_unreached(error) if isinstance(error, OSError | SQLAlchemyError | PostgresError) else None


async def run_all(
    works: Mapping[str, Callable[[], Coroutine[Any, Any, None]]], stop: asyncio.Event, *, grace_s: float
) -> None:
    """Keep all of them running until ``stop`` is set, then cancel them and wait for their ends, but not for ever."""
    tasks = {asyncio.create_task(keep_running(name, work), name=name) for name, work in works.items()}
    try:
        await stop.wait()
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            _, stuck = await asyncio.wait(tasks, timeout=grace_s)
            for task in stuck:
                log.error("task_does_not_stop", task=task.get_name(), grace_s=grace_s)
