"""The process ``web``: Granian with workers that each open a gateway of their own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import structlog
from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops
from granian.log import LogLevels
from litestar import Litestar
from litestar.types import Receive, Scope, Send

from cambist.bootstrap import open_gateway
from cambist.logs import configure_logs
from cambist.registry import Registry, RegistryError
from cambist.settings import Settings, SettingsError
from cambist.settings_file import process_settings

from .app import create_app
from .checkout import checkout_of
from .health.metrics import MULTIPROCESS_VARIABLE
from .ratelimit import parse_networks
from .stop_signals import on_stop_signal

BACKLOG = 2048
REQUESTS_AT_ONCE_MAX = 8192
"""Of one worker, open streams included."""
STOP_TIMEOUT_S = 10
"""Requests that take longer than this to end are cut off when the server stops."""

log = structlog.get_logger(__name__)


def main(settings: Settings) -> int:
    """Serve until told to stop. The workers read the settings anew from this process's environment."""
    _check(settings)
    if (taken := _port_trouble(settings)) is not None:
        log.error("web_cannot_listen", host=settings.web.host, port=settings.web.port, reason=taken)
        return 1
    # A forked worker would inherit metrics that were made before it knew that it is one of several.
    multiprocessing.set_start_method("spawn", force=True)
    with _shared_metrics(settings.web.workers):
        server = Granian(
            "cambist_web.server:worker",
            factory=True,
            address=settings.web.host,
            port=settings.web.port,
            interface=Interfaces.ASGI,
            workers=settings.web.workers,
            http=HTTPModes.http1,
            loop=Loops.uvloop,
            websockets=False,
            backlog=BACKLOG,
            backpressure=REQUESTS_AT_ONCE_MAX,
            workers_kill_timeout=STOP_TIMEOUT_S,
            respawn_failed_workers=True,
            log_level=LogLevels.warning,
        )
        server.serve()
    # It also returns when its workers cannot live, which the supervisor should hear of.
    return 0 if server.interrupt_signal else 1


def _check(settings: Settings) -> None:
    """Refuse here what would let every worker fail: with a sentence, once. Raises SettingsError."""
    try:
        Registry(settings.plugins)
    except RegistryError as error:
        raise SettingsError(str(error)) from None
    try:
        parse_networks(settings.web.trusted_proxies)
    except ValueError as error:
        raise SettingsError(f"web.trusted_proxies: {error}.") from None


def _port_trouble(settings: Settings) -> str | None:
    """Return why the port cannot be listened on. Two servers could share it, and each would get half the requests."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.web.host, settings.web.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return error.strerror or str(error)
    return None


@contextmanager
def _shared_metrics(workers: int) -> Iterator[None]:
    """Let several workers count into one folder, so that any of them can tell for all."""
    if workers == 1:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="cambist-metrics-") as folder:
        os.environ[MULTIPROCESS_VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[MULTIPROCESS_VARIABLE]


def worker() -> Worker:
    """Return one worker's ASGI application. Called in the worker's process."""
    _stop_with_the_server()
    settings = process_settings()
    json = settings.production if settings.log.format == "auto" else settings.log.format == "json"
    configure_logs(level=settings.log.level, json=json)
    return Worker(settings)


def _stop_with_the_server() -> None:
    """End this worker when its server is gone, however it went: it would go on taking requests from the port."""
    server = multiprocessing.parent_process()
    if server is None:
        return

    def wait() -> None:
        server.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="server", daemon=True).start()


class Worker:
    """Opens the gateway when the server starts, and closes it when it ends."""

    def __init__(self, settings: Settings) -> None:
        """Take the settings; nothing is opened yet."""
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
