"""How fast a chain is read the whole way: fetched over HTTP, checked, matched, and stored with its cursor.

Blocks of 250 transactions and about 600 logs, a deposit in each; 1 thousand to 3 million addresses watched.
"""

from __future__ import annotations

import sys

from _chain import USDT, paid_addresses
from _child import Child
from _harness import Row, alternate, at_most, compare, report, sized, unjudged
from _scan_fill import WatchedAddresses, fill
from _servers import migrated_servers

from cambist_chainkit.eip55 import spell

SIZES = sized((1_000, 100_000, 3_000_000), tiny=(100,))
BLOCKS = sized(200, tiny=10)
WEB3_BLOCKS = sized(8, tiny=1)
MEMORY_MB_MAX = 500


def measure(watched: int, node_url: str) -> list[Row]:
    with migrated_servers() as (database_url, _):
        recipients = [spell(text[2:]) for text in paid_addresses(BLOCKS)]
        watching = WatchedAddresses(chain="ethereum", family="evm", contract=spell(USDT[2:]), recipients=recipients)
        fill(database_url, watching, watched)
        with (
            Child("_scan_ours:Scanner", database_url, node_url, BLOCKS) as scanner,
            Child("_scan_ours:Decoder", BLOCKS) as decoder,
            Child("_scan_web3:Web3Reader", node_url, WEB3_BLOCKS) as web3,
        ):
            count, load_s = scanner.call("load")
            assert watched * 0.999 <= count <= watched, "the filter takes a few strangers for those it knows"
            scanner.call("scan")  # connections, statements and the node's abilities are known from here on
            found = alternate(
                {
                    "ours": lambda: scanner.call("scan"),
                    "decoding": lambda: decoder.call("run"),
                    "web3": lambda: web3.call("scan"),
                }
            )
            memory_mb = scanner.call("memory_mb")
    return [
        compare(f"{watched:,} watched, beside web3.py", found["ours"], found["web3"], aim=20),
        compare(f"{watched:,} watched, beside decoding alone", found["ours"], found["decoding"], aim=0.4, percent=True),
        at_most(f"{watched:,} watched, memory at its highest", memory_mb, MEMORY_MB_MAX, " MB"),
        unjudged(f"{watched:,} watched, reading them at the start", f"{load_s:.1f} s"),
    ]


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or SIZES
    rows: list[Row] = []
    with Child("_chain:ReplayNode", BLOCKS) as node:
        for watched in sizes:
            rows += measure(watched, node.call("address"))
    report(
        "Reading a chain, the whole way into PostgreSQL (blocks per second)",
        rows,
        note=f"{BLOCKS} blocks a round; web3.py reads {WEB3_BLOCKS} and stores nothing",
    )


if __name__ == "__main__":
    main()
