"""How fast one wallet pays out on anvil: planned, reserved, signed, stored and handed out by the engine."""

from __future__ import annotations

import statistics

import uvloop
from _harness import Row, alternate_async, at_least, compare, report, sized
from _payout_sides import Payouts
from _servers import migrated_servers

OURS = sized(1_000, tiny=5)
DROPPED = 0.01
WARM_UP = sized(50, tiny=2)
NEAR, FAR_S = 0.0, 0.02
"""A node on the same machine, and one as far away as a provider in the same region."""
OTHER = {NEAR: sized(300, tiny=2), FAR_S: sized(60, tiny=2)}


async def measure(database_url: str, redis_url: str, latency_s: float) -> list[Row]:
    other_count = OTHER[latency_s]
    where = "node on this machine" if latency_s == NEAR else f"node {latency_s * 1000:.0f} ms away"
    amounts: dict[str, int] = {}
    async with Payouts(database_url, redis_url, latency_s) as payouts:

        async def ours() -> float:
            done = await payouts.through_engine(OURS)
            await payouts.finish()
            amounts.update(done.amounts)
            return OURS / done.seconds

        async def dropped() -> float:
            done = await payouts.with_drops(OURS, DROPPED)
            await payouts.finish()
            amounts.update(done.amounts)
            return OURS / done.seconds

        async def other() -> float:
            done = await payouts.one_by_one(other_count)
            await payouts.node.mine()
            return other_count / done.seconds

        amounts |= (await payouts.through_engine(WARM_UP)).amounts
        await payouts.finish()
        await payouts.one_by_one(WARM_UP)
        await payouts.node.mine()
        found = await alternate_async({"ours": ours, "other": other, "dropped": dropped})
        await payouts.check(amounts)
    return [
        compare(f"{where}, beside one nonce after the other", found["ours"], found["other"], aim=10),
        at_least(f"{where}, handed to it", statistics.median(found["ours"]), 200, "/s"),
        at_least(f"{where}, in a block, 1 % dropped", statistics.median(found["dropped"]), 200, "/s"),
        Row(what=f"{where}, {len(amounts):,} payouts: each once, no gap", ours="yes", aim="yes", met=True),
    ]


def main() -> None:
    rows: list[Row] = []
    for latency_s in sized((NEAR, FAR_S), tiny=(FAR_S,)):
        with migrated_servers() as (database_url, redis_url):
            rows += uvloop.run(measure(database_url, redis_url, latency_s))
    report(
        "Paying out from one wallet on anvil (payouts per second)",
        rows,
        note=f"{OURS:,} a round, of a token, to addresses never seen before; one signer for both sides",
    )


if __name__ == "__main__":
    main()
