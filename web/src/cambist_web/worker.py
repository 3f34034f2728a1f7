"""A worker of the process ``web``: one gateway, and the application that serves it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import structlog
from litestar import Litestar
from litestar.types import Receive, Scope, Send

from cambist.bootstrap import open_gateway
from cambist.cli.imports import collector_off
from cambist.logs import configure_logs
from cambist.settings import Settings
from cambist.settings_file import process_settings

from .app import Serves, create_app, end_streams
from .stop_signals import on_stop_signal, stop_in_time, stop_with_the_server

log = structlog.get_logger(__name__)


def worker(*, for_operators: bool = False) -> Worker:
    """Return one worker's ASGI application. Called in the worker's process."""
    stop_with_the_server()
    settings = process_settings()
    configure_logs(level=settings.log.level, json=settings.logs_json)
    serves: Serves = "all" if settings.web.admin_port is None else "admin" if for_operators else "public"
    return Worker(settings, serves)


class Worker:
    """Opens the gateway when the server starts, and closes it when it ends."""

    def __init__(self, settings: Settings, serves: Serves) -> None:
        self._settings = settings
        self._serves = serves
        self._app: Litestar | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the whole life of the worker."""
        if str(scope["type"]) == "lifespan":
            await self._live(scope, receive, send)
        elif self._app is not None:
            await self._app(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            stack.enter_context(on_stop_signal(self._stop))
            try:
                gateway = await stack.enter_async_context(open_gateway(self._settings, role="web"))
                with collector_off():
                    self._app = create_app(gateway, self._serves)
            except Exception:
                # Told like this, the worker ends and is started again; raised, it would stay and serve nothing.
                log.exception("web_worker_not_started")
                failed: Any = {"type": "lifespan.startup.failed", "message": ""}  # typed for requests only
                await send(failed)
                return
            await self._app(scope, receive, send)

    def _stop(self) -> None:
        stop_in_time()
        if self._app is not None:
            end_streams(self._app)
