"""Transfers that are wanted: a use case writes one in its own transaction, and the engine finds it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Action, Token, Units


class NewIntent(Struct, frozen=True, kw_only=True):
    """A transfer from an address of ours. ``reference`` names it for ever: the same one is never sent twice.

    ``recipient_row`` is the row of the target where that is an address of ours, too. Lower ``priority`` goes first.
    """

    reference: str
    kind: str
    mode: str
    chain: str
    scope: int
    merchant_row: int | None
    source_row: int
    target: str
    token: Token
    units: Units
    recipient_row: int | None = None
    priority: int = 100
    forced: bool = False
    action: Action = "transfer"


_SUBMIT = """
INSERT INTO outbound_intents (
    due_at, created_at, updated_at, reference, kind, mode, chain, scope, merchant_id, source_address_id,
    recipient_address_id, target, token, contract, decimals, units, priority, forced, action
)
SELECT $1, $1, $1, * FROM unnest(
    $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
    $10::text[], $11::text[], $12::text[], $13::bigint[], $14::numeric[], $15::bigint[], $16::bool[], $17::text[]
)
ON CONFLICT (reference) DO NOTHING
RETURNING reference, id
"""


async def submit(conn: AsyncConnection, intents: Sequence[NewIntent], now: datetime) -> dict[str, int]:
    """Store what was not stored before; return the rows of what is new by reference.

    The engine finds it once the caller's transaction is committed; a hint on the topic ``outbound`` makes it sooner.
    """
    if not intents:
        return {}
    rows = await conn.exec_driver_sql(
        _SUBMIT,
        (
            now,
            [one.reference for one in intents],
            [one.kind for one in intents],
            [one.mode for one in intents],
            [one.chain for one in intents],
            [one.scope for one in intents],
            [one.merchant_row for one in intents],
            [one.source_row for one in intents],
            [one.recipient_row for one in intents],
            [one.target for one in intents],
            [one.token.symbol for one in intents],
            [one.token.contract for one in intents],
            [one.token.decimals for one in intents],
            [one.units for one in intents],
            [one.priority for one in intents],
            [one.forced for one in intents],
            [one.action for one in intents],
        ),
    )
    return {row.reference: row.id for row in rows}


_COMING = """
SELECT EXISTS (SELECT FROM outbound_intents WHERE recipient_address_id = $1 AND chain = $2 AND scope = $3
    AND kind = $4 AND state IN ('waiting', 'sending'))
"""


async def is_coming(conn: AsyncConnection, chain: str, scope: int, recipient_row: int, kind: str) -> bool:
    """Whether an intent of this kind to an address of ours is open. Engines that ask at once take turns."""
    await conn.exec_driver_sql("SELECT FROM addresses WHERE id = $1 FOR NO KEY UPDATE", (recipient_row,))
    coming = await conn.exec_driver_sql(_COMING, (recipient_row, chain, scope, kind))
    return bool(coming.scalar_one())
