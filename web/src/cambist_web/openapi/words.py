"""A sentence for each field and parameter of the API, by its name: what the description says of it.

They stand in ``words.txt``, one a line, in the order of their names. Where a name means something else in one Struct,
``own_words.py`` has a sentence for that Struct's field. A field that holds a Struct, or several, needs none: the
Struct's docstring is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def read(lines: str) -> Mapping[str, str]:
    """Return the sentence of each name: one of both a line."""
    return dict(line.split(maxsplit=1) for line in lines.strip().splitlines())


WORDS: Mapping[str, str] = read(Path(__file__).with_name("words.txt").read_text())
