"""What Prometheus is told of the gas stations: whole coins, and a stake only where there is one."""

from __future__ import annotations

from cambist.plugin import Stake
from cambist.services.sending.gas.gas_stations import GasStation
from cambist_tasks.metrics import WorkerCollector


def station(chain, decimals, stake, **more):
    return GasStation(
        chain=chain, address="somewhere", symbol="X", decimals=decimals, is_low=False, waiting=2, checked_at=None,
        stake=stake, **more,
    )  # fmt: skip


def told(collector):
    return {
        (sample.name.removeprefix("cambist_gas_station_"), sample.labels["chain"]): sample.value
        for metric in collector._gas_stations()
        for sample in metric.samples
    }


def test_each_station_is_told_in_whole_coins_and_follows_what_the_chore_sees():
    stations = []
    collector = WorkerCollector([], [], None, stations)
    assert told(collector) == {}
    stations.append(station("ethereum", 18, None, balance=15 * 10**17))
    stake = Stake(staked=7_000_000, lent=500_000, lendable=250_000, leaving=1, withdrawable=2)
    stations.append(station("tron", 6, stake, balance=12_500_000, is_stake_low=True))
    found = told(collector)
    assert {name for name, chain in found if chain == "ethereum"} == {"balance", "low", "waiting", "stake_low"}
    assert (found["balance", "ethereum"], found["stake_low", "ethereum"]) == (1.5, 0)
    of_tron = {name: value for (name, chain), value in found.items() if chain == "tron"}
    assert of_tron == {
        "balance": 12.5, "low": 0, "waiting": 2, "staked": 7, "lent": 0.5, "lendable": 0.25, "leaving": 0.000001,
        "withdrawable": 0.000002, "stake_low": 1,
    }  # fmt: skip
