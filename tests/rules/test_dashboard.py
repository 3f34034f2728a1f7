"""What the API permits people is in their dashboard, or is said here to be for programs, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from msgspec import Struct

from tests.support.access import BY_MEMBERS, found_in
from tests.support.web import shown_app

SOURCES = Path("web/dashboard/src")
CALL = re.compile(r'\b(?:api|withToken)\s*\.(GET|POST|PUT|PATCH|DELETE)\(\s*(?:"([^"]+)"|`([^`]+)`|(\w+))')
CONSTANT = re.compile(r'\bconst (\w+) = "(/api/[^"]+)"')


class Dashboard(Struct, frozen=True, kw_only=True):
    """One dashboard: whom it is for, and what of theirs it leaves out."""

    folder: str
    doors: frozenset[str]
    permitted_min: int
    elsewhere: dict[str, str]
    """What is used without the generated client, each with how."""
    for_programs: dict[str, str]
    """What no page needs, each with a reason."""


OF_PROJECT = "/api/dashboard/projects/{}"
OPERATORS = Dashboard(
    folder="operator",
    doors=frozenset({"operator"}),
    permitted_min=80,
    elsewhere={
        "GET /api/admin/stream": "the page listens to it by `useLive`, which no client is generated for",
        "GET /api/admin/jobs/{}/output": "a file, which `downloadCsv` saves",
    },
    for_programs={
        "GET /api/admin/chains/{}/endpoints/{}": "a chain has all of its endpoints with it",
        "GET /api/admin/tokens/{}": "it says what becomes of an added one; the list says it, too, and is read again",
    },
)
MERCHANTS = Dashboard(
    folder="merchant",
    doors=frozenset(BY_MEMBERS | {"tracker"}),
    permitted_min=120,
    elsewhere={
        "GET /api/dashboard/stream": "the page listens to it by `useLive`, which no client is generated for",
        f"GET {OF_PROJECT}/wallet/transactions.csv": "a file, which `downloadCsv` saves",
        "POST /api/auth/step-up": "the session asks for the code itself, whatever page wanted it",
    },
    for_programs={
        f"GET {OF_PROJECT}/wallet/balance": "one token's; the wallet has those of all tokens",
        "GET /api/merchant/projects/{}": "the list of projects has all of each",
        "POST /api/webhook/create": "pages make trackers below the project, as of one it is known which is meant",
        # With a tracker's own token, programs do what pages do by the session, below the project.
        "GET /api/webhook/get": "pages read it below the project",
        "POST /api/webhook/activate": "pages do it below the project",
        "POST /api/webhook/deactivate": "pages do it below the project",
        "POST /api/webhook/history/cancel": "pages do it below the project",
        "POST /api/webhook/history/restart": "pages do it below the project",
        "POST /api/webhook/redeliver": "pages do it below the project",
        "POST /api/webhook/address/add": "pages add any number of them at once",
        "POST /api/webhook/address/remove-bulk": "a page asks about each address that is to go",
    },
)
DASHBOARDS = {"operators": OPERATORS, "merchants": MERCHANTS}


def _unnamed(path: str) -> str:
    return re.sub(r"\{[^}]+\}", "{}", path)


def _chosen(above: dict[str, str], part: re.Match[str]) -> str:
    return above.get(part[1], "*")


def _called(text: str) -> Iterator[str]:
    """Yield what a file asks the API for: by a path, by the last constant of that name above, or by one and an end.

    An end that is chosen while the page runs is `*`.
    """
    for call in CALL.finditer(text):
        method, literal, template, name = call.groups()
        above = dict(CONSTANT.findall(text[: call.start()]))
        if template is not None:
            literal = re.sub(r"\$\{(\w+)\}", partial(_chosen, above), template)
        yield f"{method} {_unnamed(literal or above.get(name, name))}"


def _used(folder: str) -> set[str]:
    files = [file for file in (SOURCES / folder).rglob("*.ts*") if ".test." not in file.name]
    return {call for file in files for call in _called(file.read_text())}


def _fits(operation: str, called: str) -> bool:
    return re.fullmatch(re.escape(called).replace(r"\*", "[a-z-]+"), operation) is not None


@pytest.fixture(scope="module")
def rows():
    """Give what the app says of its routes, which needs no gateway."""
    return set(found_in(shown_app()))


@pytest.mark.parametrize("whose", DASHBOARDS)
def test_what_people_are_permitted_is_in_their_dashboard_or_said_to_be_for_programs(rows, whose):
    dashboard = DASHBOARDS[whose]
    permitted = {f"{row.method} {_unnamed(row.path)}" for row in rows if row.door in dashboard.doors}
    assert len(permitted) > dashboard.permitted_min
    called = _used(dashboard.folder)
    used = {one for one in permitted if any(_fits(one, pattern) for pattern in called)}
    listed = dashboard.elsewhere.keys() | dashboard.for_programs.keys()
    assert permitted - used - listed == set()
    # What is listed is still there, and is used by no page.
    assert listed - permitted == set()
    assert listed & used == set()


def test_every_class_that_a_page_names_is_one_of_the_styles():
    styled = {
        name
        for sheet in SOURCES.rglob("*.css")
        if not sheet.name.endswith(".module.css")
        for name in re.findall(r"\.([a-zA-Z][\w-]*)", sheet.read_text())
    }
    named = {
        (page.name, name)
        for page in SOURCES.rglob("*.tsx")
        if not page.name.endswith(".test.tsx")
        for names in re.findall(r'className="([^"]+)"', page.read_text())
        for name in names.split()
    }
    assert len(named) >= 200
    assert {one for one in named if one[1] not in styled} == set()
