"""Whether the process lives, whether it can serve, and how it has been doing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import cache
from typing import Any

from litestar import Controller, Response, get, route
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.enums import HttpMethod
from litestar.handlers import BaseRouteHandler
from msgspec import UNSET, Struct, UnsetType
from prometheus_client import CONTENT_TYPE_LATEST
from redis.exceptions import RedisError
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from cambist.bootstrap import write_to
from cambist.db.migrations import current_revision, newest_revision
from cambist.db.room import is_full
from cambist.services.errors import NotFoundError
from cambist.services.webhooks.urls import is_public_address
from cambist_web.context import Web
from cambist_web.request_metrics import exposition
from cambist_web.schemas import Answer

CHECK_TIMEOUT_S = 2.0
FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")
_FAILURES = (SQLAlchemyError, RedisError, OSError, TimeoutError)


class Live(Answer, frozen=True, kw_only=True):
    """The process answers."""

    status: str


class Ready(Struct, frozen=True, kw_only=True):
    """Whether requests can be served, and what of it. Redis only makes things faster."""

    success: bool
    status: str
    checks: dict[str, str]
    error: str | UnsetType = UNSET
    code: str | UnsetType = UNSET


async def only_from_inside(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    """Hide what tells how business goes: from public addresses, and from whom a proxy asks for. A guard."""
    forwarded = any(name in connection.headers for name in FORWARDED)
    if forwarded or (connection.client is not None and is_public_address(connection.client.host)):
        raise NotFoundError("ROUTE_NOT_FOUND", "There is nothing at this path.")


class Health(Controller):
    tags = ("Operation",)

    @get("/health/live", summary="Is the process alive?", security=[{}])
    async def live(self) -> Live:
        """Return 200 as long as the process answers at all."""
        return Live(status="live")

    @get("/health/ready", summary="Can requests be served?", security=[{}])
    async def ready(self, web: NamedDependency[Web]) -> Response[Ready]:
        """Return 200, or 503 while the database is away, full, read-only or not migrated. Without Redis: `degraded`."""
        return await _readiness(web)

    # Monitors that want no body ask so.
    @route("/health/live", http_method=HttpMethod.HEAD, include_in_schema=False)
    async def live_head(self) -> Live:
        """Return the same without its body, which the server leaves out."""
        return Live(status="live")

    @route("/health/ready", http_method=HttpMethod.HEAD, include_in_schema=False)
    async def ready_head(self, web: NamedDependency[Web]) -> Response[Ready]:
        """Return the same without its body."""
        return await _readiness(web)

    @get(
        "/metrics",
        media_type=CONTENT_TYPE_LATEST,
        include_in_schema=False,
        guards=[only_from_inside],
        sync_to_thread=True,
    )
    def metrics(self) -> bytes:
        """Return metrics in Prometheus' text format, to who asks from inside and through no proxy."""
        return exposition()


async def _readiness(web: Web) -> Response[Ready]:
    database, redis = await asyncio.gather(_check(_migrated(web)), _check(_redis(web)))
    checks = {"database": database, "redis": redis if redis == "ok" else "degraded"}
    if database != "ok":
        body = Ready(
            success=False,
            status="unavailable",
            checks=checks,
            error="The database is not ready.",
            code="NOT_READY",
        )
        return Response(body, status_code=503)
    return Response(Ready(success=True, status="ready" if redis == "ok" else "degraded", checks=checks))


async def _check(work: Awaitable[str]) -> str:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return await work
    except _FAILURES:
        return "unreachable"


async def _migrated(web: Web) -> str:
    async with web.db.transaction() as conn:
        # A standby, and what a host has made read-only because its disk is full, answer all that is only read.
        read_only = await conn.scalar(text("SHOW transaction_read_only"))
        revision = await current_revision(conn)
    if read_only == "on":
        return "read-only"
    if web.had_no_room:
        # Nobody may be sent here before that is over.
        if await is_full(web.db):
            return "disk full"
        web.had_no_room = False
    return "ok" if revision == _newest() else "not migrated"


async def _redis(web: Web) -> str:
    await write_to(web.gateway.redis)
    return "ok"


@cache
def _newest() -> str:
    return newest_revision()


controllers = [Health]
