"""What every benchmark shares: rounds that alternate between the sides, medians, and a table that hides no loss."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

ROUNDS = 5

Rates = Mapping[str, Sequence[float]]


class Row(Struct, frozen=True, kw_only=True):
    """One line of the table. ``aim`` is None where a figure is only told."""

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
    """Run every side once per round, in turn, so that whatever else the machine does falls on all of them."""
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


def told(what: str, value: str) -> Row:
    """Tell a figure that nothing is asked of."""
    return Row(what=what, ours=value)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def report(title: str, rows: Sequence[Row], *, note: str) -> None:
    """Print the table. A loss is printed like a win."""
    heads = ("", "ours", "other side", "ratio", "aim", "met")
    lines = [
        (row.what, row.ours, row.other, row.ratio, row.aim or "-", {None: "-", True: "yes", False: "NO"}[row.met])
        for row in rows
    ]
    widths = [max(len(line[column]) for line in (heads, *lines)) for column in range(len(heads))]
    print(f"\n{title}\n{note}\n{environment()}\n")
    for line in (heads, tuple("-" * width for width in widths), *lines):
        cells = [
            line[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
        ]
        print("  ".join(cells).rstrip())
    print(flush=True)


def environment() -> str:
    """Say on what this was measured, and how busy that was with other things."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    load = f", load {os.getloadavg()[0]:.1f}"
    return f"{os.cpu_count()} cores, {model}, Python {platform.python_version()}, {platform.system()}{load}"
