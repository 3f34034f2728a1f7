"""Stopping: before the server tells of it, which waits for open requests first; and when the server is gone."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SIGNAL_EVERY_S = 1.0
SIGNALS_MAX = 15
"""So long a worker without its server has for what it serves."""
STOP_TIMEOUT_S = 10
"""Requests that take longer than this to end are cut off when the server stops."""


@contextmanager
def on_stop_signal(then: Callable[[], None]) -> Iterator[None]:
    """Call ``then`` in the running loop when the process is asked to stop, and pass the signal on to the server.

    Does nothing outside the main thread, where no signals arrive.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    previous = {number: signal.getsignal(number) for number in STOP_SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(then)
        # The loop's own handler, through which the server listens.
        handler = previous[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number in STOP_SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def stop_with_the_server() -> None:
    """End this process when the one that started it is gone, however it went: it would go on taking requests."""
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


def stop_in_time() -> None:
    """Cut off what this process still serves ``STOP_TIMEOUT_S`` from now, where no server of its own does so."""
    if multiprocessing.parent_process() is None:
        end = threading.Timer(STOP_TIMEOUT_S, os._exit, [0])
        end.daemon = True
        end.start()
