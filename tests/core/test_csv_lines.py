"""Values in files that a spreadsheet might take for something else."""

from __future__ import annotations

import pytest

from cambist.services.csv_lines import csv_lines, harmless


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_a_text_that_a_spreadsheet_would_run_begins_with_an_apostrophe(first):
    text = f"{first}HYPERLINK()"
    assert harmless(text) == f"'{text}"
    assert csv_lines([["a", harmless(text)]]).decode().startswith(("a,'", "a,\"'"))
    assert harmless(f"order {text}") == f"order {text}"
