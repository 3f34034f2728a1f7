"""A Valkey of a test's own, which can be killed; it keeps nothing on disk, so it comes back empty."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cambist.embedded.valkey import EmbeddedValkey


class MortalValkey(EmbeddedValkey):
    def kill(self) -> None:
        """Kill it with no chance to clean up; ``start`` brings it back, empty, at the same address."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()


@contextmanager
def mortal_valkey(folder: Path) -> Iterator[MortalValkey]:
    server = MortalValkey(folder, os.urandom)
    server.start()
    try:
        yield server
    finally:
        server.stop()
