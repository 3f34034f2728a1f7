"""The connections of a process: as many as it always keeps, and others for as long as they are of use."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, Self

from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry

WINDOW_S = 5.0
"""A connection that was not needed for so long is one too many."""


class Pool(AsyncAdaptedQueuePool):
    """Closes what was opened beyond its size once it was idle for a window, where SQLAlchemy's own does it at once.

    Work comes in bursts, and many in a row. Each connection that is opened for one is a process of PostgreSQL's that
    learns the catalogue and plans every statement anew.
    """

    _sqla_logger_namespace = "sqlalchemy.pool"  # which says nothing below a warning

    def __init__(self, creator: Callable[[], Any], pool_size: int, max_overflow: int, **options: Any) -> None:  # noqa: ANN401  SQLAlchemy's own
        """Keep ``pool_size`` at least, once they are open, and open ``max_overflow`` more at most."""
        super().__init__(creator, pool_size=pool_size + max_overflow, max_overflow=0, **options)
        self._kept = pool_size
        self._window_began, self._idle_least = monotonic(), 0

    def recreate(self) -> Self:
        """Return one like it that has opened nothing."""
        pool: Self = super().recreate()  # type: ignore[assignment]  # it makes one of this class
        pool._kept = self._kept
        return pool

    def _do_get(self) -> ConnectionPoolEntry:
        record = super()._do_get()
        self._idle_least = min(self._idle_least, self.checkedin())
        return record

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        super()._do_return_conn(record)
        if (now := monotonic()) - self._window_began >= WINDOW_S:
            opened = self.size() + self.overflow()
            self._close(min(self._idle_least, opened - self._kept))
            self._window_began, self._idle_least = now, self.checkedin()

    def _close(self, count: int) -> None:
        """Close as many, at once: those that were idle longest."""
        if count <= 0:
            return
        idle = [self._pool.get(block=False) for _ in range(self.checkedin())]
        for record in reversed(idle[:-count]):
            self._pool.put(record, block=False)
        for record in idle[-count:]:
            self._dec_overflow()
            if record.driver_connection is not None:
                record.driver_connection.terminate()
