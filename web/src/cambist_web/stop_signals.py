"""Tells of a stop before the server does: it waits for open requests first, and streams would never end."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


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
