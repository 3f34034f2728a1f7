"""The lease of a job that this process works on: what is written under it is refused once another worker has it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.bootstrap import Gateway
from cambist.domain.troubles import Said
from cambist.services.jobs import leases
from cambist.services.jobs.requests import Job

LEASE_S = 60
"""Prolonged with every slice. What a dead worker left is taken over when it is over."""


def lease_end(now: datetime) -> datetime:
    """Return the end of a lease that is taken or prolonged at ``now``."""
    return now + timedelta(seconds=LEASE_S)


class LaterError(Exception):
    """The slice did what it could; the job goes on after ``pause_s``. ``said`` is what is in the way."""

    def __init__(self, said: Said, pause_s: float) -> None:
        super().__init__(said.words)
        self.said, self.pause_s = said, pause_s


class Lease:
    """A job whose lease this process holds. ``kept`` is what a handler keeps in memory from slice to slice."""

    def __init__(self, gateway: Gateway, job: Job) -> None:
        self._gateway = gateway
        self.job = job
        self.kept: object = None
        self._kept_progress: Mapping[str, Any] = {}

    @asynccontextmanager
    async def saving(self, progress: Mapping[str, Any]) -> AsyncIterator[AsyncConnection]:
        """Yield a transaction that keeps the progress and is committed only while the lease is held.

        Raises LeaseLostError.
        """
        async with self._gateway.db.transaction() as conn:
            await leases.save(conn, self.job, progress, lease_end(self._gateway.clock.now()))
            self._kept_progress = progress
            yield conn
        self.job = replace(self.job, progress=self._kept_progress, attempts=0)

    async def keep(self, conn: AsyncConnection, progress: Mapping[str, Any]) -> None:
        """Keep another progress than the one that this transaction of ``saving`` was opened with.

        Raises LeaseLostError.
        """
        await leases.save(conn, self.job, progress, lease_end(self._gateway.clock.now()))
        self._kept_progress = progress
