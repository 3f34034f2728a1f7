"""How a scan fares with a hundred million addresses watched, beside a thousand: speed, memory, and how it starts.

The table is filled for real up to three million; a hundred million are in the filter alone.
"""

from __future__ import annotations

import sys

import _chain
import _tron_chain
from _child import Child
from _harness import Row, alternate, at_most, compare, report, sized, unjudged
from _scan_fill import WatchedAddresses, fill
from _servers import migrated_servers
from bench_tron_scan import others

from cambist_chainkit.eip55 import spell

FEW = sized(1_000, tiny=100)
TABLE = sized(3_000_000, tiny=300)
MANY = sized(100_000_000, tiny=2_000)
BLOCKS = sized(100, tiny=20)
MEMORY_MB_MAX = 300
START_S_MAX = 10
MISTAKEN_PER_MILLION_MAX = 1_000
SPEED_KEPT = 0.8


def ethereum() -> WatchedAddresses:
    recipients = [spell(text[2:]) for text in _chain.paid_addresses(BLOCKS)]
    return WatchedAddresses(chain="ethereum", family="evm", contract=spell(_chain.USDT[2:]), recipients=recipients)


def tron() -> WatchedAddresses:
    recipients = _tron_chain.paid_addresses(BLOCKS)
    return WatchedAddresses(
        chain="tron", family="tron", contract=_tron_chain.USDT, recipients=recipients, others=others
    )


def measure_crowd(watching: WatchedAddresses, node_url: str, many: int) -> list[Row]:
    """Compare a scanner that knows a few with one that knows many, beside the same node and database."""
    name = watching.chain
    with migrated_servers() as (database_url, _):
        fill(database_url, watching, FEW)
        arguments = ("_filter_sides:CrowdedScanner", database_url, node_url, BLOCKS, name)
        with Child(*arguments) as few, Child(*arguments) as crowded:
            count, _ = few.call("load")
            assert count == FEW
            memory_mb, filled_s = crowded.call("crowd", many)
            for side in (few, crowded):
                side.call("scan")  # connections and statements are known from here on
            scans = alternate({"many": lambda: crowded.call("scan"), "few": lambda: few.call("scan")})
            lookups = alternate({"many": lambda: crowded.call("lookups"), "few": lambda: few.call("lookups")})
            mistaken = crowded.call("mistaken")
            saved_s, loaded_s, file_mb = crowded.call("restart")
    return [
        compare(f"{name}: scan, {many:,} beside {FEW:,}", scans["many"], scans["few"], aim=SPEED_KEPT, percent=True),
        compare(f"{name}: lookups alone", lookups["many"], lookups["few"], aim=None, percent=True),
        at_most(f"{name}: memory of {many:,}", memory_mb, MEMORY_MB_MAX, " MB"),
        at_most(f"{name}: mistaken of a million", mistaken * 1e6, MISTAKEN_PER_MILLION_MAX, ""),
        unjudged(f"{name}: filling it", f"{filled_s:.0f} s"),
        unjudged(f"{name}: writing a snapshot of {file_mb:,.1f} MB", f"{saved_s:.1f} s"),
        at_most(f"{name}: start from the snapshot", loaded_s, START_S_MAX, " s"),
    ]


def measure_table(watching: WatchedAddresses, node_url: str, watched: int) -> list[Row]:
    """Start from a table that is filled for real, and from the snapshot of it."""
    with migrated_servers() as (database_url, _):
        fill(database_url, watching, watched)
        with Child("_filter_sides:CrowdedScanner", database_url, node_url, BLOCKS, watching.chain) as scanner:
            count, read_s = scanner.call("load")
            assert count >= watched * 0.99
            scanner.call("scan")
            saved_s, loaded_s, file_mb = scanner.call("restart")
            memory_mb = scanner.call("memory_mb")
    return [
        unjudged(f"{watched:,} in the table: start without a snapshot", f"{read_s:.1f} s"),
        at_most(f"{watched:,} in the table: start from one", loaded_s, START_S_MAX, " s"),
        unjudged(f"{watched:,} in the table: writing a snapshot of {file_mb:,.1f} MB", f"{saved_s:.1f} s"),
        unjudged(f"{watched:,} in the table: memory of the whole process at its highest", f"{memory_mb:,.0f} MB"),
    ]


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else MANY
    with Child("_chain:ReplayNode", BLOCKS) as node:
        rows = measure_table(ethereum(), node.call("address"), TABLE)
        rows += measure_crowd(ethereum(), node.call("address"), many)
    with Child("_tron_chain:ReplayNode", BLOCKS, 1) as node:
        rows += measure_crowd(tron(), node.call("address"), many)
    report("Scanning with a hundred million addresses watched", rows, note=f"{BLOCKS} blocks a round")


if __name__ == "__main__":
    main()
