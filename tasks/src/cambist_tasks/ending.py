"""The end of a process that ran an event loop, whatever plugins have left running in it."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Coroutine
from typing import Any

import structlog
import uvloop

END_S = 3.0
"""How long what was left running may take to end, once the process' own work has ended."""

log = structlog.get_logger(__name__)


def run_to_the_end(work: Coroutine[Any, Any, None], *, end_s: float = END_S) -> None:
    """Run it on a loop of its own, and raise what it raises. The process ends then, ``end_s`` later at the latest.

    A loop that closes waits for all of its tasks and threads. One of a plugin's that catches its cancellation, or that
    waits for a server in a thread, would keep the process until somebody kills it.

    What else on the loop asks for the end of the process, as a library of a plugin's that calls ``sys.exit``, is logged
    and does not end the work.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        error: BaseException | None = None
        task = runner.get_loop().create_task(work)
        try:
            while not task.done():
                try:
                    runner.run(_end_of(task))
                except SystemExit:
                    if not task.done():
                        log.exception("exit_refused", reason="something on the event loop asked for it")
            task.result()
        except BaseException as raised:
            error = raised
            raise
        finally:
            threading.Thread(target=_end, args=(error, end_s), name="ending", daemon=True).start()


async def _end_of(task: asyncio.Task[None]) -> None:
    await asyncio.wait([task])


def _end(error: BaseException | None, end_s: float) -> None:
    time.sleep(end_s)
    log.error("left_running", reason="work of a plugin goes on though it was cancelled", exc_info=error)
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0 if error is None else 1)
