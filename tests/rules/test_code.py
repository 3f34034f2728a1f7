"""What an import linter cannot see: commits, clocks, chance and floats are where they belong and nowhere else."""

import ast
import re
from functools import cache
from pathlib import Path

from cambist.services.identity.sessions import SAME_AGAIN_S

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path
    for folder in [ROOT / "core/src", ROOT / "web/src", ROOT / "tasks/src", *ROOT.glob("plugins/*/src")]
    for path in folder.rglob("*.py")
    if not {"testing", "tests"} & set(path.relative_to(ROOT).parts)
)

CLOCKS = {"now", "utcnow", "today", "time", "time_ns"}
CLOCK_OWNERS = {"datetime", "date", "time"}
CHANCE = {"random", "uuid", "secrets"}

PORTS = {"core/src/cambist/ports.py"}
EDGES = {
    "core/src/cambist/db/engine.py": "the edge itself",
    "core/src/cambist/db/migrations/env.py": "migrations commit their own transactions",
}
MONEY = ("domain", "services", "db")


def name_of(path):
    return str(path.relative_to(ROOT))


@cache
def nodes(path):
    return list(ast.walk(ast.parse(path.read_text())))


@cache
def calls(path):
    return [(node, ast.unparse(node.func)) for node in nodes(path) if isinstance(node, ast.Call)]


def places(wanted, *, outside=()):
    """Return where there is a call whose text is wanted, in every module but some."""
    return [
        f"{name_of(path)}:{node.lineno}: {text}"
        for path in SOURCES
        if name_of(path) not in outside
        for node, text in calls(path)
        if wanted(text)
    ]


def test_nothing_commits_but_the_edge():
    assert places(lambda text: text.split(".")[-1] in {"commit", "rollback"}, outside=EDGES) == []


def test_no_module_has_a_clock_of_its_own():
    def is_clock(text):
        owner, _, attribute = text.rpartition(".")
        return attribute in CLOCKS and owner.split(".")[-1] in CLOCK_OWNERS

    assert places(is_clock, outside=PORTS) == []


def test_no_module_has_chance_of_its_own():
    imported = [
        (name_of(path), alias.name)
        for path in SOURCES
        if name_of(path) not in PORTS
        for node in nodes(path)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name.split(".")[0] in CHANCE
    ]
    assert imported == []
    assert places(lambda text: text in {"os.urandom", "uuid4", "token_bytes", "token_hex"}, outside=PORTS) == []


def test_money_is_counted_without_floats():
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in SOURCES
        if any(part in path.relative_to(ROOT).parts for part in MONEY)
        for node, text in calls(path)
        if text == "float" and not isinstance(node.args[0], ast.Constant)
    ]
    assert found == []


def test_pages_ask_again_for_a_lost_refresh_while_the_gateway_gives_the_same_answer():
    session = (ROOT / "web/dashboard/src/api/session.ts").read_text()
    asks_again = re.search(r"ASK_AGAIN_MS = ([\d_]+);", session)
    assert asks_again is not None
    # As long again is left for what asks once more to reach the gateway.
    assert 2 * int(asks_again[1]) < 1000 * SAME_AGAIN_S


def test_commands_write_out_what_cannot_be_seen():
    """A stranger's text does nothing to the operator's terminal."""
    allowed = {"core/src/cambist/cli/terminal.py", "core/src/cambist/cli/__init__.py"}
    assert places(lambda text: text == "click.echo", outside=allowed) == []


def test_no_certificate_goes_unchecked():
    unchecked = {"ssl": {"False"}, "verify": {"False"}, "verify_ssl": {"False"}, "check_hostname": {"False"}}
    found = [
        f"{name_of(path)}:{node.lineno}: {keyword.arg}={ast.unparse(keyword.value)}"
        for path in SOURCES
        for node, _ in calls(path)
        for keyword in node.keywords
        if ast.unparse(keyword.value) in unchecked.get(keyword.arg or "", ())
    ]
    named = [name_of(path) for path in SOURCES if re.search("CERT_NONE|unverified_context", path.read_text())]
    assert (found, named) == ([], [])
