"""The processes that run because another one has been started."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import psutil


def everything_below(pid: int) -> Sequence[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def still_there(processes: Iterable[psutil.Process]) -> Sequence[psutil.Process]:
    """Return those that run. One that has ended, and that nobody has asked about yet, does not."""
    return [process for process in processes if _runs(process)]


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
