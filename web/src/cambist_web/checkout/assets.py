"""The pages' own files, under names that change with their content, so that browsers may keep them for ever."""

from __future__ import annotations

import hashlib
from pathlib import Path

from msgspec import Struct

ASSETS_PATH = "/checkout-assets"

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HASH_CHARS = 16


class Asset(Struct, frozen=True, kw_only=True):
    """One file as it is served."""

    url: str
    media_type: str
    content: bytes


class Assets:
    """Every file of a folder, read once."""

    def __init__(self, folder: Path) -> None:
        self._by_name: dict[str, Asset] = {}
        self._by_served_name: dict[str, Asset] = {}
        for path in sorted(folder.iterdir()):
            if (media_type := _TYPES.get(path.suffix)) is None:
                continue
            content = path.read_bytes()
            served = f"{path.stem}.{hashlib.sha256(content).hexdigest()[:_HASH_CHARS]}{path.suffix}"
            asset = Asset(url=f"{ASSETS_PATH}/{served}", media_type=media_type, content=content)
            self._by_name[path.name] = self._by_served_name[served] = asset

    def url(self, name: str) -> str:
        """Return the address of the file that is called so in the folder."""
        return self._by_name[name].url

    def served(self, name: str) -> Asset | None:
        """Return the file that is served under this name, or None: an old name is not answered with new content."""
        return self._by_served_name.get(name)
