"""The process ``web``: Granian, with workers that each open a gateway of their own.

This process only looks after the workers, so it imports nothing of what they serve.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops
from granian.http import HTTP1Settings
from granian.log import LogLevels

from cambist.cli.apart import apart
from cambist.cli.web import port_trouble
from cambist.settings import Settings, SettingsError

BACKLOG = 2048
REQUESTS_AT_ONCE_MAX = 8192
"""Of one worker, open streams included."""
HEADER_BYTES_MAX = 64 * 1024
"""Of all headers of a request together; more is answered with 431. Also how much is read ahead of a body."""
STOP_TIMEOUT_S = 10
"""Requests that take longer than this to end are cut off when the server stops."""
MULTIPROCESS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

log = structlog.get_logger(__name__)


def main(settings: Settings) -> int:
    """Serve until told to stop. The workers read the settings anew from this process's environment.

    Raises SettingsError.
    """
    # What would let every worker fail is refused here, with a sentence, once.
    apart(lambda: _check(settings))
    if (taken := port_trouble(settings.web)) is not None:
        log.error("web_cannot_listen", host=settings.web.host, port=settings.web.port, reason=taken)
        return 1
    # A forked worker would inherit metrics that were made before it knew that it is one of several.
    multiprocessing.set_start_method("spawn", force=True)
    with _shared_metrics(settings.web.workers):
        server = Granian(
            "cambist_web.start:worker",
            factory=True,
            address=settings.web.host,
            port=settings.web.port,
            interface=Interfaces.ASGI,
            workers=settings.web.workers,
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(
                header_read_timeout=settings.web.header_timeout_s * 1000, max_buffer_size=HEADER_BYTES_MAX
            ),
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
