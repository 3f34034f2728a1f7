"""What Prometheus is told about requests."""

from __future__ import annotations

import os
import time
from functools import lru_cache

from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from cambist.db.engine import has_committed
from cambist.services.errors import ServiceError

from .errors import status_of
from .server import MULTIPROCESS_VARIABLE

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

REQUESTS = Counter("cambist_http_requests", "Requests answered.", ["method", "route", "status"])
SECONDS = Histogram(
    "cambist_http_request_seconds", "Time to the first byte of the answer.", ["route"], buckets=BUCKETS_S
)


SERIES_CACHED_MAX = 4096

# Looking a series up by its labels takes longer than counting it.
_requests = lru_cache(SERIES_CACHED_MAX)(REQUESTS.labels)
_seconds = lru_cache(SERIES_CACHED_MAX)(SECONDS.labels)


class RequestMetrics(ASGIMiddleware):
    """Counts and times the requests of a route. Routes are named by their template, so that there are few."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Time the request until its answer begins: a stream may go on for as long as it likes."""
        has_committed.set(False)
        started = time.perf_counter()
        route, method = scope["path_template"], str(scope.get("method", "-"))

        def count(status: int) -> None:
            _requests(method, route, status).inc()
            _seconds(route).observe(time.perf_counter() - started)

        async def counting_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                count(message["status"])
            await send(message)

        try:
            await next_app(scope, receive, counting_send)
        except ServiceError as error:
            # A middleware below this one refused it, and what answers then is above this one.
            count(status_of(error))
            raise


def exposition() -> bytes:
    """Return every metric, of all workers of this process group where there are several."""
    if MULTIPROCESS_VARIABLE not in os.environ:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
