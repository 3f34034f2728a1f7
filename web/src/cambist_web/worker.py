"""A worker of the process ``web``: one gateway, and the application that serves it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from contextlib import AsyncExitStack
from typing import Any

import structlog
from litestar import Litestar
from litestar.types import Receive, Scope, Send

from cambist.bootstrap import open_gateway
from cambist.logs import configure_logs
from cambist.settings import Settings
from cambist.settings_file import process_settings

from .app import create_app
from .checkout import checkout_of
from .stop_signals import on_stop_signal

SIGNAL_EVERY_S = 1.0
SIGNALS_MAX = 15
"""So long a worker without its server has for what it serves."""

log = structlog.get_logger(__name__)


def worker() -> Worker:
    """Return one worker's ASGI application. Called in the worker's process."""
    _stop_with_the_server()
    settings = process_settings()
    configure_logs(level=settings.log.level, json=settings.logs_json)
    return Worker(settings)


def _stop_with_the_server() -> None:
    """End this worker when its server is gone, however it went: it would go on taking requests from the port."""
    server = multiprocessing.parent_process()
    if server is None:
        return

    def wait() -> None:
        server.join()
        # Granian loses a signal that comes while a worker starts, and a worker without its server must not stay.
        for _ in range(SIGNALS_MAX):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(SIGNAL_EVERY_S)
        os._exit(1)

    threading.Thread(target=wait, name="server", daemon=True).start()


class Worker:
    """Opens the gateway when the server starts, and closes it when it ends."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._app: Litestar | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the whole life of the worker."""
        if str(scope["type"]) == "lifespan":
            await self._live(scope, receive, send)
        elif self._app is not None:
            await self._app(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            try:
                gateway = await stack.enter_async_context(open_gateway(self._settings, role="web"))
                self._app = create_app(gateway)
            except Exception:
                # Told like this, the worker ends and is started again; raised, it would stay and serve nothing.
                log.exception("web_worker_not_started")
                failed: Any = {"type": "lifespan.startup.failed", "message": ""}  # typed for requests only
                await send(failed)
                return
            stack.enter_context(on_stop_signal(checkout_of(self._app).close))
            await self._app(scope, receive, send)
