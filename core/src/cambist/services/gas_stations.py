"""The platform's own addresses, which pay for gas: what they hold, and an alert before one runs dry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.domain.money import AmountError, format_units, parse_units
from cambist.plugin import Chain, ChainError, ChainInfo, Units

from .outbound.sending import WAITS_FOR_GAS, WAITS_FOR_STATION
from .wallet_addresses import gas_station

log = structlog.get_logger(__name__)

MODE = "live"
SCOPE = 0
INTERVAL_S = 30.0
LOW_TRANSFERS = 100
"""Where nothing is configured, a station is low that could not pay for this many of the dearest recent transfers."""
RECENT_TXS = 200

_WAITING = (
    "SELECT count(*) FROM outbound_intents WHERE chain = $1 AND scope = $2 AND state = 'waiting'"
    " AND reason = ANY($3::text[])"
)
_DEAREST = (
    "SELECT coalesce(max(cost), 0) FROM (SELECT (t.fee_limit * t.fee_price + t.fee_extra)"
    # A sweep is many transfers at once; its units count them.
    " / CASE WHEN i.kind = 'sweep' THEN i.units ELSE 1 END AS cost FROM outbound_txs t"
    " JOIN outbound_slots s ON s.id = t.slot_id JOIN outbound_intents i ON i.id = s.intent_id"
    " WHERE t.chain = $1 AND t.scope = $2 ORDER BY t.id DESC LIMIT $3) AS recent"
)
_BEFORE = "SELECT balance, is_low FROM gas_stations WHERE mode = $1 AND chain = $2 FOR UPDATE"
_SAVE = (
    "INSERT INTO gas_stations (mode, chain, address, symbol, decimals, balance, waiting, is_low, checked_at)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (mode, chain) DO UPDATE SET address = excluded.address,"
    " symbol = excluded.symbol, decimals = excluded.decimals, balance = excluded.balance, waiting = excluded.waiting,"
    " is_low = excluded.is_low, checked_at = excluded.checked_at"
)


class GasStation(Struct, frozen=True, kw_only=True):
    """What a station held when it was last looked at. ``waiting`` is how many transfers wait for gas."""

    chain: str
    address: str
    symbol: str
    decimals: int
    balance: Units
    is_low: bool
    waiting: int
    checked_at: datetime

    @property
    def level(self) -> str:
        """Return ``empty``, ``low`` or ``enough``."""
        return _level(self.balance, is_low=self.is_low)


def _level(balance: int, *, is_low: bool) -> str:
    return "empty" if balance == 0 else "low" if is_low else "enough"


async def check(db: Database, chain: Chain, low_balance: str | None, now: datetime) -> GasStation | None:
    """Look at a chain's station, remember what it holds, and alert once when that became too little or enough again.

    ``low_balance`` is the operator's limit in the native coin. Returns None before the worker has derived the
    address. Raises ChainError.
    """
    info = chain.info
    async with db.transaction() as conn:
        own = await gas_station(conn, info.family, MODE)
    if own is None:
        return None
    balance = await chain.balance(own.address, info.native)
    async with db.transaction() as conn:
        reasons = [WAITS_FOR_GAS, WAITS_FOR_STATION]
        station = GasStation(
            chain=info.id,
            address=own.address,
            symbol=info.native.symbol,
            decimals=info.native.decimals,
            balance=balance,
            is_low=balance < await _limit(conn, info, low_balance),
            waiting=(await conn.exec_driver_sql(_WAITING, (info.id, SCOPE, reasons))).scalar_one(),
            checked_at=now,
        )
        before = (await conn.exec_driver_sql(_BEFORE, (MODE, info.id))).one_or_none()
        await _save(conn, station)
    known = "enough" if before is None else _level(int(before.balance), is_low=before.is_low)
    if station.level != known:
        _alert(station)
    return station


async def check_all(
    db: Database, chains: Mapping[str, Chain], low_balances: Mapping[str, str], now: datetime
) -> Sequence[GasStation]:
    """Look at the stations of all chains; one whose chain cannot be asked stays as it was."""
    found = []
    for chain_id, chain in chains.items():
        try:
            station = await check(db, chain, low_balances.get(chain_id), now)
        except ChainError as error:
            log.warning("gas_station_unknown", chain=chain_id, error=f"{type(error).__name__}: {error}")
            continue
        if station is not None:
            found.append(station)
    return found


async def list_stations(conn: AsyncConnection) -> Sequence[GasStation]:
    """Return every station as it was last seen."""
    rows = await conn.exec_driver_sql(
        "SELECT chain, address, symbol, decimals, balance, is_low, waiting, checked_at FROM gas_stations"
        " WHERE mode = $1 ORDER BY chain",
        (MODE,),
    )
    return [
        GasStation(
            chain=row.chain,
            address=row.address,
            symbol=row.symbol,
            decimals=row.decimals,
            balance=Units(int(row.balance)),
            is_low=row.is_low,
            waiting=row.waiting,
            checked_at=row.checked_at,
        )
        for row in rows
    ]


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
    await conn.exec_driver_sql(
        _SAVE,
        (
            MODE,
            station.chain,
            station.address,
            station.symbol,
            station.decimals,
            station.balance,
            station.waiting,
            station.is_low,
            station.checked_at,
        ),
    )


def _alert(station: GasStation) -> None:
    """Tell the operator what changed; the address is what he must send native coin to."""
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
