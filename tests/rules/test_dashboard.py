"""What the API permits operators is in their dashboard, or is said here to be for programs, and why."""

from __future__ import annotations

import re
from pathlib import Path

from cambist_web.app import build_app
from tests.support.access import found_in
from tests.support.web import web_settings

SOURCES = Path("web/dashboard/src")
CALL = re.compile(r'\bapi\s*\.(GET|POST|PUT|PATCH|DELETE)\(\s*(?:"([^"]+)"|([A-Z_]+))')
CONSTANT = re.compile(r'const ([A-Z_]+) = "(/api/[^"]+)"')
ELSEWHERE = {
    "GET /api/admin/stream": "the page listens to it by `useLive`, which no client is generated for",
    "GET /api/admin/jobs/{}/output": "a file, which `downloadCsv` saves",
}
"""What is used without the generated client."""
FOR_PROGRAMS = {
    "GET /api/admin/chains/{}/endpoints/{}": "a chain has all of its endpoints with it",
    "GET /api/admin/tokens/{}": "it says what becomes of one that was added; the list says it, too, and is read again",
}
"""What no page needs, each with a reason."""


def _unnamed(path: str) -> str:
    return re.sub(r"\{[^}]+\}", "{}", path)


def _used() -> set[str]:
    found = set()
    for file in (*SOURCES.rglob("*.ts"), *SOURCES.rglob("*.tsx")):
        if ".test." in file.name:
            continue
        text = file.read_text()
        constants = dict(CONSTANT.findall(text))
        for method, path, name in CALL.findall(text):
            found.add(f"{method} {_unnamed(path or constants.get(name, name))}")
    return found


def test_what_operators_are_permitted_is_in_their_dashboard_or_said_to_be_for_programs():
    rows = found_in(build_app(web_settings("postgresql://nobody/none", "redis://nobody").web))
    permitted = {f"{row.method} {_unnamed(row.path)}" for row in rows if row.door == "operator"}
    assert len(permitted) > 80
    listed = ELSEWHERE.keys() | FOR_PROGRAMS.keys()
    assert permitted - _used() - listed == set()
    # What is listed is still there, and is used by no page.
    assert listed - permitted == set()
    assert FOR_PROGRAMS.keys() & _used() == set()
