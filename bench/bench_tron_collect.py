"""What collecting USDT on TRON costs: energy burned, lent by the platform's stake, or whichever is cheaper.

Deposits on fresh addresses of a local node that charges as the main network does, through the whole engine. TRX, not
time: the figures are the same on any machine.
"""

from __future__ import annotations

import sys

from _tron_collection_sides import SUN, Cost, Strategy, measure

DEPOSITS = 50
TRX_USD = 0.25
STAKE_TRX = 6_400
"""What gives the energy of one transfer a day, with a little to spare."""

STRATEGIES = (
    Strategy(name="burn", energy="burn"),
    Strategy(name="delegate", energy="delegate", staked_trx=STAKE_TRX),
    Strategy(name="auto, staked", energy="auto", staked_trx=STAKE_TRX),
    Strategy(name="auto, half staked", energy="auto", staked_trx=STAKE_TRX // 2),
)

LINES = (
    ("activating the address, bringing TRX", lambda cost: cost.activation),
    ("lending energy and taking it back", lambda cost: cost.lending),
    ("the transfer itself", lambda cost: cost.transfer),
    ("left over on the address", lambda cost: cost.left_over),
    ("all", lambda cost: cost.whole),
)


def show(count: int, costs: list[Cost]) -> None:
    heads = [strategy.name.rjust(18) for strategy in STRATEGIES]
    print(f"{count} deposits, TRX for each".ljust(40), *heads)
    for what, of in LINES:
        print(what.ljust(40), *(f"{of(cost) / SUN:.3f}".rjust(18) for cost in costs))
    dollars = [f"{cost.whole / SUN * TRX_USD:.3f}".rjust(18) for cost in costs]
    print(f"all, in USD at ${TRX_USD} for TRX".ljust(40), *dollars)
    print("beside burning".ljust(40), *(f"{cost.whole / costs[0].whole:.0%}".rjust(18) for cost in costs))
    print("loans of energy".ljust(40), *(f"{cost.loans}".rjust(18) for cost in costs))
    stakes = [f"{strategy.staked_trx * count:,}".rjust(18) for strategy in STRATEGIES]
    print("staked at the gas station, TRX".ljust(40), *stakes)
    print(flush=True)


def main() -> None:
    print("\nCollecting USDT on TRON (cost per deposit, energy at 100 sun, bandwidth at 1,000 sun a byte)\n")
    for count in [int(count) for count in sys.argv[1:]] or [DEPOSITS]:
        show(count, [measure(count, strategy) for strategy in STRATEGIES])


if __name__ == "__main__":
    main()
