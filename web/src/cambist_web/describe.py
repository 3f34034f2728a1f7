"""Writes the API descriptions to files, to generate clients from: ``python -m cambist_web.describe FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from cambist.settings import WebSettings

from .app import build_app
from .openapi.audiences import Audience, of_audience
from .openapi.description import described


def write_descriptions(folder: Path) -> None:
    """Write ``<audience>.json`` for each audience into a folder, which is made where it is missing."""
    whole = msgspec.json.decode(described(build_app(WebSettings())))
    folder.mkdir(parents=True, exist_ok=True)
    for audience in Audience:
        content = msgspec.json.format(msgspec.json.encode(of_audience(whole, audience)), indent=1)
        (folder / f"{audience.value}.json").write_bytes(content)


if __name__ == "__main__":
    write_descriptions(Path(sys.argv[1]))
