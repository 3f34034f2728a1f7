"""Run benchmarks one after another: all of them, or those named. Goes on after one that fails, and exits with 1 then.

What all of them measured in one run is written to ``bench/results.json``, with the commit and the machine. With
``--record`` it also replaces the tables in docs/benchmarks.md. Neither happens where a benchmark failed, where some
were left out or ran at their tiny size, or where the working tree is not the commit.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from _harness import RESULTS, Table, machine, sized
from msgspec import Struct, field

BENCH = Path(__file__).resolve().parent
DOCUMENT = BENCH.parent / "docs" / "benchmarks.md"
RUN = "run"
"""The block of the document that says at which commit, and on what machine, everything was measured."""


class Results(Struct, frozen=True, kw_only=True):
    """What one run measured, by the benchmark's file name; ``load`` is the machine's before it began."""

    commit: str
    machine: str
    day: str
    load: float
    tables: Mapping[str, Sequence[Table]] = field(default_factory=dict)
    failed: Sequence[str] = ()


def benchmarks() -> list[Path]:
    return sorted(BENCH.glob("bench_*.py"))


def run(files: Sequence[Path]) -> Results:
    """Run these, and say at the end which failed."""
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    begun = Results(commit=commit(), machine=machine(), day=day, load=os.getloadavg()[0])
    tables: dict[str, list[Table]] = {}
    failed = []
    for file in files:
        print(f"== {file.name}", flush=True)
        with tempfile.NamedTemporaryFile(prefix="cambist-bench-") as found:
            ended = subprocess.run([sys.executable, str(file)], env={**os.environ, RESULTS: found.name}, check=False)
            tables[file.name] = msgspec.json.Decoder(Table).decode_lines(found.read())
        if ended.returncode or not tables[file.name]:
            failed.append(file.name)
    return msgspec.structs.replace(begun, tables=tables, failed=failed)


def commit() -> str:
    """Return the commit that the working tree is, or nothing where it was changed since."""
    if _git("status", "--porcelain"):
        return ""
    return _git("rev-parse", "--short=12", "HEAD")


def _git(*arguments: str) -> str:
    ended = subprocess.run(["git", *arguments], cwd=BENCH, capture_output=True, text=True, check=False)  # noqa: S607
    return ended.stdout.strip() if ended.returncode == 0 else "no repository"


def objections(results: Results, *, commit_now: str, wanted: Sequence[str], tiny: bool) -> list[str]:
    """Return why these results must not be written down."""
    found = []
    if results.failed:
        found.append(f"failed: {', '.join(results.failed)}")
    if missing := [name for name in wanted if name not in results.tables]:
        found.append(f"left out: {', '.join(missing)}")
    if tiny:
        found.append("the tiny size measures nothing")
    if not re.fullmatch("[0-9a-f]{12}", results.commit) or commit_now != results.commit:
        found.append("the working tree is not the commit, or did not stay so")
    return found


def record(document: str, results: Results) -> str:
    """Replace the tables of a document. Raises LookupError where one has no place in it, or a place no benchmark."""
    pattern = re.compile(r"(<!-- measured: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
    blocks = {RUN: _run_line(results), **{name: _markdown(tables) for name, tables in results.tables.items()}}
    if sorted(name for _, name, _ in pattern.findall(document)) != sorted(blocks):
        raise LookupError("each benchmark has one block of tables in the document, and each block its benchmark")
    return pattern.sub(lambda found: f"{found[1]}{blocks[found[2]]}\n{found[3]}", document)


def _run_line(results: Results) -> str:
    return (
        f"Measured at commit `{results.commit}` on {results.day}: {results.machine}; load before the run"
        f" {results.load:.1f}."
    )


def _markdown(tables: Sequence[Table]) -> str:
    return "\n\n".join(
        "\n".join(
            [
                f"{table.title}; {table.note}.",
                "",
                *(f"| {' | '.join(line)} |" for line in (table.heads, ["---"] * len(table.heads), *table.lines)),
            ]
        )
        for table in tables
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="which to run, all by default")
    parser.add_argument("--record", action="store_true", help="replace the tables in docs/benchmarks.md")
    options = parser.parse_args()
    results = run(options.files or benchmarks())
    against = objections(
        results,
        commit_now=commit(),
        wanted=[file.name for file in benchmarks()],
        tiny=sized(full=False, tiny=True),
    )
    if not against:
        target = BENCH / "results.json"
        target.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
        print(f"All measured at {results.commit}: see {target.relative_to(BENCH.parent)}")
        if options.record:
            DOCUMENT.write_text(record(DOCUMENT.read_text(), results))
    else:
        print(f"Not to be written down: {'; '.join(against)}")
    if results.failed:
        sys.exit(f"Failed: {', '.join(results.failed)}")
    if options.record and against:
        sys.exit(1)


if __name__ == "__main__":
    main()
