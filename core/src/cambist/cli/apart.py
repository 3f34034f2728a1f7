"""Does work in a process of its own, so that what it imports does not stay in memory here."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import TypeVar, cast

T = TypeVar("T")


def apart(work: Callable[[], T]) -> T:
    """Return what ``work`` returns, or raise what it raises, from a forked process that ends with it or with this one.

    Only for a process with a single thread. Raises ChildProcessError if the process dies, and another OSError if it
    cannot be started.
    """
    reading, writing = os.pipe()
    ours, theirs = os.pipe()  # the other process sees the end of it when this one is gone
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.close(reading)
            os.close(theirs)
            threading.Thread(target=_end_with, args=[ours], daemon=True).start()
            with os.fdopen(writing, "wb") as stream:
                stream.write(_answer(work))
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(0)
    os.close(writing)
    os.close(ours)
    try:
        with os.fdopen(reading, "rb") as stream:
            told = stream.read()
    except BaseException:
        os.kill(child, signal.SIGTERM)
        raise
    finally:
        os.close(theirs)
        os.waitpid(child, 0)
    if not told:
        raise ChildProcessError("A process that was started for a part of the work ended without an answer.")
    result, error = pickle.loads(told)  # noqa: S301  written by our own fork
    if error is not None:
        raise error
    return cast("T", result)


def _answer(work: Callable[[], T]) -> bytes:
    """Do the work, and return what came of it. An error takes along where it came from, as a note."""
    try:
        return pickle.dumps((work(), None))
    except Exception as error:  # noqa: BLE001  whatever it is, it is raised over there
        error.add_note(traceback.format_exc())
        try:
            return pickle.dumps((None, error))
        except Exception:  # noqa: BLE001  not every error can be sent
            return pickle.dumps((None, RuntimeError(traceback.format_exc())))


def _end_with(ours: int) -> None:
    """End this process when the one that started it is gone: what it holds, such as a lock, must not outlive it."""
    os.read(ours, 1)
    os._exit(1)
