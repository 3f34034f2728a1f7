"""The process ``web``: Granian, with workers that each open a gateway of their own.

A worker that is alone is this process itself. Where there are several, it only looks after them, and imports nothing of
what they serve.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any

import structlog
from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.common import AbstractServer
from granian.server.mp import MPServer

from cambist.cli.apart import apart
from cambist.cli.web import listened_on, port_trouble
from cambist.logs import configure_logs
from cambist.settings import Settings, SettingsError, WebSettings
from cambist.settings_file import process_settings

from .stop_signals import STOP_TIMEOUT_S, stop_with_the_server

BACKLOG = 2048
REQUESTS_AT_ONCE_MAX = 8192
"""Of one worker, open streams included."""
HEADER_BYTES_MAX = 64 * 1024
"""Of all headers of a request together; more is answered with 431. Also how much is read ahead of a body."""
MULTIPROCESS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

log = structlog.get_logger(__name__)


def main(settings: Settings) -> int:
    """Serve until told to stop. The workers read the settings anew from this process's environment.

    Raises SettingsError.
    """
    # What would let every worker fail is refused here, with a sentence, once.
    apart(lambda: _check(settings))
    for host, port in listened_on(settings.web):
        if (taken := port_trouble(host, port)) is not None:
            log.error("web_cannot_listen", host=host, port=port, reason=taken)
            return 1
    if settings.web.workers == 1 and settings.web.admin_port is None:
        _granian(settings.web, "worker", settings.web.host, settings.web.port, 1, of=_Alone).serve()
        return 0
    # Forked, each worker would hold the ends of the others' pipes, and not see that the server is gone.
    multiprocessing.set_start_method("spawn", force=True)
    with _shared_metrics(), _operators_server(settings.web) as operators:
        server = _granian(settings.web, "worker", settings.web.host, settings.web.port, settings.web.workers)
        server.serve()
    # It also returns when its workers cannot live, which the supervisor should hear of.
    return 0 if server.interrupt_signal and not operators.has_failed else 1


class _Alone(MPServer):
    """A server whose one worker is this process. Whoever runs it starts it again, as they do any other process."""

    def _serve(self, *what: Any) -> None:  # noqa: ANN401  as Granian calls it
        self._init_shared_socket()  # type: ignore[no-untyped-call]
        # Runs here what the worker's process would run.
        self._spawn_worker(0, *what).inner.run()


def _granian(  # noqa: PLR0913  where, and what
    web: WebSettings, factory: str, host: str, port: int, workers: int, *, of: type[AbstractServer[Any]] = Granian
) -> AbstractServer[Any]:
    return of(
        f"cambist_web.start:{factory}",
        factory=True,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        workers=workers,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=web.header_timeout_s * 1000, max_buffer_size=HEADER_BYTES_MAX),
        loop=Loops.uvloop,
        websockets=False,
        backlog=BACKLOG,
        backpressure=REQUESTS_AT_ONCE_MAX,
        workers_kill_timeout=STOP_TIMEOUT_S,
        respawn_failed_workers=True,
        log_level=LogLevels.warning,
    )


class _Operators:
    """The server of the address that operators have to themselves, in a process of its own."""

    def __init__(self) -> None:
        self.has_failed = False
        self._stopping = False

    @contextmanager
    def running(self) -> Iterator[None]:
        process = multiprocessing.get_context("spawn").Process(target=_serve_operators, name="operators")
        process.start()
        threading.Thread(target=self._watch, args=[process], name="operators", daemon=True).start()
        try:
            yield
        finally:
            self._stopping = True
            process.terminate()
            process.join(2 * STOP_TIMEOUT_S)
            process.kill()

    def _watch(self, process: SpawnProcess) -> None:
        """Stop this process too when that one ends before it: a supervisor starts both again."""
        wait([process.sentinel])
        if not self._stopping:
            process.join()
            self.has_failed = process.exitcode != 0
            log.warning("operators_server_ended", exit_code=process.exitcode)
            os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _operators_server(web: WebSettings) -> Iterator[_Operators]:
    operators = _Operators()
    with nullcontext() if web.admin_port is None else operators.running():
        yield operators


def _serve_operators() -> None:
    """Serve operators' part until told to stop, or until the process that started this one is gone."""
    stop_with_the_server()
    settings = process_settings()
    configure_logs(level=settings.log.level, json=settings.logs_json)
    web = settings.web
    if web.admin_port is not None:
        server = _granian(web, "operators_worker", web.admin_host, web.admin_port, 1)
        server.serve()
        sys.exit(0 if server.interrupt_signal else 1)


def _check(settings: Settings) -> None:
    from cambist.registry import Registry, RegistryError  # noqa: PLC0415  see apart

    from .client_address import parse_networks  # noqa: PLC0415

    try:
        Registry(settings.plugins)
    except RegistryError as error:
        raise SettingsError(str(error)) from None
    try:
        parse_networks(settings.web.trusted_proxies)
    except ValueError as error:
        raise SettingsError(f"web.trusted_proxies: {error}.") from None


@contextmanager
def _shared_metrics() -> Iterator[None]:
    """Let several workers count into one folder, so that any of them can tell for all."""
    with tempfile.TemporaryDirectory(prefix="cambist-metrics-") as folder:
        os.environ[MULTIPROCESS_VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[MULTIPROCESS_VARIABLE]
