"""Imports without pauses and without ballast: both are most of what a start takes, and much of the memory after it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_off() -> Iterator[None]:
    """Do not collect garbage meanwhile, and leave out of collections afterwards what was imported.

    Nothing of what a module makes is garbage, and to look for some takes a fifth of a start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def left_out(module: str) -> Iterator[None]:
    """Have a library do without another one that it would import if it could, and that we never use through it."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]  # an import of it fails
    try:
        yield
    finally:
        del sys.modules[module]


# Tracebacks are written without rich, which with pygments would take five megabytes of every process, and no greenlet
# logs. Whoever imports structlog from now on gets this one: the package's first import is of this module.
with left_out("rich"), left_out("greenlet"):
    import structlog  # noqa: F401


def import_jwt() -> None:
    """Import it without cryptography's public keys and certificates, which are two megabytes: tokens are HMACs here.

    redis imports it too, so this comes before either. Only then is what we use of cryptography imported. Plugins share
    the process: docs/plugins/publishing.md tells their authors.
    """
    with left_out("cryptography"):
        import jwt  # noqa: F401, PLC0415
