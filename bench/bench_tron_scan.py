"""How fast TRON is read the whole way, as a multiple of the network's own pace: one block each three seconds.

Full blocks of 320 recorded transactions between other addresses, a deposit in each; a million addresses watched.
"""

from __future__ import annotations

import sys
from random import Random

from _child import Child
from _harness import Row, alternate, at_least, compare, report, sized, unjudged
from _scan_fill import WatchedAddresses, fill
from _servers import migrated_servers
from _tron_chain import BLOCK_S, TXS_PER_BLOCK, USDT, address, paid_addresses, spelled

WATCHED = sized(1_000_000, tiny=100)
BLOCKS = sized(100, tiny=20)
TRONPY_BLOCKS = sized(4, tiny=1)
TIMES_THE_NETWORK = 100


def others(count: int) -> list[str]:
    random = Random(3)
    return [spelled(address(random)) for _ in range(count)]


def measure(watched: int, node_url: str) -> list[Row]:
    with migrated_servers() as (database_url, _):
        recipients = paid_addresses(BLOCKS)
        watching = WatchedAddresses(chain="tron", family="tron", contract=USDT, recipients=recipients, others=others)
        fill(database_url, watching, watched)
        with (
            Child("_scan_ours:Scanner", database_url, node_url, BLOCKS, "tron") as scanner,
            Child("_scan_tronpy:TronpyReader", node_url, TRONPY_BLOCKS) as tronpy,
        ):
            count, load_s = scanner.call("load")
            assert watched * 0.999 <= count <= watched, "the filter takes a few strangers for those it knows"
            scanner.call("scan")  # connections and statements are known from here on
            found = alternate(
                {
                    "ours": lambda: scanner.call("scan"),
                    "at once": lambda: tronpy.call("at_once"),
                    "one by one": lambda: tronpy.call("one_by_one"),
                }
            )
            memory_mb = scanner.call("memory_mb")
    slowest = min(found["ours"])
    return [
        at_least("in the slowest round, beside the network", slowest * BLOCK_S, TIMES_THE_NETWORK, "x"),
        compare("beside tronpy, a block's results at once", found["ours"], found["at once"], aim=None),
        compare("beside tronpy, results one by one", found["ours"], found["one by one"], aim=20),
        unjudged("memory at its highest", f"{memory_mb:,.0f} MB"),
        unjudged("reading the addresses at the start", f"{load_s:.1f} s"),
    ]


def main() -> None:
    watched = int(sys.argv[1]) if len(sys.argv) > 1 else WATCHED
    with Child("_tron_chain:ReplayNode", BLOCKS, TRONPY_BLOCKS) as node:
        size = node.call("bytes_per_block")
        rows = measure(watched, node.call("address"))
    report(
        f"Reading TRON with {watched:,} addresses watched, the whole way into PostgreSQL (blocks per second)",
        rows,
        note=f"{BLOCKS} blocks of {TXS_PER_BLOCK} transactions ({size / 1e6:.2f} MB of JSON) a round;"
        f" tronpy reads {TRONPY_BLOCKS} and stores nothing",
    )


if __name__ == "__main__":
    main()
