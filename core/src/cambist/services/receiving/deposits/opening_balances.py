"""What the platform's own address held before the books began: posted once per chain, as the operator's float."""

from __future__ import annotations

import structlog
from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import Cursor, Deposit
from cambist.plugin import Chain, ChainError, ChainInfo, LendingChain, Stake, StateUnavailableError, Units
from cambist.services.accounting import ledger
from cambist.services.accounting.ledger import PLATFORM, Account, Movement, Posting, Purpose, asset_key
from cambist.services.addresses.wallets import OwnAddress, gas_station

from . import cursors
from .store import WatchedChain

log = structlog.get_logger(__name__)

KIND = "opening"

# The purpose is a constant, as where gas stations are found.
_STATION = "FROM addresses a WHERE a.mode = {mode} AND a.family = {family} AND a.purpose = 'gas'"
_IS_POSTED = (
    f"EXISTS (SELECT FROM ledger_transactions WHERE kind = '{KIND}' AND reference = {{chain}} || ':' || a.address)"
)
IS_OPEN = f"(SELECT {_IS_POSTED} {_STATION} LIMIT 1)"
"""Whether the books of a chain have begun; null where there is no gas station."""
_OPEN = f"SELECT a.id, a.address {_STATION} AND {_IS_POSTED}".format(mode="$1", family="$2", chain="$3::text")


def reference(chain: str, address: str) -> str:
    """Return the name of the opening of an address on a chain, as ``_IS_POSTED`` does."""
    return f"{chain}:{address}"


async def open_station(conn: AsyncConnection, info: ChainInfo, mode: str) -> OwnAddress | None:
    """Return this chain's gas station if its books have begun: before they have, it sends nothing."""
    row = (await conn.exec_driver_sql(_OPEN, (mode, info.family, info.id))).first()
    return None if row is None else OwnAddress(row.id, row.address)


async def open_books(  # noqa: PLR0913  what is opened, and what is known of it
    db: Database, chain: Chain, chain_scope: WatchedChain, cursor: cursors.Cursor, *, since: int, finalized: int | None
) -> bool:
    """Post the opening, which is not there yet where the chain was read to this cursor; return whether it was.

    The balance is asked for at the height up to which transfers are stored, and what they brought is left out: so
    it does not matter which came first, the address, its money, or the first poll of the chain. Where the chain
    does not tell that, it is the finalized height, once all transfers from ``since`` up to it are stored.
    """
    async with db.autocommit() as conn:
        station = await gas_station(conn, chain_scope.info.family, chain_scope.mode)
    if station is None:
        return False
    try:
        height, balance = await _balance(chain, station, cursor.height, since, finalized)
        # Nobody but us stakes with the gas station's key, and we do not before the books are open.
        stake = await chain.stake(station.address) if isinstance(chain, LendingChain) else Stake()
    except ChainError as error:
        # A node forgets old states; closer to the head, or a minute later, it will know. Deposits are read meanwhile.
        log.debug("opening_waits", chain=chain_scope.info.id, height=cursor.height, error=str(error))
        return False
    async with db.transaction() as conn:
        still = select(Cursor.height).where(
            Cursor.chain == chain_scope.info.id,
            Cursor.scope == chain_scope.scope,
            Cursor.height == cursor.height,
            Cursor.hash == cursor.hash,
        )
        if await conn.scalar(still.with_for_update()) is None:
            return False
        funded = select(func.sum(Deposit.units)).where(
            Deposit.chain == chain_scope.info.id,
            Deposit.scope == chain_scope.scope,
            Deposit.address_pk == station.pk,
            Deposit.contract.is_(None),
            Deposit.status != "orphaned",
            Deposit.height <= height,
        )
        opening = max(0, balance - (await conn.scalar(funded) or 0))
        asset = asset_key(chain_scope.info.id, None)
        purposes = (Purpose.CUSTODY_GAS, Purpose.CUSTODY_STAKED, Purpose.FLOAT)
        gas, staked, float_ = (Account(PLATFORM, asset, purpose) for purpose in purposes)
        held = ((gas, Units(opening)), (staked, stake.total))
        posting = Posting(
            mode=chain_scope.mode,
            kind=KIND,
            reference=reference(chain_scope.info.id, station.address),
            movements=[Movement(custody, float_, units) for custody, units in held if units],
        )
        await ledger.post(conn, chain_scope.mode, [posting])
        await note_books(conn, chain_scope.info, chain_scope.scope, height)
    return True


async def note_books(conn: AsyncConnection, info: ChainInfo, scope: int, height: int) -> None:
    """Note that what addresses held at this height is booked as such: no block up to it may be read again."""
    books = update(Cursor).where(Cursor.chain == info.id, Cursor.scope == scope)
    await conn.execute(books.values(books_from=func.greatest(func.coalesce(Cursor.books_from, 0), height)))


async def _balance(
    chain: Chain, station: OwnAddress, stored: int, since: int, finalized: int | None
) -> tuple[int, Units]:
    """Return what the station holds, and at which height that is so. Raises ChainError."""
    native = chain.info.native
    try:
        return stored, await chain.balance(station.address, native, stored)
    except StateUnavailableError:
        if finalized is None or not since <= finalized <= stored:
            raise
    return finalized, await chain.balance(station.address, native, finalized)
