"""Imports of large libraries when they are first needed, without what they do to the whole process."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from types import ModuleType
from typing import Final

_ONE_AT_A_TIME: Final = Lock()
"""Of two that import at once, each in its thread, one would put back what the other had raised."""

_RAISING: Final = "py_ecc"
"""Comes with web3.py, and raises the recursion limit to 100000: with that, a deeply nested answer of a hostile server
would end the process, where Python would have raised RecursionError."""


@contextlib.contextmanager
def limit_kept() -> Iterator[None]:
    """Put the recursion limit back after an import of web3.py, which takes seconds: make it in a thread."""
    with _ONE_AT_A_TIME:
        limit = sys.getrecursionlimit()
        try:
            # First alone, which is soon done: until it is put back, the limit is that of all threads.
            with contextlib.suppress(ImportError):
                import_module(_RAISING)
            sys.setrecursionlimit(limit)
            yield
        finally:
            sys.setrecursionlimit(limit)


@contextlib.contextmanager
def without_its_root(package: str, *left_out: str) -> Iterator[None]:
    """Import modules of a package without running its ``__init__``, which would import the rest of it.

    Afterwards the package is as if nobody had imported any of it, so that whoever does gets the whole. One that is
    imported already is used as it is.

    What is ``left_out`` cannot be imported meanwhile, unless somebody has it by now: the modules do without.
    """
    with _ONE_AT_A_TIME:
        spec = None if package in sys.modules else find_spec(package)
        if spec is None or spec.submodule_search_locations is None:
            yield
            return
        root = ModuleType(package)
        root.__path__ = spec.submodule_search_locations
        sys.modules[package] = root
        missing = [name for name in left_out if name not in sys.modules]
        sys.modules.update(dict.fromkeys(missing))  # type: ignore[arg-type]  # an import of it fails
        try:
            yield
        finally:
            for name in missing:
                del sys.modules[name]
            for name in list(sys.modules):
                if name.partition(".")[0] == package:
                    del sys.modules[name]
