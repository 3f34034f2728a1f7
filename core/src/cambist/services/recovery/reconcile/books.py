"""Everything the books say about one chain at one height, read as of one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
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
}
GROUP_OF_PURPOSE: Mapping[str, str] = {"payment": "deposits", "wallet": "wallet", "gas": "gas"}

Group: TypeAlias = tuple[int, str]
"""A merchant's primary key (or ``PLATFORM``) and the name of the group."""
Holding: TypeAlias = tuple[int, str | None]
"""An address' primary key and the contract of a token, None for the native coin."""


class Place(Struct, frozen=True):
    """An address of ours."""

    pk: int
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

    ``uncollected`` is what confirmed deposits leave on their addresses until they are collected. ``waiting`` is what
    deposits brought by then that the ledger does not say, or took for confirmed only later. ``last_moved`` is the last
    height at which a holding is known to have changed, of those that were asked for.
    """

    height: int
    block_hash: str | None
    cursor: tuple[int, str]
    booked: Mapping[tuple[Group, str | None], int]
    places: Mapping[int, Place]
    waiting: Mapping[Holding, int]
    uncollected: Mapping[Holding, int]
    moved: frozenset[Holding]
    last_moved: Mapping[Holding, int]
    sendings: Sequence[Sending]
    undone: Sequence[Undone]
    merchants: Mapping[int, str]
    names: Mapping[str | None, tuple[str, int]]


_CURSOR = "SELECT height, hash FROM chain_cursors WHERE chain = $1 AND scope = $2"
_LEDGER = (
    "SELECT coalesce(merchant_pk, 0) AS merchant_pk, asset, purpose, -balance AS units FROM ledger_accounts"
    " WHERE mode = $1 AND starts_with(asset, $2) AND purpose = ANY($3::text[])"
)
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
SELECT DISTINCT address_pk, contract, token, decimals FROM (
    SELECT source_address_pk AS address_pk, contract, token, decimals FROM outbound_intents
    WHERE chain = $1 AND scope = $2
    UNION ALL
    SELECT recipient_address_pk, contract, token, decimals FROM outbound_intents
    WHERE chain = $1 AND scope = $2 AND recipient_address_pk IS NOT NULL
) AS moves
"""
_PLACES = (
    "SELECT id, address, purpose, coalesce(merchant_pk, 0) AS merchant_pk FROM addresses"
    " WHERE mode = $1 AND family = $2 AND (purpose IN ('wallet', 'gas') OR id = ANY($3::bigint[]))"
)
_HASH = "SELECT hash FROM chain_blocks WHERE chain = $1 AND scope = $2 AND height = $3"
# A sweep moves what its collections say, and pays the fee for all of them. Only a transfer gives something away.
_TXS = """
SELECT t.tx_id, t.role, t.fee_paid, t.state, i.source_address_pk, i.contract, t.succeeded,
       i.id = s.intent_pk AS pays_fee, i.action IN ('stake', 'withdraw') AS moves_stake,
       CASE WHEN i.kind = 'sweep' OR i.action <> 'transfer' THEN 0 ELSE i.units END AS units,
       CASE WHEN i.kind IN ('collection', 'repair', 'top_up') THEN i.recipient_address_pk END AS recipient_pk
FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk
    JOIN outbound_intents i ON i.id = s.intent_pk OR i.sweep_pk = s.intent_pk
WHERE t.chain = $1 AND t.scope = $2
    AND (t.state IN ('stored', 'sent', 'mined') OR t.state = 'final' AND t.height > $3)
ORDER BY t.id
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


async def read_books(
    db: Database, info: ChainInfo, height: int | None = None, *, since: int | None = None
) -> Books | None:
    """Return what the books say of a chain, all as of one moment; None before the chain was looked at.

    They are about the height up to which it was read, or a lower one. ``last_moved`` tells what is booked of
    the heights above ``since``.
    """
    async with db.transaction() as conn:
        await conn.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor = (await conn.exec_driver_sql(_CURSOR, (info.id, SCOPE))).one_or_none()
        if cursor is None:
            return None
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
        places = await _places(conn, info, known)
        sendings, undone = await _transactions(conn, info, height)
        return Books(
            height=height,
            block_hash=await _hash(conn, info, height),
            cursor=(cursor.height, cursor.hash),
            booked=await _booked(conn, info),
            places=places,
            waiting=waiting,
            uncollected=uncollected,
            moved=frozenset(moved),
            last_moved={} if since is None else await _last_moved(conn, info, since, height),
            sendings=sendings,
            undone=undone,
            merchants=await _merchants(conn, places),
            names=names,
        )


async def _hash(conn: AsyncConnection, info: ChainInfo, height: int) -> str | None:
    found: str | None = (await conn.exec_driver_sql(_HASH, (info.id, SCOPE, height))).scalar_one_or_none()
    return found


async def _last_moved(conn: AsyncConnection, info: ChainInfo, since: int, height: int) -> Mapping[Holding, int]:
    rows = await conn.exec_driver_sql(_MOVES, (info.id, SCOPE, since, height))
    return {(row.address_pk, row.contract): row.height for row in rows}


async def _places(conn: AsyncConnection, info: ChainInfo, known: Sequence[int]) -> Mapping[int, Place]:
    rows = await conn.exec_driver_sql(_PLACES, (MODE, info.family, known))
    return {row.id: Place(row.id, row.address, (row.merchant_pk, GROUP_OF_PURPOSE[row.purpose])) for row in rows}


async def _booked(conn: AsyncConnection, info: ChainInfo) -> Mapping[tuple[Group, str | None], int]:
    prefix, native = f"{info.id}/", asset_key(info.id, None)
    booked: dict[tuple[Group, str | None], int] = {}
    for row in await conn.exec_driver_sql(_LEDGER, (MODE, prefix, list(GROUPS))):
        contract = None if row.asset == native else row.asset.removeprefix(prefix)
        key = ((row.merchant_pk, GROUPS[row.purpose]), contract)
        booked[key] = booked.get(key, 0) + int(row.units)
    return booked


async def _transactions(
    conn: AsyncConnection, info: ChainInfo, height: int
) -> tuple[Sequence[Sending], Sequence[Undone]]:
    sendings, undone = [], []
    for row in await conn.exec_driver_sql(_TXS, (info.id, SCOPE, height)):
        sending = Sending(
            tx_id=row.tx_id,
            source_pk=row.source_address_pk,
            recipient_pk=row.recipient_pk,
            contract=row.contract,
            # A transaction that only takes a place sends nothing.
            units=int(row.units) if row.role == "main" else 0,
            pays_fee=row.pays_fee,
            moves_stake=row.moves_stake,
        )
        if row.state == "final":
            happened = structs.replace(sending, units=sending.units if row.succeeded else 0)
            undone.append(Undone(sending=happened, fee=int(row.fee_paid or 0) if row.pays_fee else 0))
        else:
            sendings.append(sending)
    return sendings, undone


async def _merchants(conn: AsyncConnection, places: Mapping[int, Place]) -> Mapping[int, str]:
    wanted = sorted({place.group[0] for place in places.values()} - {PLATFORM})
    rows = await conn.exec_driver_sql("SELECT id, merchant_id FROM merchants WHERE id = ANY($1::bigint[])", (wanted,))
    return {row.id: row.merchant_id for row in rows}
