"""Native coin that a contract paid, on a chain whose nodes tell no transfers within transactions: by the balance."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models.base import listed
from cambist.domain.intents import CARRIERS
from cambist.plugin import Units

from .rows import ExchangeRow
from .worker import ExchangeWorker

# All that is known to have moved the address' native coin in one block: deposits, what we sent, and credits like this.
_KNOWN = f"""
SELECT coalesce((SELECT sum(units) FROM deposits WHERE chain = $1 AND scope = $2 AND height = $4 AND address_pk = $3
        AND contract IS NULL AND status <> 'orphaned'), 0)
    + coalesce((SELECT sum(unseen_units) FROM exchanges WHERE dest_chain = $1 AND scope = $2 AND unseen_height = $4
        AND recipient_pk = $3), 0)
    + coalesce((SELECT sum(i.units) FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk
        JOIN outbound_intents i ON i.id = s.intent_pk OR i.sweep_pk = s.intent_pk
        WHERE t.chain = $1 AND t.scope = $2
            AND (t.state = 'final' AND t.height = $4 OR t.state = 'mined' AND t.height = $4)
            AND t.succeeded AND t.role = 'main' AND i.recipient_address_pk = $3 AND i.contract IS NULL
            AND i.action = 'transfer' AND i.kind NOT IN ({listed(CARRIERS)})), 0)
    - coalesce((SELECT sum(t.fee_paid + CASE WHEN t.succeeded AND t.role = 'main' AND i.contract IS NULL
            AND i.action IN ('transfer', 'call') THEN i.units ELSE 0 END)
        FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk JOIN outbound_intents i ON i.id = s.intent_pk
        WHERE t.chain = $1 AND t.scope = $2
            AND (t.state = 'final' AND t.height = $4 OR t.state = 'mined' AND t.height = $4)
            AND i.source_address_pk = $3), 0) AS units
"""  # noqa: S608  constants
# What other swaps of the block have been promised, and nobody has credited yet.
_PROMISED = """
SELECT coalesce(sum(e.units_min), 0) FROM exchanges e JOIN outbound_slots s ON s.intent_pk = e.intent_pk
    JOIN outbound_txs t ON t.slot_pk = s.id AND t.state = 'final' AND t.role = 'main' AND t.height = $4
WHERE e.kind = 'swap' AND e.step = 'arriving' AND e.dest_chain = $1 AND e.scope = $2 AND e.recipient_pk = $3
    AND e.dest_contract IS NULL AND e.unseen_units = 0 AND e.id <> $5
"""
# Bridges whose fill may be in the block, where nobody has looked for it yet: some fill before the call is final.
_MAY_BE_FILLED = """
SELECT EXISTS (
    SELECT FROM exchanges e WHERE e.merchant_pk = $1 AND e.mode = $2 AND e.status = 'pending' AND e.kind = 'bridge'
        AND e.step IN ('sent', 'filling') AND e.dest_chain = $3 AND e.scope = $4 AND e.recipient_pk = $5
        AND e.dest_contract IS NULL AND e.units_min <= $7
        AND coalesce(e.fill_from, 0) <= $6 AND coalesce(e.searched_to, -1) < $6
) AND EXISTS (SELECT FROM outbound_intents WHERE id = $8 AND finished_at > $9)
"""


class Change(Struct, frozen=True):
    """By how much an address' native coin has changed in one block."""

    height: int
    units: int


async def change_in(worker: ExchangeWorker, chain_id: str, address: str, height: int) -> Change | None:
    """Ask how a block changed what an address holds; None where the chain is away. Raises ChainError."""
    chain = worker.chains.get(chain_id)
    if chain is None:
        return None
    before, after = [await chain.balance(address, chain.info.native, at) for at in (height - 1, height)]
    return Change(height, after - before)


async def came_unseen(conn: AsyncConnection, row: ExchangeRow, change: Change) -> Units:
    """Return how much of a change is explained by nothing, and by no other exchange: the caller holds the cursor.

    Counts only where no deposit of it can exist: the block was read, and told none. Of several swaps in one block each
    has what it was promised, and the first that is looked at what they brought beyond.
    """
    where = (row.dest_chain, row.scope, row.recipient_pk, change.height)
    known = (await conn.exec_driver_sql(_KNOWN, where)).scalar_one()
    promised = (await conn.exec_driver_sql(_PROMISED, (*where, row.pk))).scalar_one()
    return Units(max(0, change.units - int(known) - int(promised)))


async def may_be_filled(conn: AsyncConnection, row: ExchangeRow, height: int, beyond: int, since: datetime) -> bool:
    """Whether what a swap seems to have brought beyond its promise may be the fill of a bridge, in the same block.

    That fill says how much it is, so that it is looked for first. No swap waits for it whose call was final before
    ``since``: perhaps nobody follows the bridge.
    """
    where = (row.merchant_pk, row.mode, row.dest_chain, row.scope, row.recipient_pk, height, beyond)
    found = await conn.exec_driver_sql(_MAY_BE_FILLED, (*where, row.intent_pk, since))
    return bool(found.scalar_one())
