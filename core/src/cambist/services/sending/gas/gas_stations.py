"""The platform's own addresses, which pay for gas: what they hold and have staked, and an alert before one runs dry."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog
from msgspec import Struct, structs
from sqlalchemy import case, func, literal_column, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.engine import Database
from cambist.db.structs import AnyRow, columns_of, literally, to_struct
from cambist.deadlines import within
from cambist.domain.intents import CARRIERS
from cambist.domain.money import AmountError, format_units, parse_units
from cambist.plugin import Chain, ChainError, ChainInfo, LendingChain, Stake, Units
from cambist.services.addresses.wallets import gas_station
from cambist.services.sending.shortages import WAITS_FOR_GAS, WAITS_FOR_STATION

log = structlog.get_logger(__name__)

MODE = "live"
SCOPE = 0
CHAIN_TIMEOUT_S = 20
LOW_TRANSFERS = 100
"""Where nothing is configured, a station is low that could not pay for this many of the dearest recent transfers."""
RECENT_TXS = 200
LOW_STAKE_PARTS = 10
"""Where nothing is configured, a stake is low of which less than one part in so many can be lent."""


class LowMarks(Struct, frozen=True, kw_only=True):
    """Below what a station is low, as the operator wrote it: its balance and the stake that can be lent, by chain."""

    balances: Mapping[str, str] = {}
    stakes: Mapping[str, str] = {}


class GasStation(Struct, frozen=True, kw_only=True):
    """What a station held when it was last looked at. ``waiting`` is how many transfers wait for gas.

    ``stake`` is None where its chain does not lend; it is low where hardly any of it is left to be lent. ``low_below``
    is the balance below which the station is low, ``stake_low_below`` what must be left of its stake.
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
    low_below: Units = Units(0)
    stake_low_below: Units = Units(0)
    stake: Stake | None = None

    @property
    def level(self) -> str:
        return "empty" if self.balance == 0 else "low" if self.is_low else "enough"


_SELECT = select(*columns_of(GasStation, models.GasStation), *columns_of(Stake, models.GasStation)).where(
    models.GasStation.mode == MODE
)


async def check(db: Database, chain: Chain, marks: LowMarks, now: datetime) -> None:
    """Look at a chain's station, remember what it holds, and alert once when that became too little or enough again.

    Does nothing before the worker has derived the address. Raises ChainError.
    """
    info = chain.info
    async with db.transaction() as conn:
        own = await gas_station(conn, info.family, MODE)
    if own is None:
        return
    balance = await chain.balance(own.address, info.native)
    stake = await chain.stake(own.address) if isinstance(chain, LendingChain) else None
    async with db.transaction() as conn:
        low_below = await _limit(conn, info, marks.balances.get(info.id))
        stake_low_below = Units(0) if stake is None else _stake_limit(stake, info, marks.stakes.get(info.id))
        station = GasStation(
            chain=info.id,
            address=own.address,
            symbol=info.native.symbol,
            decimals=info.native.decimals,
            balance=balance,
            is_low=balance < low_below,
            waiting=await _waiting(conn, info),
            checked_at=now,
            # What is lent now comes back, so it counts as left.
            is_stake_low=stake is not None and stake.lendable + stake.lent < stake_low_below,
            low_below=low_below,
            stake_low_below=stake_low_below,
            stake=stake,
        )
        row = (await conn.execute(_SELECT.where(models.GasStation.chain == info.id).with_for_update())).one_or_none()
        await _save(conn, station)
    before = None if row is None else _station(row)
    if station.level != ("enough" if before is None else before.level):
        _alert(station)
    if stake is not None and station.is_stake_low != (before is not None and before.is_stake_low):
        _alert_stake(station, stake)


def _stake_limit(stake: Stake, info: ChainInfo, low_stake: str | None) -> Units:
    """Return how much of a stake must be left, or native coin is burned instead; nothing where nothing is staked."""
    if stake.staked and low_stake is not None:
        try:
            return parse_units(low_stake, info.native.decimals)
        except AmountError as error:
            log.warning("gas_low_stake_unusable", chain=info.id, low_stake=low_stake, reason=str(error))
    return Units(-(-stake.staked // LOW_STAKE_PARTS))


async def check_all(
    db: Database,
    chains: Mapping[str, Chain],
    marks: LowMarks,
    now: datetime,
    *,
    timeout_s: float = CHAIN_TIMEOUT_S,
) -> None:
    """Look at the stations of all chains; one whose chain does not tell, in time, stays as it was."""
    await asyncio.gather(*(_try(db, chain, marks, now, timeout_s) for chain in chains.values()))


async def _try(db: Database, chain: Chain, marks: LowMarks, now: datetime, timeout_s: float) -> None:
    try:
        await within(timeout_s, check(db, chain, marks, now))
    except Exception as error:  # a plugin may raise anything, and the other chains want their turn
        bug = None if isinstance(error, (ChainError, TimeoutError)) else error
        name = type(error).__name__
        log.warning("gas_station_unknown", chain=chain.info.id, error=f"{name}: {error}", exc_info=bug)


async def list_stations(conn: AsyncConnection) -> Sequence[GasStation]:
    """Return every station as it was last seen."""
    return [_station(row) for row in await conn.execute(_SELECT.order_by(models.GasStation.chain))]


class UnseenStation(Struct, frozen=True, kw_only=True):
    """A station that the worker has not looked at yet: its address is known, and nothing else of it."""

    chain: str
    address: str
    symbol: str
    waiting: int


async def list_unseen(conn: AsyncConnection, chains: Sequence[ChainInfo]) -> Sequence[UnseenStation]:
    """Return the stations of these chains that were never looked at, as far as their addresses are derived."""
    station, address = models.GasStation, models.Address
    seen = set(await conn.scalars(select(station.chain).where(station.mode == MODE)))
    own = select(address.family, address.address).where(address.mode == MODE, address.purpose == "gas")
    addresses: dict[str, str] = {row.family: row.address for row in await conn.execute(own)}
    return [
        UnseenStation(
            chain=info.id,
            address=addresses[info.family],
            symbol=info.native.symbol,
            waiting=await _waiting(conn, info),
        )
        for info in chains
        if info.id not in seen and info.family in addresses
    ]


def _station(row: AnyRow) -> GasStation:
    stake = None if row.staked is None else to_struct(Stake, row)
    return structs.replace(to_struct(GasStation, row), stake=stake)


async def _waiting(conn: AsyncConnection, info: ChainInfo) -> int:
    waiting = select(func.count()).where(
        models.OutboundIntent.chain == info.id,
        models.OutboundIntent.scope == SCOPE,
        # Literally, or ix_outbound_intents_waiting is in no plan that is kept for all values.
        models.OutboundIntent.state == literal_column("'waiting'"),
        models.OutboundIntent.reason.in_((WAITS_FOR_GAS, WAITS_FOR_STATION)),
    )
    return await conn.scalar(waiting) or 0


async def _limit(conn: AsyncConnection, info: ChainInfo, low_balance: str | None) -> Units:
    """Return the balance below which a station is low. An empty one always is."""
    if low_balance is not None:
        try:
            return max(Units(1), parse_units(low_balance, info.native.decimals))
        except AmountError as error:
            log.warning("gas_low_balance_unusable", chain=info.id, low_balance=low_balance, reason=str(error))
    tx, intent = models.OutboundTx, models.OutboundIntent
    cost = func.greatest(tx.fee_limit - tx.fee_covered, 0) * tx.fee_price + tx.fee_extra
    # A sweep is many transfers at once; its units count them.
    transfers = case((literally(intent.kind, *CARRIERS), intent.units), else_=1)
    recent = (
        select((cost / transfers).label("cost"))
        .join_from(tx, models.OutboundSlot, models.OutboundSlot.id == tx.slot_pk)
        .join(intent, intent.id == models.OutboundSlot.intent_pk)
        .where(tx.chain == info.id, tx.scope == SCOPE)
        .order_by(tx.id.desc())
        .limit(RECENT_TXS)
        .subquery()
    )
    return Units(max(1, int(await conn.scalar(select(func.max(recent.c.cost))) or 0) * LOW_TRANSFERS))


async def _save(conn: AsyncConnection, station: GasStation) -> None:
    seen = structs.asdict(station)
    stake = seen.pop("stake")
    seen |= {name: getattr(stake, name, None) for name in Stake.__struct_fields__}
    saved = insert(models.GasStation).values(mode=MODE, **seen)
    await conn.execute(saved.on_conflict_do_update(index_elements=["mode", "chain"], set_=seen))


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
