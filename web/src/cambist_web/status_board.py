"""How the gateway does, for a status page: looked up at most every few seconds, however many ask."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from datetime import datetime

import structlog
from msgspec import Struct
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from cambist.bootstrap import Gateway, write_to
from cambist.db.engine import BusyError
from cambist.domain.chain_status import ChainReading
from cambist.services import chain_pauses
from cambist.services.chain_pauses import Pauses
from cambist.services.receiving.chain_readings import read_chains

CACHE_S = 3.0
CHECK_TIMEOUT_S = 2.0

log = structlog.get_logger(__name__)


class StatusSnapshot(Struct, frozen=True, kw_only=True):
    """What was seen at one moment. ``readings`` and ``pauses`` are None while the database cannot be asked."""

    at: datetime
    readings: Mapping[str, ChainReading] | None
    pauses: Pauses | None
    has_redis: bool


class StatusBoard:
    """One process's last snapshot of what works, whether it succeeded or not."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.chains = {name: info for name, info in gateway.registry.chains.items() if info.availability == "live"}
        self._last: StatusSnapshot | None = None
        self._taken_at = -math.inf
        self._taking = asyncio.Lock()

    async def snapshot(self) -> StatusSnapshot:
        """Return the last one, never older than ``CACHE_S``. One of those who ask takes it, the others wait for it."""
        clock = self._gateway.clock
        async with self._taking:
            if self._last is None or clock.monotonic() - self._taken_at >= CACHE_S:
                (readings, pauses), has_redis = await asyncio.gather(self._readings(), self._has_redis())
                self._last = StatusSnapshot(at=clock.now(), readings=readings, pauses=pauses, has_redis=has_redis)
                self._taken_at = clock.monotonic()
            return self._last

    async def _readings(self) -> tuple[Mapping[str, ChainReading] | None, Pauses | None]:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S), self._gateway.db.autocommit() as conn:
                return await read_chains(conn, list(self.chains)), await chain_pauses.load(conn)
        except (SQLAlchemyError, BusyError, OSError, TimeoutError) as error:
            log.warning("status_without_database", error=repr(error))
            return None, None

    async def _has_redis(self) -> bool:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                await write_to(self._gateway.redis)
        except (RedisError, OSError, TimeoutError):
            return False
        return True
