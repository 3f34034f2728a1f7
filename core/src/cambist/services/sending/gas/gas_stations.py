"""The platform's own addresses, which pay for gas: what they hold and have staked, and an alert before one runs dry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import structlog
from msgspec import Struct
from msgspec.structs import astuple
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.domain.money import AmountError, format_units, parse_units
from cambist.plugin import Chain, ChainError, ChainInfo, LendingChain, Stake, Units
from cambist.services.addresses.wallets import gas_station
from cambist.services.sending.batches import WAITS_FOR_GAS, WAITS_FOR_STATION

log = structlog.get_logger(__name__)

MODE = "live"
SCOPE = 0
LOW_TRANSFERS = 100
"""Where nothing is configured, a station is low that could not pay for this many of the dearest recent transfers."""
RECENT_TXS = 200
LOW_STAKE_PARTS = 10
"""Where nothing is configured, a stake is low of which less than one part in so many can be lent."""

_WAITING = (
    "SELECT count(*) FROM outbound_intents WHERE chain = $1 AND scope = $2 AND state = 'waiting'"
    " AND reason = ANY($3::text[])"
)
_DEAREST = (
    "SELECT coalesce(max(cost), 0) FROM (SELECT (greatest(t.fee_limit - t.fee_covered, 0) * t.fee_price + t.fee_extra)"
    # A sweep is many transfers at once; its units count them.
    " / CASE WHEN i.kind = 'sweep' THEN i.units ELSE 1 END AS cost FROM outbound_txs t"
    " JOIN outbound_slots s ON s.id = t.slot_pk JOIN outbound_intents i ON i.id = s.intent_pk"
    " WHERE t.chain = $1 AND t.scope = $2 ORDER BY t.id DESC LIMIT $3) AS recent"
)
_COLUMNS = (
    "chain, address, symbol, decimals, balance, is_low, is_stake_low, waiting, checked_at,"
    " staked, lent, lendable, leaving, withdrawable"
)
_BEFORE = f"SELECT {_COLUMNS} FROM gas_stations WHERE mode = $1 AND chain = $2 FOR UPDATE"  # noqa: S608  constants
_ALL = f"SELECT {_COLUMNS} FROM gas_stations WHERE mode = $1 ORDER BY chain"  # noqa: S608  constants
_SAVE = (
    f"INSERT INTO gas_stations (mode, {_COLUMNS})"  # noqa: S608  constants
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"
    " ON CONFLICT (mode, chain) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS.split(", ")[1:])
)


class LowMarks(Struct, frozen=True, kw_only=True):
    """Below what a station is low, as the operator wrote it: its balance and the stake that can be lent, by chain."""

    balances: Mapping[str, str] = {}
    stakes: Mapping[str, str] = {}


class GasStation(Struct, frozen=True, kw_only=True):
    """What a station held when it was last looked at. ``waiting`` is how many transfers wait for gas.

    ``stake`` is None where its chain does not lend; it is low where hardly any of it is left to be lent.
    """

    chain: str
    address: str
    symbol: str
    decimals: int
    balance: Units
    is_low: bool
    waiting: int
    checked_at: datetime
    is_stake_low: bool = False
    stake: Stake | None = None

    @property
    def level(self) -> str:
        """Return ``empty``, ``low`` or ``enough``."""
        return "empty" if self.balance == 0 else "low" if self.is_low else "enough"


async def check(db: Database, chain: Chain, marks: LowMarks, now: datetime) -> GasStation | None:
    """Look at a chain's station, remember what it holds, and alert once when that became too little or enough again.

    Returns None before the worker has derived the address. Raises ChainError.
    """
    info = chain.info
    async with db.transaction() as conn:
        own = await gas_station(conn, info.family, MODE)
    if own is None:
        return None
    balance = await chain.balance(own.address, info.native)
    stake = await chain.stake(own.address) if isinstance(chain, LendingChain) else None
    async with db.transaction() as conn:
        reasons = [WAITS_FOR_GAS, WAITS_FOR_STATION]
        station = GasStation(
            chain=info.id,
            address=own.address,
            symbol=info.native.symbol,
            decimals=info.native.decimals,
            balance=balance,
            is_low=balance < await _limit(conn, info, marks.balances.get(info.id)),
            waiting=(await conn.exec_driver_sql(_WAITING, (info.id, SCOPE, reasons))).scalar_one(),
            checked_at=now,
            is_stake_low=stake is not None and _is_low(stake, info, marks.stakes.get(info.id)),
            stake=stake,
        )
        row = (await conn.exec_driver_sql(_BEFORE, (MODE, info.id))).one_or_none()
        await _save(conn, station)
    before = None if row is None else _station(row)
    if station.level != ("enough" if before is None else before.level):
        _alert(station)
    if stake is not None and station.is_stake_low != (before is not None and before.is_stake_low):
        _alert_stake(station, stake)
    return station


def _is_low(stake: Stake, info: ChainInfo, low_stake: str | None) -> bool:
    """Whether so little of a stake is left that native coin is burned instead. Where nothing is staked, none lacks.

    What is lent now comes back, so it counts as left.
    """
    left = stake.lendable + stake.lent
    if stake.staked and low_stake is not None:
        try:
            return left < parse_units(low_stake, info.native.decimals)
        except AmountError as error:
            log.warning("gas_low_stake_unusable", chain=info.id, low_stake=low_stake, reason=str(error))
    return left * LOW_STAKE_PARTS < stake.staked


async def check_all(db: Database, chains: Mapping[str, Chain], marks: LowMarks, now: datetime) -> Sequence[GasStation]:
    """Look at the stations of all chains; one whose chain cannot be asked stays as it was."""
    found = []
    for chain_id, chain in chains.items():
        try:
            station = await check(db, chain, marks, now)
        except ChainError as error:
            log.warning("gas_station_unknown", chain=chain_id, error=f"{type(error).__name__}: {error}")
            continue
        if station is not None:
            found.append(station)
    return found


async def list_stations(conn: AsyncConnection) -> Sequence[GasStation]:
    """Return every station as it was last seen."""
    return [_station(row) for row in await conn.exec_driver_sql(_ALL, (MODE,))]


def _station(row: Row[Any]) -> GasStation:
    stake = None
    if row.staked is not None:
        stake = Stake(**{name: Units(int(getattr(row, name))) for name in Stake.__struct_fields__})
    return GasStation(
        chain=row.chain,
        address=row.address,
        symbol=row.symbol,
        decimals=row.decimals,
        balance=Units(int(row.balance)),
        is_low=row.is_low,
        is_stake_low=row.is_stake_low,
        waiting=row.waiting,
        checked_at=row.checked_at,
        stake=stake,
    )


async def _limit(conn: AsyncConnection, info: ChainInfo, low_balance: str | None) -> int:
    """Return the balance below which a station is low. An empty one always is."""
    if low_balance is not None:
        try:
            return max(1, parse_units(low_balance, info.native.decimals))
        except AmountError as error:
            log.warning("gas_low_balance_unusable", chain=info.id, low_balance=low_balance, reason=str(error))
    dearest = (await conn.exec_driver_sql(_DEAREST, (info.id, SCOPE, RECENT_TXS))).scalar_one()
    return max(1, int(dearest) * LOW_TRANSFERS)


async def _save(conn: AsyncConnection, station: GasStation) -> None:
    stake = station.stake
    await conn.exec_driver_sql(
        _SAVE,
        (
            MODE,
            station.chain,
            station.address,
            station.symbol,
            station.decimals,
            station.balance,
            station.is_low,
            station.is_stake_low,
            station.waiting,
            station.checked_at,
            *((None,) * len(Stake.__struct_fields__) if stake is None else astuple(stake)),
        ),
    )


def _alert(station: GasStation) -> None:
    """Tell the operator what changed; the address is where native coin must be sent."""
    facts = {
        "chain": station.chain,
        "address": station.address,
        "balance": f"{format_units(station.balance, station.decimals)} {station.symbol}",
        "waiting": station.waiting,
    }
    if station.level == "enough":
        log.info("gas_station_recovered", **facts)
    else:
        log.error("gas_station_empty" if station.level == "empty" else "gas_station_low", **facts)


def _alert_stake(station: GasStation, stake: Stake) -> None:
    """Tell the operator that fees are burned though something is staked, or are not any more."""
    amounts = {
        name: f"{format_units(getattr(stake, name), station.decimals)} {station.symbol}"
        for name in ("staked", "lent", "lendable")
    }
    tell, event = log.info, "gas_station_stake_recovered"
    if station.is_stake_low:
        tell, event = log.warning, "gas_station_stake_low"
    tell(event, chain=station.chain, **amounts)
