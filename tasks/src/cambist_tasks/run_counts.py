"""How the runs of jobs went in this process, for metrics."""

from __future__ import annotations

from msgspec import Struct


class RunCounts(Struct, kw_only=True):
    """How many runs of one kind of job ended, and how long they took together."""

    succeeded: int = 0
    failed: int = 0
    duration_s: float = 0.0
