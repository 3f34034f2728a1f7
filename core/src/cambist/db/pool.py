"""The connections of a process: as many as it always keeps, and others for as long as they are of use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Self

from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry

from cambist.ports import SystemClock

clock_now = SystemClock().now
"""SQLAlchemy goes by the machine's clock, whatever clock the gateway has."""
WINDOW_S = 3.0
"""A connection that was idle for all of such a time is one too many."""


class Pool(AsyncAdaptedQueuePool):
    """Closes what was opened beyond its size once it was idle for a window, where SQLAlchemy's own does it at once.

    Work comes in bursts, and many in a row. Each connection that is opened for one is a process of PostgreSQL's that
    learns the catalogue and plans every statement anew. With ``use_lifo``, as others do not become idle.

    And it keeps none that comes back within a transaction, and gives out none that the server has closed.
    """

    _sqla_logger_namespace = "sqlalchemy.pool"  # which says nothing below a warning

    def __init__(self, creator: Callable[[], Any], pool_size: int, max_overflow: int, **options: Any) -> None:  # noqa: ANN401  SQLAlchemy's own
        """Keep ``pool_size`` at least, once they are open, and open ``max_overflow`` more at most."""
        super().__init__(creator, pool_size=pool_size + max_overflow, max_overflow=0, **options)
        self._kept = pool_size
        self._idle_least = 0
        self._window: asyncio.TimerHandle | None = None

    def recreate(self) -> Self:
        """Return one like it that has opened nothing."""
        pool: Self = super().recreate()  # type: ignore[assignment]  # it makes one of this class
        pool._kept = self._kept
        return pool

    def dispose(self) -> None:
        super().dispose()
        if self._window is not None:
            self._window.cancel()
            self._window = None

    def _do_get(self) -> ConnectionPoolEntry:
        record = super()._do_get()
        self._idle_least = min(self._idle_least, self.checkedin())
        if self._invalidate_time and self._invalidate_time > (now := clock_now().timestamp()):
            # When a server was lost last, by a clock that was set back since. Every connection would be older than
            # that, and opened anew for each transaction, until the clock is there again.
            self._invalidate_time = now
        driver: Any = record.driver_connection
        if driver is not None and driver.is_closed():
            # The server was started anew, or whatever lies between has closed it. Given out, it would fail a request.
            record.invalidate()
        return record

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        try:
            driver: Any = record.driver_connection
            if driver is not None and not driver.is_closed() and driver.is_in_transaction():
                # A task that was left runs a statement there still, so that nothing could be undone. Whoever had it
                # next would write into that transaction, which nobody commits.
                record.invalidate()
        finally:
            super()._do_return_conn(record)
        if self._window is None and self._spare() > 0:
            try:
                self._begin_window()
            except RuntimeError:
                return  # garbage is collected in another thread: the next one begins it

    def _begin_window(self) -> None:
        self._window = asyncio.get_running_loop().call_later(WINDOW_S, self._end_window)
        self._idle_least = self.checkedin()

    def _end_window(self) -> None:
        self._window = None
        self._close(min(self._idle_least, self._spare()))
        if self._spare() > 0:
            self._begin_window()

    def _spare(self) -> int:
        """Return how many are open beyond those that are kept; below zero where those are not all open."""
        return self.size() + self.overflow() - self._kept

    def _close(self, count: int) -> None:
        """Close as many, at once: those that were idle longest."""
        if count <= 0:
            return
        idle = [self._pool.get(block=False) for _ in range(self.checkedin())]
        for record in reversed(idle[:-count]):
            self._pool.put(record, block=False)
        for _ in range(count):
            self._dec_overflow()
        for record in idle[-count:]:
            record.invalidate()  # which waits for nothing here, as this is no greenlet of SQLAlchemy's
