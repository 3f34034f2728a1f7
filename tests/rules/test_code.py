"""What an import linter cannot see: commits, clocks, chance and floats are where they belong and nowhere else."""

import ast
from pathlib import Path

import pytest

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


def calls(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield node, ast.unparse(node.func)


def places(path, wanted):
    return [f"{name_of(path)}:{node.lineno}: {text}" for node, text in calls(path) if wanted(text)]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
class TestModule:
    def test_it_does_not_commit(self, path):
        if name_of(path) in EDGES:
            return
        assert places(path, lambda text: text.split(".")[-1] in {"commit", "rollback"}) == []

    def test_it_has_no_clock_of_its_own(self, path):
        if name_of(path) in PORTS:
            return

        def is_clock(text):
            owner, _, attribute = text.rpartition(".")
            return attribute in CLOCKS and owner.split(".")[-1] in CLOCK_OWNERS

        assert places(path, is_clock) == []

    def test_it_has_no_chance_of_its_own(self, path):
        if name_of(path) in PORTS:
            return
        imported = {
            alias.name.split(".")[0]
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert not imported & CHANCE
        assert places(path, lambda text: text in {"os.urandom", "uuid4", "token_bytes", "token_hex"}) == []

    def test_it_counts_money_without_floats(self, path):
        if not any(part in path.relative_to(ROOT).parts for part in MONEY):
            return
        found = [
            f"{name_of(path)}:{node.lineno}"
            for node, text in calls(path)
            if text == "float" and not isinstance(node.args[0], ast.Constant)
        ]
        assert found == []
