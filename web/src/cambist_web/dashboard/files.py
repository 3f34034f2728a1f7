"""The built files, each read once and kept compressed."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from pathlib import Path

from msgspec import Struct

BUILT = Path(__file__).parent / "built"

_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
_KEEP_THEIR_NAMES = frozenset({"first-paint.js", "mark.svg", "dashboard.html", "operator.html"})
"""The names of all others change with what is in them, so that browsers may keep them for ever."""
_ONLY_OF_THE_BUILD = frozenset({"manifest.json"})


class BuiltFile(Struct, frozen=True, kw_only=True):
    """One file as it is served."""

    media_type: str
    gzipped: bytes
    etag: str
    keeps_its_name: bool


class ReplacedError(Exception):
    """The files were built anew since this process began to serve them, or are being built just now."""


class BuiltFiles:
    """Every file of a folder that ``make dashboard`` filled; none where it did not.

    It serves what was there when the process began. Installed it never changes; who develops starts the gateway again.
    """

    def __init__(self, folder: Path = BUILT) -> None:
        self._folder = folder
        files = folder.iterdir() if folder.is_dir() else ()
        self._names = frozenset(path.name for path in files) - _ONLY_OF_THE_BUILD
        self._read = cache(self._read_file)

    def find(self, name: str) -> BuiltFile | None:
        """Return a file, or None where there is none of that name: what is asked for is never made a path of.

        Raises ReplacedError where there is none any more.
        """
        return self._read(name) if name in self._names and Path(name).suffix in _TYPES else None

    def _read_file(self, name: str) -> BuiltFile:
        try:
            content = (self._folder / name).read_bytes()
        except FileNotFoundError:
            raise ReplacedError from None
        return BuiltFile(
            media_type=_TYPES[Path(name).suffix],
            gzipped=gzip.compress(content, mtime=0),
            etag=f'"{hashlib.sha256(content).hexdigest()[:32]}"',
            keeps_its_name=name in _KEEP_THEIR_NAMES,
        )
