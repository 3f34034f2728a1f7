"""What every benchmark shares: its size, rounds that alternate between the sides, medians, and the table of results."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

SIZE = "CAMBIST_BENCH_SIZE"
"""``tiny`` has every benchmark do a little of its work once: to see that it runs, not how fast."""
RESULTS = "CAMBIST_BENCH_RESULTS"
"""Names a file to which the tables are also written, one JSON object a line."""

T = TypeVar("T")


def sized(full: T, *, tiny: T) -> T:
    """Return the first, or the second when the benchmark runs at its tiny size."""
    size = os.environ.get(SIZE, "full")
    if size not in {"full", "tiny"}:
        raise ValueError(f"{SIZE} is full or tiny, not {size}")
    return tiny if size == "tiny" else full


ROUNDS = sized(5, tiny=1)

Rates = Mapping[str, Sequence[float]]


class Table(Struct, frozen=True, kw_only=True):
    """What a benchmark prints. The first column says what a line is about."""

    title: str
    note: str
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]


class Row(Struct, frozen=True, kw_only=True):
    """One line of the table. ``aim`` is None where nothing is asked of a figure."""

    what: str
    ours: str
    other: str = "-"
    ratio: str = "-"
    aim: str | None = None
    met: bool | None = None


def rate(work: Callable[[], object], count: int) -> float:
    """Return how many of ``count`` pieces of work are done in a second."""
    started = time.perf_counter()
    work()
    return count / (time.perf_counter() - started)


def alternate(sides: Mapping[str, Callable[[], float]], rounds: int = ROUNDS) -> Rates:
    """Run every side once per round, in turn, so that what else the machine does slows all of them alike."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        # Who comes first changes, too.
        for name in list(sides)[:: 1 if number % 2 == 0 else -1]:
            found[name].append(sides[name]())
    return found


async def alternate_async(sides: Mapping[str, Callable[[], Awaitable[float]]], rounds: int = ROUNDS) -> Rates:
    """Do the same with sides that are awaited."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in list(sides)[:: 1 if number % 2 == 0 else -1]:
            found[name].append(await sides[name]())
    return found


def compare(
    what: str, ours: Sequence[float], other: Sequence[float], *, aim: float | None, percent: bool = False
) -> Row:
    """Compare rates by the median of the rounds' ratios; the aim is the least ratio that will do."""
    ratio = statistics.median(one / two for one, two in zip(ours, other, strict=True))
    return Row(
        what=what,
        ours=f"{statistics.median(ours):,.0f}/s",
        other=f"{statistics.median(other):,.0f}/s",
        ratio=_ratio(ratio, percent=percent),
        aim=None if aim is None else f">= {_ratio(aim, percent=percent)}",
        met=None if aim is None else ratio >= aim,
    )


def _ratio(value: float, *, percent: bool) -> str:
    return f"{value:.0%}" if percent else f"{value:.3g}x"


def at_least(what: str, value: float, aim: float, unit: str) -> Row:
    """Judge a figure that should be high."""
    return Row(what=what, ours=f"{value:,.0f}{unit}", aim=f">= {aim:,.0f}{unit}", met=value >= aim)


def at_most(what: str, value: float, aim: float, unit: str) -> Row:
    """Judge a figure that should be low."""
    digits = 1 if value < 100 else 0
    return Row(what=what, ours=f"{value:,.{digits}f}{unit}", aim=f"<= {aim:,.0f}{unit}", met=value <= aim)


def unjudged(what: str, value: str) -> Row:
    """Return a figure that has no aim."""
    return Row(what=what, ours=value)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def report(title: str, rows: Sequence[Row], *, note: str) -> None:
    """Print rows that compare with another side or with an aim. An aim that was missed is printed like one met."""
    lines = [
        (row.what, row.ours, row.other, row.ratio, row.aim or "-", {None: "-", True: "yes", False: "NO"}[row.met])
        for row in rows
    ]
    heads = ("", "ours", "other side", "ratio", "aim", "met")
    publish(Table(title=title, note=note, heads=heads, lines=lines))


def publish(table: Table) -> None:
    """Print the table, and write it to the file of results if one is named."""
    widths = [max(map(len, column)) for column in zip(table.heads, *table.lines, strict=True)]
    print(f"\n{table.title}\n{table.note}\n{machine()}, load {os.getloadavg()[0]:.1f}\n")
    for line in (table.heads, ["-" * width for width in widths], *table.lines):
        figures = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join([line[0].ljust(widths[0]), *figures]).rstrip())
    print(flush=True)
    if path := os.environ.get(RESULTS):
        with Path(path).open("ab") as results:
            results.write(msgspec.json.encode(table) + b"\n")


def machine() -> str:
    """Say what this runs on."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores of {model}, {memory_gib:.0f} GiB, {platform.system()},"
        f" Python {platform.python_version()}"
    )
