"""Lines of comma-separated values that no spreadsheet takes for anything but values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

# A spreadsheet runs what begins like this as a formula. Where full-width signs are typed, they count like the others.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def csv_lines(rows: Iterable[Sequence[str]]) -> bytes:
    """Return rows as lines, each ended by CR LF. Texts that others wrote go through ``harmless()`` first."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode()


def harmless(text: str) -> str:
    """Return a text with an apostrophe before it where a spreadsheet would run it."""
    return f"'{text}" if text.startswith(_FORMULA) else text
