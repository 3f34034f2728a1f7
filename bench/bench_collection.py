"""What collecting a deposit costs: one by one (gas is sent first), and swept together (EIP-7702), side by side.

USDT-like deposits on anvil, through the whole engine. Gas, not time: the figures are the same on any machine.
"""

from __future__ import annotations

import sys

from _collection_sides import PAID, Cost, measure
from _harness import Table, publish, sized

DEPOSITS = sized((50, 10, 2), tiny=(2,))
GWEI_SHOWN = (1, 10)
ETH_USD = 3_000

LINES = (
    ("bringing the gas", lambda cost: cost.top_up),
    ("the transfer itself", lambda cost: cost.transfer),
    ("left over on the address", lambda cost: cost.left_over),
    ("all, in gas", lambda cost: cost.whole),
)


def table(count: int, plain: Cost, swept: Cost) -> Table:
    lines = []
    for what, of in LINES:
        one, other = of(plain), of(swept)
        lines.append((what, f"{one:,.0f}", f"{other:,.0f}", f"{other / one:.0%}" if one else "-"))
    for gwei in GWEI_SHOWN:
        natives = [cost.whole * gwei / 10**9 for cost in (plain, swept)]
        lines.append((f"at {gwei} gwei, in ETH", *(f"{native:.6f}" for native in natives), "-"))
        dollars = [f"{native * ETH_USD:,.3f}" for native in natives]
        lines.append((f"at {gwei} gwei and ${ETH_USD:,} for ETH, in USD", *dollars, "-"))
    return Table(
        title=f"Collecting {count} deposits (cost of each)",
        note=f"in gas, measured at {PAID / 10**9:g} gwei",
        heads=("", "one by one", "swept", "swept/one by one"),
        lines=lines,
    )


def main() -> None:
    for count in [int(count) for count in sys.argv[1:]] or DEPOSITS:
        publish(table(count, measure(count, swept=False), measure(count, swept=True)))


if __name__ == "__main__":
    main()
