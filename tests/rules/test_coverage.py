"""Every row of the merchants' specification has a test, every route is one of its rows or an addition of ours."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import get_args

import pytest
from msgspec import Struct

from cambist.domain.payments import Status
from cambist.domain.webhooks import EVENTS
from tests.e2e.specification import shapes
from tests.e2e.specification.rows import ROWS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/coverage.md"
SECTIONS = [
    "1", *(f"2.{number}" for number in range(12)), *(f"3.{number}" for number in range(1, 6)),
    *(f"4.{number}" for number in range(8)), "5", *(f"6.{number}" for number in range(1, 6)), "7", "8", "9", "A",
]  # fmt: skip
ROW = r"\| ([\dA][\d.]*)\.(\d+) \| (.+?) \| (.*?) ?\|"
ENDPOINT = re.compile(r"`([A-Z]+|\*) (/[^`]*)`")


class Row(Struct, frozen=True):
    """A row of the page: its section and its number there, what holds, and the tests as they are written."""

    section: str
    number: int
    what: str
    tests: str

    @property
    def first_words(self) -> Sequence[str]:
        """What the row begins with, in backticks."""
        begin = re.match(r"(`[^`]+`(, )?)*", self.what)
        return re.findall(r"`([^`]+)`", begin[0]) if begin else []


def rows() -> list[Row]:
    lines = (re.fullmatch(ROW, line) for line in PAGE.read_text().splitlines())
    return [Row(cells[1], int(cells[2]), cells[3], cells[4]) for cells in lines if cells is not None]


def words(section: str) -> set[str]:
    """Return what the rows of a section begin with."""
    return {word for row in rows() if row.section == section for word in row.first_words}


def fields(*kinds: type[Struct]) -> set[str]:
    return {name for kind in kinds for name in kind.__struct_encode_fields__}


def test_every_section_has_its_rows_and_they_are_counted():
    numbers = defaultdict(list)
    for row in rows():
        numbers[row.section].append(row.number)
    assert list(numbers) == SECTIONS
    assert all(found == list(range(1, len(found) + 1)) for found in numbers.values())
    tables = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    assert len(tables) == len(rows()) + 2 * len(SECTIONS), "a line that is no row, or not read as one"


def test_every_row_has_tests_and_each_of_them_exists():
    for row in rows():
        assert re.fullmatch(r"`[\w/]+\.py::test_\w+`(, `[\w/]+\.py::test_\w+`)*", row.tests), row
        for name, test in re.findall(r"`([\w/.]+)::(test_\w+)`", row.tests):
            folder = ROOT if name.startswith("plugins/") else ROOT / "tests"
            assert re.search(rf"^(async )?def {test}\(", (folder / name).read_text(), re.MULTILINE), row


def test_every_endpoint_that_is_covered_is_replayed():
    covered = [row for row in rows() if row.section.startswith("4.") and ENDPOINT.match(row.what)]
    named = [word for row in covered for word in row.first_words if " /" in word]
    assert sorted(named) == sorted(ROWS)
    replay = "".join(path.read_text() for path in (ROOT / "tests/e2e/specification").glob("test_*.py"))
    for row in covered:
        assert f'"{row.first_words[0]}"' in replay, row
        assert "e2e/specification/" in row.tests, row
    assert all(issubclass(row.answer, shapes.Success) for row in ROWS.values())


def test_every_route_is_covered_or_an_addition_and_no_addition_is_of_the_past():
    # That these are all routes, and with which credential, is the rule of test_documentation.py.
    api = (ROOT / "docs/merchants/api.md").read_text()
    routes = set(re.findall(r"^\| `([A-Z]+ /[^`]*)` \|", api, re.MULTILINE))
    assert set(ROWS) <= routes
    additions = [
        " ".join(found) for row in rows() if row.section == "A" for found in ENDPOINT.findall(row.what)
    ]  # fmt: skip
    ours = routes - set(ROWS)
    assert {route for route in ours if not any(fnmatchcase(route, one) for one in additions)} == set()
    assert [one for one in additions if not any(fnmatchcase(route, one) for route in ours)] == []


@pytest.mark.parametrize(
    "section, kinds",
    [
        ("2.1", [shapes.PaymentInFull]),
        ("2.2", [shapes.Quoted]),
        ("2.3", [shapes.Chain]),
        ("2.4", [shapes.Token]),
        ("2.5", [shapes.Payout]),
        ("2.6", [shapes.Exchange]),
        ("2.7", [shapes.Tracker, shapes.NewTracker]),
        ("2.8", [shapes.Project]),
        ("2.9", [shapes.Account]),
    ],
)
def test_every_field_that_is_covered_is_looked_for_in_the_answers(section, kinds):
    known = fields(*kinds)
    assert known <= words(section)
    assert words(section) - known <= {"tron", "webhookSecret"}


def test_states_events_and_errors_are_those_of_the_gateway():
    assert words("3.1") == set(Status) == set(get_args(shapes.PaymentStatus))
    assert words("6.4") == set(EVENTS)
    codes = {word for word in words("7") if word.isupper()}
    assert len(codes) == 6
    assert codes <= set(re.findall(r"`([A-Z_]+)`", (ROOT / "docs/merchants/errors.md").read_text()))
    assert {word for word in words("6.1") if word.startswith("X-")} == {
        "X-Webhook-Signature", "X-Webhook-Timestamp", "X-Webhook-Event", "X-Webhook-Test",
    }  # fmt: skip
