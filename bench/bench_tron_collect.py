"""What collecting USDT on TRON costs: energy burned, lent by the platform's stake, or whichever is cheaper.

Deposits on fresh addresses of a local node that charges as the main network does, through the whole engine. TRX, not
time: the figures are the same on any machine.
"""

from __future__ import annotations

import sys

from _harness import Table, publish, sized
from _tron_collection_sides import SUN, Cost, Strategy, measure

DEPOSITS = sized(50, tiny=2)
TRX_USD = 0.25
STAKE_TRX = 6_400
"""What gives the energy of one transfer a day, with a little to spare."""

BURN = Strategy(name="burn", energy="burn")
HALF_STAKED = Strategy(name="auto, half staked", energy="auto", staked_trx=STAKE_TRX // 2)
STRATEGIES = sized(
    (
        BURN,
        Strategy(name="delegate", energy="delegate", staked_trx=STAKE_TRX),
        Strategy(name="auto, staked", energy="auto", staked_trx=STAKE_TRX),
        HALF_STAKED,
    ),
    tiny=(BURN, HALF_STAKED),
)

LINES = (
    ("activating the address, bringing TRX", lambda cost: cost.activation),
    ("lending energy and taking it back", lambda cost: cost.lending),
    ("the transfer itself", lambda cost: cost.transfer),
    ("left over on the address", lambda cost: cost.left_over),
    ("all", lambda cost: cost.whole),
)


def table(count: int, costs: list[Cost]) -> Table:
    return Table(
        title=f"Collecting {count} deposits of USDT on TRON (cost of each)",
        note="in TRX, energy at 100 sun, bandwidth at 1,000 sun a byte",
        heads=("", *(strategy.name for strategy in STRATEGIES)),
        lines=[
            *((what, *(f"{of(cost) / SUN:.3f}" for cost in costs)) for what, of in LINES),
            (f"all, in USD at ${TRX_USD} for TRX", *(f"{cost.whole / SUN * TRX_USD:.3f}" for cost in costs)),
            ("beside burning", *(f"{cost.whole / costs[0].whole:.0%}" for cost in costs)),
            ("loans of energy", *(f"{cost.loans}" for cost in costs)),
            ("staked at the gas station, TRX", *(f"{strategy.staked_trx * count:,}" for strategy in STRATEGIES)),
        ],
    )


def main() -> None:
    for count in [int(count) for count in sys.argv[1:]] or [DEPOSITS]:
        publish(table(count, [measure(count, strategy) for strategy in STRATEGIES]))


if __name__ == "__main__":
    main()
