"""What the operator sees of the addresses that pay for gas."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from litestar import Controller, get
from litestar.di import NamedDependency
from msgspec import Struct

from cambist.domain.money import format_units
from cambist.services.sending.gas import gas_stations
from cambist.services.sending.gas.gas_stations import GasStation, UnseenStation
from cambist_web.context import Web
from cambist_web.operator_auth import admin_routes
from cambist_web.permissions import permits
from cambist_web.schemas import Answer


class StakeView(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a station has staked beside its balance. Unstaked coin is `leaving`, then `withdrawable`.

    `isLow` when `lent` and `lendable` together are less than `lowBelow`.
    """

    staked: str
    lent: str
    lendable: str
    leaving: str
    withdrawable: str
    free_at: datetime | None
    is_low: bool
    low_below: str


class GasStationView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One station, as the worker last saw it: `balance`, `isLow`, `lowBelow` and `checkedAt` are null before that.

    Send native coin to `address` when `isLow`: when `balance` is less than `lowBelow`.
    `stake` is there where fees can be paid out of one.
    """

    chain: str
    address: str
    symbol: str
    balance: str | None
    is_low: bool | None
    low_below: str | None
    waiting: int
    checked_at: datetime | None
    stake: StakeView | None = None


class GasStationList(Answer, frozen=True, kw_only=True):
    """Every chain's station."""

    gas_stations: Sequence[GasStationView]


class GasStations(Controller):
    tags = ("Operator",)

    @get("/", summary="List gas stations", opt=permits("money.read"))
    async def list(self, web: NamedDependency[Web]) -> GasStationList:
        """Return what pays for gas on each live chain. `waiting` is how many transfers wait for it."""
        chains = [chain for chain in web.gateway.registry.chains.values() if chain.availability == "live"]
        async with web.db.autocommit() as conn:
            found = await gas_stations.list_stations(conn)
            unseen = await gas_stations.list_unseen(conn, chains)
        return GasStationList(gas_stations=station_views(found, unseen))


def station_views(found: Sequence[GasStation], unseen: Sequence[UnseenStation]) -> Sequence[GasStationView]:
    """Return stations for answers: those that a worker has seen, and those that it has not yet."""
    return [
        GasStationView(
            chain=station.chain,
            address=station.address,
            symbol=station.symbol,
            balance=format_units(station.balance, station.decimals),
            is_low=station.is_low,
            low_below=format_units(station.low_below, station.decimals),
            waiting=station.waiting,
            checked_at=station.checked_at,
            stake=_stake(station),
        )
        for station in found
    ] + [
        GasStationView(
            chain=station.chain,
            address=station.address,
            symbol=station.symbol,
            balance=None,
            is_low=None,
            low_below=None,
            waiting=station.waiting,
            checked_at=None,
        )
        for station in unseen
    ]


def _stake(station: GasStation) -> StakeView | None:
    if station.stake is None:
        return None
    told = msgspec.structs.asdict(station.stake)
    free_at = told.pop("free_at")
    amounts = {name: format_units(units, station.decimals) for name, units in told.items()}
    low_below = format_units(station.stake_low_below, station.decimals)
    return StakeView(**amounts, free_at=free_at, is_low=station.is_stake_low, low_below=low_below)


controllers = [admin_routes("/api/admin/gas-stations", GasStations)]
