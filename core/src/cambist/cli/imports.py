"""Imports without pauses: nothing of what a module makes is garbage, and to look for some takes a fifth of a start."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_off() -> Iterator[None]:
    """Do not collect garbage meanwhile, and leave out of collections afterwards what was imported."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
