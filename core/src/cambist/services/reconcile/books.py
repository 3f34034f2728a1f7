"""Everything the books say about one chain, read as of one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.plugin import ChainInfo
from cambist.services.ledger import PLATFORM, asset_key

MODE = "live"
SCOPE = 0
GROUPS: Mapping[str, str] = {
    "custody_deposits": "deposits",
    "float_deposits": "deposits",
    "custody_wallet": "wallet",
    "float_wallet": "wallet",
    "custody_gas": "gas",
}
GROUP_OF_PURPOSE: Mapping[str, str] = {"payment": "deposits", "wallet": "wallet", "gas": "gas"}

Group: TypeAlias = tuple[int, str]
"""A merchant's row (or ``PLATFORM``) and the name of the group."""
Holding: TypeAlias = tuple[int, str | None]
"""An address' row and the contract of a token, None for the native coin."""


class Place(Struct, frozen=True):
    """An address of ours."""

    row: int
    address: str
    group: Group


class Sending(Struct, frozen=True, kw_only=True):
    """A transaction that is stored, and not booked. ``recipient_row`` is set where what it sends stays ours."""

    tx_id: str
    source_row: int
    recipient_row: int | None
    contract: str | None
    units: int
    pays_fee: bool = True


class Undone(Struct, frozen=True, kw_only=True):
    """A transaction that is booked, and stands above the height: a reorg is about to take it back."""

    sending: Sending
    fee: int


class Books(Struct, frozen=True, kw_only=True):
    """One chain's books. ``settled`` is what settled deposits leave on their addresses until they are collected."""

    height: int
    block_hash: str
    booked: Mapping[tuple[Group, str | None], int]
    places: Mapping[int, Place]
    detected: Mapping[Holding, int]
    settled: Mapping[Holding, int]
    moved: frozenset[Holding]
    sendings: Sequence[Sending]
    undone: Sequence[Undone]
    merchants: Mapping[int, str]
    names: Mapping[str | None, tuple[str, int]]


_CURSOR = "SELECT height, hash FROM chain_cursors WHERE chain = $1 AND scope = $2"
_LEDGER = (
    "SELECT coalesce(merchant_id, 0) AS merchant_row, asset, purpose, -balance AS units FROM ledger_accounts"
    " WHERE mode = $1 AND starts_with(asset, $2) AND purpose = ANY($3::text[])"
)
_DEPOSITS = """
SELECT d.address_id, d.contract, min(d.token) AS token, min(d.decimals) AS decimals,
       coalesce(sum(d.units) FILTER (WHERE d.status = 'detected'), 0) AS detected,
       coalesce(sum(d.units) FILTER (WHERE d.status = 'settled' AND c.state IS DISTINCT FROM 'done'), 0) AS settled
FROM deposits d LEFT JOIN outbound_intents c ON c.id = d.collection_id
WHERE d.chain = $1 AND d.scope = $2 GROUP BY d.address_id, d.contract
"""
_INTENTS = """
SELECT DISTINCT address_id, contract, token, decimals FROM (
    SELECT source_address_id AS address_id, contract, token, decimals FROM outbound_intents
    WHERE chain = $1 AND scope = $2
    UNION ALL
    SELECT recipient_address_id, contract, token, decimals FROM outbound_intents
    WHERE chain = $1 AND scope = $2 AND recipient_address_id IS NOT NULL
) AS moves
"""
_PLACES = (
    "SELECT id, address, purpose, coalesce(merchant_id, 0) AS merchant_row FROM addresses"
    " WHERE mode = $1 AND family = $2 AND (purpose IN ('wallet', 'gas') OR id = ANY($3::bigint[]))"
)
# A sweep moves what its collections say, and pays the fee for all of them.
_TXS = """
SELECT t.tx_id, t.role, t.fee_paid, t.state, i.source_address_id, i.contract, t.succeeded,
       i.id = s.intent_id AS pays_fee, CASE WHEN i.kind = 'sweep' THEN 0 ELSE i.units END AS units,
       CASE WHEN i.kind IN ('collection', 'repair', 'top_up') THEN i.recipient_address_id END AS recipient_row
FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_id
    JOIN outbound_intents i ON i.id = s.intent_id OR i.sweep_id = s.intent_id
WHERE t.chain = $1 AND t.scope = $2
    AND (t.state IN ('stored', 'sent', 'mined') OR t.state = 'final' AND t.height > $3)
ORDER BY t.id
"""


async def read_books(db: Database, info: ChainInfo) -> Books | None:
    """Return what the books say of a chain, all as of one moment; None before the chain was looked at."""
    async with db.transaction() as conn:
        await conn.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor = (await conn.exec_driver_sql(_CURSOR, (info.id, SCOPE))).one_or_none()
        if cursor is None:
            return None
        names: dict[str | None, tuple[str, int]] = {
            token.contract: (token.symbol, token.decimals) for token in info.tokens
        }
        detected: dict[Holding, int] = {}
        settled: dict[Holding, int] = {}
        for row in await conn.exec_driver_sql(_DEPOSITS, (info.id, SCOPE)):
            names.setdefault(row.contract, (row.token, row.decimals))
            detected[row.address_id, row.contract] = int(row.detected)
            settled[row.address_id, row.contract] = int(row.settled)
        moved = set()
        for row in await conn.exec_driver_sql(_INTENTS, (info.id, SCOPE)):
            names.setdefault(row.contract, (row.token, row.decimals))
            moved.add((row.address_id, row.contract))
        known = sorted({row for row, _ in (*detected, *moved)})
        places = await _places(conn, info, known)
        sendings, undone = await _transactions(conn, info, cursor.height)
        return Books(
            height=cursor.height,
            block_hash=cursor.hash,
            booked=await _booked(conn, info),
            places=places,
            detected=detected,
            settled=settled,
            moved=frozenset(moved),
            sendings=sendings,
            undone=undone,
            merchants=await _merchants(conn, places),
            names=names,
        )


async def _places(conn: AsyncConnection, info: ChainInfo, known: Sequence[int]) -> Mapping[int, Place]:
    rows = await conn.exec_driver_sql(_PLACES, (MODE, info.family, known))
    return {row.id: Place(row.id, row.address, (row.merchant_row, GROUP_OF_PURPOSE[row.purpose])) for row in rows}


async def _booked(conn: AsyncConnection, info: ChainInfo) -> Mapping[tuple[Group, str | None], int]:
    prefix, native = f"{info.id}/", asset_key(info.id, None)
    booked: dict[tuple[Group, str | None], int] = {}
    for row in await conn.exec_driver_sql(_LEDGER, (MODE, prefix, list(GROUPS))):
        contract = None if row.asset == native else row.asset.removeprefix(prefix)
        key = ((row.merchant_row, GROUPS[row.purpose]), contract)
        booked[key] = booked.get(key, 0) + int(row.units)
    return booked


async def _transactions(
    conn: AsyncConnection, info: ChainInfo, height: int
) -> tuple[Sequence[Sending], Sequence[Undone]]:
    sendings, undone = [], []
    for row in await conn.exec_driver_sql(_TXS, (info.id, SCOPE, height)):
        sending = Sending(
            tx_id=row.tx_id,
            source_row=row.source_address_id,
            recipient_row=row.recipient_row,
            contract=row.contract,
            # A transaction that only takes a place sends nothing.
            units=int(row.units) if row.role == "main" else 0,
            pays_fee=row.pays_fee,
        )
        if row.state == "final":
            units = sending.units if row.succeeded else 0
            undone.append(
                Undone(
                    sending=Sending(
                        tx_id=row.tx_id,
                        source_row=sending.source_row,
                        recipient_row=sending.recipient_row,
                        contract=sending.contract,
                        units=units,
                    ),
                    fee=int(row.fee_paid or 0) if row.pays_fee else 0,
                )
            )
        else:
            sendings.append(sending)
    return sendings, undone


async def _merchants(conn: AsyncConnection, places: Mapping[int, Place]) -> Mapping[int, str]:
    wanted = sorted({place.group[0] for place in places.values()} - {PLATFORM})
    rows = await conn.exec_driver_sql("SELECT id, merchant_id FROM merchants WHERE id = ANY($1::bigint[])", (wanted,))
    return {row.id: row.merchant_id for row in rows}
