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


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_nothing_is_run_where_cells_are_parted_at_semicolons(sign):
    """Spreadsheets do so in every language that writes 1,5."""
    for before in ("", "a", "a;", "a; ", 'a;"', "a\t"):
        text = f"{before};{sign}WEBSERVICE(A1);b"
        line = csv_lines([["x", text, "-1"], ["-2", "c;", "-3"]]).decode()
        cells = [cell for row in line.splitlines() for cell in row.replace("\t", ";").split(";")]
        assert not [cell for cell in cells if cell.strip(' "').startswith(sign) and "WEBSERVICE" in cell]
        assert [row.split(",")[-1] for row in line.splitlines()] == ["-1", "-3"]


def test_what_stands_behind_a_semicolon_is_else_as_it_was():
    assert csv_lines([["a;b; c", '{"x":"a;b"}'], ["d;", "-1"]]) == b'a;b; c,"{""x"":""a;b""}"\r\nd;,-1\r\n'


@pytest.mark.parametrize("broken", ["\n", "\r", "\r\n", "\n ", '\n"'])
def test_nothing_is_run_behind_a_line_break_in_a_text(broken):
    """A quote within a cell is none where cells are parted at semicolons: what a receiver answered had lines."""
    line = csv_lines([["x", f"no{broken}=WEBSERVICE(A1)\nyes", "-1"], ["-2", "c", "-3"]]).decode()
    assert not [one for one in line.splitlines() if one.lstrip(' "').startswith("=")]
    assert line.endswith("-1\r\n-2,c,-3\r\n")
