"""`make bench` runs to its end, and lets figures be written down only from a whole run at one commit."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / "bench" / "run.py"
COMMIT = "0123456789ab"

GOOD = """
from _harness import Table, publish
publish(Table(title="Title", note="a note", heads=("", "ours"), lines=[("a line", "1/s")]))
"""


@pytest.fixture
def runner(monkeypatch):
    monkeypatch.syspath_prepend(str(RUNNER.parent))
    spec = importlib.util.spec_from_file_location("bench_run", RUNNER)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_run", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def results(runner):
    table = runner.Table(title="Title", note="a note", heads=("", "ours"), lines=[("a line", "1/s")])
    return runner.Results(
        commit=COMMIT, machine="2 cores", day="2030-01-01", load=0.5, tables={"bench_one.py": [table]}
    )


@pytest.fixture
def objections(runner, results):
    def ask(*, commit_now=COMMIT, tiny=False, **changes):
        changed = msgspec.structs.replace(results, **changes)
        return runner.objections(changed, commit_now=commit_now, wanted=["bench_one.py"], tiny=tiny)

    return ask


def benchmark(folder, name, text):
    file = folder / name
    file.write_text(f"import sys\nsys.path.insert(0, {str(RUNNER.parent)!r})\n{text}")
    return file


def test_it_goes_on_after_a_benchmark_that_fails_and_says_so_at_the_end(tmp_path):
    files = [
        benchmark(tmp_path, "bench_bad.py", "sys.exit(3)"),
        benchmark(tmp_path, "bench_silent.py", ""),
        benchmark(tmp_path, "bench_good.py", GOOD),
    ]
    ended = subprocess.run([sys.executable, RUNNER, *files], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "a line" in ended.stdout
    assert "Not to be written down" in ended.stdout
    assert ended.stderr.strip() == "Failed: bench_bad.py, bench_silent.py"


def test_a_whole_run_at_one_commit_may_be_written_down(objections):
    assert objections() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"failed": ["bench_one.py"]},
        {"tables": {}},
        {"tiny": True},
        {"commit": ""},
        {"commit_now": ""},
        {"commit": "", "commit_now": ""},
        {"commit_now": "ba9876543210"},
    ],
    ids=str,
)
def test_nothing_else_may(objections, changes):
    assert len(objections(**changes)) == 1


def test_recording_replaces_the_tables_and_leaves_the_text(runner, results):
    document = "A\n<!-- measured: run -->\nold\n<!-- end -->\nB\n<!-- measured: bench_one.py -->\n<!-- end -->\nC\n"
    recorded = runner.record(document, results)
    assert f"Measured at commit `{COMMIT}` on 2030-01-01: 2 cores; load before the run 0.5." in recorded
    assert "|  | ours |\n| --- | --- |\n| a line | 1/s |\n<!-- end -->\nC\n" in recorded
    assert "old" not in recorded
    assert runner.record(recorded, results) == recorded


def test_a_benchmark_without_a_place_in_the_document_is_not_dropped(runner, results):
    with pytest.raises(LookupError):
        runner.record("<!-- measured: run -->\n<!-- end -->\n", results)


def test_the_document_has_a_place_for_each_benchmark_and_names_one_commit_at_most(runner):
    document = runner.DOCUMENT.read_text()
    places = re.findall(r"<!-- measured: (\S+) -->", document)
    assert sorted(places) == sorted([runner.RUN, *(file.name for file in runner.benchmarks())])
    assert len(re.findall(r"Measured at commit `[0-9a-f]{12}`", document)) <= 1
