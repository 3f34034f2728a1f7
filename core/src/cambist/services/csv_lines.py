"""Lines of comma-separated values that no spreadsheet takes for anything but values."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

# A spreadsheet runs what begins like this as a formula. Where full-width signs are typed, they count like the others.
_SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"
_FORMULA = (*_SIGNS, "\t", "\r", "\n")

# Where a comma is in numbers, spreadsheets part cells at semicolons: what stands behind one begins a cell there.
_CELL_WITHIN = re.compile(f'([;\t][ "]*)([{re.escape(_SIGNS)}])')
# There, a quote that does not begin a cell is none, and a line break within it begins a line.
_LINE_WITHIN = re.compile(f'([\r\n][ "]*)([{re.escape(_SIGNS)}])')


def csv_lines(rows: Iterable[Sequence[str]]) -> bytes:
    """Return rows as lines, each ended by CR LF. Texts that others wrote go through ``harmless()`` first.

    What would be a formula behind a semicolon, or behind a line break in a text, has an apostrophe before it, too.
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(
        [_LINE_WITHIN.sub(r"\1'\2", cell) for cell in row] for row in rows
    )
    return _CELL_WITHIN.sub(r"\1'\2", text.getvalue()).encode()


def harmless(text: str) -> str:
    """Return a text with an apostrophe before it where a spreadsheet would run it."""
    return f"'{text}" if text.startswith(_FORMULA) else text
