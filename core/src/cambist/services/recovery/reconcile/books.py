"""Everything the books say about one chain at one height, read as of one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, structs
from sqlalchemy import and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import (
    Address,
    ChainBlock,
    Cursor,
    LedgerAccount,
    Merchant,
    OutboundIntent,
    OutboundSlot,
    OutboundTx,
)
from cambist.db.structs import one_of
from cambist.domain.intents import CARRIERS, INTERNAL
from cambist.plugin import ChainInfo
from cambist.services.accounting.ledger import PLATFORM, asset_key

MODE = "live"
SCOPE = 0
GROUPS: Mapping[str, str] = {
    "custody_deposits": "deposits",
    "float_deposits": "deposits",
    "custody_wallet": "wallet",
    "float_wallet": "wallet",
    "custody_gas": "gas",
    # What is staked is the gas station's all the same.
    "custody_staked": "gas",
    "between_chains": "between_chains",
}
GROUP_OF_PURPOSE: Mapping[str, str] = {"payment": "deposits", "account": "deposits", "wallet": "wallet", "gas": "gas"}

Group: TypeAlias = tuple[int, str]
"""A merchant's primary key (or ``PLATFORM``) and the name of the group."""
Holding: TypeAlias = tuple[int, str | None]
"""An address' primary key and the contract of a token, None for the native coin."""


class Impossible(Exception):  # noqa: N818  nothing is wrong with the books as far as anybody knows
    """The chain could not be compared; the message says why."""


class GroupedAddress(Struct, frozen=True):
    """An address of ours, and the group that its balances count to."""

    address: str
    group: Group


class Sending(Struct, frozen=True, kw_only=True):
    """A transaction that is stored, and not booked. ``recipient_pk`` is set where what it sends stays ours.

    ``moves_stake``: it makes coin a stake, or a stake coin.
    """

    tx_id: str
    source_pk: int
    recipient_pk: int | None
    contract: str | None
    units: int
    pays_fee: bool = True
    moves_stake: bool = False


class Undone(Struct, frozen=True, kw_only=True):
    """A transaction that is booked, and stands above the height: a reorg is about to take it back."""

    sending: Sending
    fee: int


class Books(Struct, frozen=True, kw_only=True):
    """One chain's books at a height, up to which everything is stored, and ``cursor``, how far that goes by now.

    ``bridged`` is what bridges have taken and neither paid out nor given back, by the exchanges themselves: it is the
    merchant's, and on no chain. ``uncollected`` is what confirmed deposits leave on their addresses until they are
    collected. ``waiting`` is what deposits brought by then that the ledger does not say, or took for confirmed only
    later. ``last_moved`` is the last height at which a holding is known to have changed, of those that were asked for.
    """

    height: int
    block_hash: str | None
    cursor: tuple[int, str]
    booked: Mapping[tuple[Group, str | None], int]
    bridged: Mapping[tuple[Group, str | None], int]
    addresses: Mapping[int, GroupedAddress]
    waiting: Mapping[Holding, int]
    uncollected: Mapping[Holding, int]
    moved: frozenset[Holding]
    last_moved: Mapping[Holding, int]
    sendings: Sequence[Sending]
    undone: Sequence[Undone]
    merchants: Mapping[int, str]
    names: Mapping[str | None, tuple[str, int]]


_DEPOSITS = """
SELECT d.address_pk, d.contract, min(d.token) AS token, min(d.decimals) AS decimals,
       coalesce(sum(d.units) FILTER (WHERE d.status = 'detected' AND d.height <= $3), 0)
           - coalesce(sum(d.units) FILTER (WHERE d.status = 'confirmed' AND d.height > $3), 0) AS waiting,
       coalesce(sum(d.units) FILTER (WHERE d.status = 'confirmed' AND c.state IS DISTINCT FROM 'done'), 0)
           AS uncollected
FROM deposits d LEFT JOIN outbound_intents c ON c.id = d.collection_pk
WHERE d.chain = $1 AND d.scope = $2 GROUP BY d.address_pk, d.contract
"""
_INTENTS = """
SELECT source_address_pk AS address_pk, contract, token, decimals FROM outbound_intents WHERE chain = $1 AND scope = $2
UNION
SELECT recipient_address_pk, contract, token, decimals FROM outbound_intents
WHERE chain = $1 AND scope = $2 AND recipient_address_pk IS NOT NULL
"""
_BRIDGED = """
SELECT e.merchant_pk, e.source_contract, e.source_token, e.source_decimals,
    sum(CASE WHEN i.state = 'done' THEN e.units - e.fee_units ELSE 0 END
        - CASE WHEN e.is_closed THEN e.units - e.fee_units ELSE 0 END) AS units
FROM exchanges e JOIN outbound_intents i ON i.id = e.intent_pk
WHERE e.kind = 'bridge' AND e.mode = 'live' AND e.source_chain = $1 AND e.scope = $2
    AND (i.state = 'done') <> e.is_closed
GROUP BY 1, 2, 3, 4
"""
_MOVES = """
SELECT address_pk, contract, max(height) AS height FROM (
    SELECT address_pk, contract, height FROM deposits
    WHERE chain = $1 AND scope = $2 AND status <> 'orphaned' AND height > $3 AND height <= $4
    UNION ALL
    SELECT own.address_pk, own.contract, t.height
    FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk
        JOIN outbound_intents i ON i.id = s.intent_pk OR i.sweep_pk = s.intent_pk
        CROSS JOIN LATERAL (VALUES (i.source_address_pk, i.contract), (i.source_address_pk, NULL),
            (i.recipient_address_pk, i.contract)) AS own (address_pk, contract)
    WHERE t.chain = $1 AND t.scope = $2 AND t.state = 'final' AND t.height > $3 AND t.height <= $4
        AND own.address_pk IS NOT NULL
) AS moves GROUP BY address_pk, contract
"""


async def read_books(db: Database, info: ChainInfo, height: int | None = None, *, since: int | None = None) -> Books:
    """Return what the books say of a chain, all as of one moment. Raises Impossible before the chain was looked at.

    They are about the height up to which it was read, or a lower one. ``last_moved`` tells what is booked of
    the heights above ``since``.
    """
    async with db.transaction() as conn:
        await conn.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        reached = select(Cursor.height, Cursor.hash).where(Cursor.chain == info.id, Cursor.scope == SCOPE)
        cursor = (await conn.execute(reached)).one_or_none()
        if cursor is None:
            raise Impossible(f"{info.id}: the worker has not read this chain yet")
        height = cursor.height if height is None else height
        names: dict[str | None, tuple[str, int]] = {
            token.contract: (token.symbol, token.decimals) for token in info.tokens
        }
        waiting: dict[Holding, int] = {}
        uncollected: dict[Holding, int] = {}
        for row in await conn.exec_driver_sql(_DEPOSITS, (info.id, SCOPE, height)):
            names.setdefault(row.contract, (row.token, row.decimals))
            waiting[row.address_pk, row.contract] = int(row.waiting)
            uncollected[row.address_pk, row.contract] = int(row.uncollected)
        moved = set()
        for row in await conn.exec_driver_sql(_INTENTS, (info.id, SCOPE)):
            names.setdefault(row.contract, (row.token, row.decimals))
            moved.add((row.address_pk, row.contract))
        known = sorted({address_pk for address_pk, _ in (*waiting, *moved)})
        bridged: dict[tuple[Group, str | None], int] = {}
        for row in await conn.exec_driver_sql(_BRIDGED, (info.id, SCOPE)):
            names.setdefault(row.source_contract, (row.source_token, row.source_decimals))
            bridged[(row.merchant_pk, "between_chains"), row.source_contract] = int(row.units)
        addresses = await _addresses(conn, info, known)
        sendings, undone = await _transactions(conn, info, height)
        block = ChainBlock.chain == info.id, ChainBlock.scope == SCOPE, ChainBlock.height == height
        return Books(
            height=height,
            block_hash=await conn.scalar(select(ChainBlock.hash).where(*block)),
            cursor=(cursor.height, cursor.hash),
            booked=await _booked(conn, info),
            bridged=bridged,
            addresses=addresses,
            waiting=waiting,
            uncollected=uncollected,
            moved=frozenset(moved),
            last_moved={} if since is None else await _last_moved(conn, info, since, height),
            sendings=sendings,
            undone=undone,
            merchants=await _merchants(conn, addresses),
            names=names,
        )


async def _last_moved(conn: AsyncConnection, info: ChainInfo, since: int, height: int) -> Mapping[Holding, int]:
    rows = await conn.exec_driver_sql(_MOVES, (info.id, SCOPE, since, height))
    return {(row.address_pk, row.contract): row.height for row in rows}


async def _addresses(
    conn: AsyncConnection, info: ChainInfo, address_pks: Sequence[int]
) -> Mapping[int, GroupedAddress]:
    """Return main wallets, the gas station, and the addresses that were asked for."""
    wanted = or_(Address.purpose.in_(("wallet", "gas")), one_of(Address.id, address_pks))
    ours = select(Address.id, Address.address, Address.purpose, Address.merchant_pk).where(Address.mode == MODE)
    return {
        row.id: GroupedAddress(row.address, (row.merchant_pk or PLATFORM, GROUP_OF_PURPOSE[row.purpose]))
        for row in await conn.execute(ours.where(Address.family == info.family, wanted))
    }


async def _booked(conn: AsyncConnection, info: ChainInfo) -> Mapping[tuple[Group, str | None], int]:
    prefix, native = f"{info.id}/", asset_key(info.id, None)
    booked: dict[tuple[Group, str | None], int] = {}
    of_chain = LedgerAccount.mode == MODE, func.starts_with(LedgerAccount.asset, prefix)
    for row in await conn.execute(select(LedgerAccount).where(*of_chain, one_of(LedgerAccount.purpose, [*GROUPS]))):
        contract = None if row.asset == native else row.asset.removeprefix(prefix)
        key = ((row.merchant_pk or PLATFORM, GROUPS[row.purpose]), contract)
        booked[key] = booked.get(key, 0) - row.balance
    return booked


async def _transactions(
    conn: AsyncConnection, info: ChainInfo, height: int
) -> tuple[Sequence[Sending], Sequence[Undone]]:
    tx, slot, intent = OutboundTx, OutboundSlot, OutboundIntent
    rows = await conn.execute(
        select(
            *(tx.tx_id, tx.role, tx.fee_paid, tx.state, tx.succeeded, (intent.id == slot.intent_pk).label("pays_fee")),
            *(intent.kind, intent.action, intent.source_address_pk, intent.recipient_address_pk),
            *(intent.contract, intent.units),
        )
        .select_from(tx)
        .join(slot)
        .join(intent, or_(intent.id == slot.intent_pk, intent.sweep_pk == slot.intent_pk))
        .where(
            tx.chain == info.id,
            tx.scope == SCOPE,
            or_(tx.state.in_(("stored", "sent", "mined")), and_(tx.state == "final", tx.height > height)),
        )
        .order_by(tx.id)
    )
    sendings, undone = [], []
    for row in rows:
        # A sweep moves what its collections say, and pays the fee for all of them. Only a transfer and the call of an
        # exchange give something away, and a transaction that only uses a nonce gives nothing.
        moves = row.action in {"transfer", "call"} and row.kind not in CARRIERS
        sending = Sending(
            tx_id=row.tx_id,
            source_pk=row.source_address_pk,
            recipient_pk=row.recipient_address_pk if moves and row.kind in INTERNAL else None,
            contract=row.contract,
            units=row.units if moves and row.role == "main" else 0,
            pays_fee=row.pays_fee,
            moves_stake=row.action in {"stake", "withdraw"},
        )
        if row.state == "final":
            happened = structs.replace(sending, units=sending.units if row.succeeded else 0)
            undone.append(Undone(sending=happened, fee=(row.fee_paid or 0) if row.pays_fee else 0))
        else:
            sendings.append(sending)
    return sendings, undone


async def _merchants(conn: AsyncConnection, addresses: Mapping[int, GroupedAddress]) -> Mapping[int, str]:
    merchant_pks = sorted({one.group[0] for one in addresses.values()} - {PLATFORM})
    rows = await conn.execute(select(Merchant.id, Merchant.merchant_id).where(one_of(Merchant.id, merchant_pks)))
    return {row.id: row.merchant_id for row in rows}
