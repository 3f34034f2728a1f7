"""Claims what has arrived: every transfer to an address of ours is one deposit, and only that row credits.

A claim says which part of which deposit belongs to which exchange, in the life that the deposit has at the time. The
deposit is stored and confirmed by the watcher like any other, before or after anybody looks for it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import ExchangePart
from cambist.plugin import Units
from cambist.services.receiving.deposits import crediting
from cambist.services.receiving.deposits.rows import COLUMNS, DepositRow, deposit_row

from .rows import ExchangeRow

# As ``lock_cursor`` does for one chain. Whoever locks several does so in one order: the names' own, in every language.
_LOCK_CURSORS = """
SELECT FROM chain_cursors WHERE scope = $1 AND chain = ANY($2::text[]) ORDER BY chain COLLATE "C" FOR NO KEY UPDATE
"""


class Arrived(Struct, frozen=True):
    """A deposit, and how much of it no exchange has claimed."""

    deposit: DepositRow
    free: Units


async def lock_arrived(  # noqa: PLR0913, PLR0917  which transfers
    conn: AsyncConnection, chain: str, scope: int, tx_id: str, address_pk: int, contract: str | None
) -> Sequence[Arrived]:
    """Return what a transaction brought to an address of ours in a token, locked, in its order. Orphans are left out.

    The chain's cursor is locked before by whoever asks: see ``lock_cursors``.
    """
    found = await conn.exec_driver_sql(
        f"SELECT {COLUMNS} FROM deposits d WHERE d.chain = $1 AND d.scope = $2 AND d.tx_id = $3 AND d.address_pk = $4"  # noqa: S608  a constant
        " AND d.contract IS NOT DISTINCT FROM $5 AND d.status <> 'orphaned' ORDER BY d.id FOR UPDATE OF d",
        (chain, scope, tx_id, address_pk, contract),
    )
    rows = [deposit_row(row) for row in found]
    claimed = await conn.exec_driver_sql(
        "SELECT p.deposit_pk, sum(p.units) AS units FROM exchange_parts p JOIN deposits d ON d.id = p.deposit_pk"
        " AND d.incarnation = p.incarnation WHERE p.deposit_pk = ANY($1::bigint[]) GROUP BY p.deposit_pk",
        ([row.id for row in rows],),
    )
    taken = {row.deposit_pk: int(row.units) for row in claimed}
    return [Arrived(row, Units(row.units - taken.get(row.id, 0))) for row in rows]


async def lock_free(  # noqa: PLR0913, PLR0917  which transfers
    conn: AsyncConnection, chain: str, scope: int, tx_id: str, address_pk: int | None, contract: str | None
) -> Sequence[Arrived]:
    """Return what ``lock_arrived`` returns of which something can be claimed; nothing where the address is not ours."""
    if address_pk is None:
        return []
    return [one for one in await lock_arrived(conn, chain, scope, tx_id, address_pk, contract) if one.free]


async def lock_cursors(conn: AsyncConnection, row: ExchangeRow) -> None:
    """Keep polls of both chains from being stored: they hold deposits and accounts behind their cursors."""
    await conn.exec_driver_sql(_LOCK_CURSORS, (row.scope, [row.source_chain, row.dest_chain]))


async def claim(  # noqa: PLR0913, PLR0917  for whom, what, as what
    conn: AsyncConnection, row: ExchangeRow, arrived: Sequence[Arrived], units: Units, role: str, now: datetime
) -> None:
    """Claim so much of confirmed deposits, and make it available. There is enough of it."""
    left = units
    for one in arrived:
        share = Units(min(left, one.free))
        if share <= 0:
            continue
        left = Units(left - share)
        part = {
            "exchange_pk": row.pk,
            "deposit_pk": one.deposit.id,
            "incarnation": one.deposit.incarnation,
            "role": role,
            "units": share,
            "is_gone": False,
        }
        # What an earlier life of the deposit gave may still stand there.
        keys = [ExchangePart.exchange_pk, ExchangePart.deposit_pk]
        await conn.execute(insert(ExchangePart).values(**part).on_conflict_do_update(index_elements=keys, set_=part))
        # A person may have released it already.
        held = Units(min(share, one.deposit.held_units))
        if held:
            kind = f"{row.kind}_{role}"
            await crediting.release(conn, row.mode, one.deposit, now, held, kind=kind, of=row.txn_id)
    if left:
        raise AssertionError("more was claimed than has arrived")


def sum_free(arrived: Sequence[Arrived]) -> Units:
    return Units(sum(one.free for one in arrived))


def are_confirmed(arrived: Sequence[Arrived]) -> bool:
    return bool(arrived) and all(one.deposit.status == "confirmed" for one in arrived)
