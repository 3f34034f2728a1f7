"""What collecting a deposit costs: one by one (gas is sent first), and swept together (EIP-7702), side by side.

USDT-like deposits on anvil, through the whole engine. Gas, not time: the figures are the same on any machine.
"""

from __future__ import annotations

import sys

from _collection_sides import PAID, Cost, measure

DEPOSITS = (50, 10, 1)
GWEI_SHOWN = (1, 10)
ETH_USD = 3_000

LINES = (
    ("bringing the gas", lambda cost: cost.top_up),
    ("the transfer itself", lambda cost: cost.transfer),
    ("left over on the address", lambda cost: cost.left_over),
    ("all, in gas", lambda cost: cost.whole),
)


def show(count: int, plain: Cost, swept: Cost) -> None:
    print(f"{count} deposits, gas for each".ljust(40), "one by one".rjust(14), "swept".rjust(14), "swept/one".rjust(12))
    for what, of in LINES:
        one, other = of(plain), of(swept)
        ratio = f"{other / one:.0%}" if one else "-"
        print(what.ljust(40), f"{one:,.0f}".rjust(14), f"{other:,.0f}".rjust(14), ratio.rjust(12))
    for gwei in GWEI_SHOWN:
        natives = [cost.whole * gwei / 10**9 for cost in (plain, swept)]
        print(f"at {gwei} gwei, in ETH".ljust(40), *(f"{native:.6f}".rjust(14) for native in natives))
        dollars = [f"{native * ETH_USD:,.3f}".rjust(14) for native in natives]
        print(f"at {gwei} gwei and ${ETH_USD:,} for ETH, in USD".ljust(40), *dollars)
    print(flush=True)


def main() -> None:
    print(f"\nCollecting deposits (cost per deposit, measured at {PAID / 10**9:g} gwei)\n")
    for count in [int(count) for count in sys.argv[1:]] or DEPOSITS:
        plain = measure(count, swept=False)
        swept = measure(count, swept=True)
        show(count, plain, swept)


if __name__ == "__main__":
    main()
