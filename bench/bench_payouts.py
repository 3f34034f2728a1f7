"""How fast one wallet pays out on anvil: planned, reserved, signed, stored and handed out by the engine."""

from __future__ import annotations

import statistics
import sys

import uvloop
from _harness import Row, alternate_async, at_least, compare, report
from _payout_sides import Payouts
from _processes import migrated_servers

OURS = 1_000
DROPPED = 0.01
WARM_UP = 50
NEAR, FAR_S = 0.0, 0.02
"""A node on the same machine, and one as far away as a provider in the same region."""
OTHER = {NEAR: 300, FAR_S: 60}


async def measure(database_url: str, redis_url: str, latency_s: float, share: float) -> list[Row]:
    """Measure with so much of the usual size."""
    ours_count, other_count = int(OURS * share), int(OTHER[latency_s] * share)
    where = "node on this machine" if latency_s == NEAR else f"node {latency_s * 1000:.0f} ms away"
    targets: dict[str, int] = {}
    async with Payouts(database_url, redis_url, latency_s) as payouts:

        async def ours() -> float:
            done = await payouts.through_engine(ours_count)
            await payouts.finish()
            targets.update(done.targets)
            return ours_count / done.seconds

        async def dropped() -> float:
            done = await payouts.with_drops(ours_count, DROPPED)
            await payouts.finish()
            targets.update(done.targets)
            return ours_count / done.seconds

        async def other() -> float:
            done = await payouts.one_by_one(other_count)
            await payouts.node.mine()
            return other_count / done.seconds

        targets |= (await payouts.through_engine(WARM_UP)).targets
        await payouts.finish()
        await payouts.one_by_one(WARM_UP)
        await payouts.node.mine()
        found = await alternate_async({"ours": ours, "other": other, "dropped": dropped})
        await payouts.check(targets)
    return [
        compare(f"{where}, beside one nonce after the other", found["ours"], found["other"], aim=10),
        at_least(f"{where}, handed to it", statistics.median(found["ours"]), 200, "/s"),
        at_least(f"{where}, in a block, 1 % dropped", statistics.median(found["dropped"]), 200, "/s"),
        Row(what=f"{where}, {len(targets):,} payouts: each once, no gap", ours="yes", aim="yes", met=True),
    ]


def main() -> None:
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    rows: list[Row] = []
    for latency_s in (NEAR, FAR_S):
        with migrated_servers() as (database_url, redis_url):
            rows += uvloop.run(measure(database_url, redis_url, latency_s, share))
    report(
        "Paying out from one wallet on anvil (payouts per second)",
        rows,
        note=f"{OURS * share:,.0f} a round, a token, to addresses never seen before; one signer for both sides",
    )


if __name__ == "__main__":
    main()
