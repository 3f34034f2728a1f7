"""The statements of sending: intents, slots and transactions as rows. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models.base import listed
from cambist.domain import intents as kinds
from cambist.domain.allocation import PendingOutflow
from cambist.plugin import Fee, SignedTx
from cambist.services.chain_scope import ChainScope

from .rows import INTENT, JOINS, TX, IntentRow, TxRow, intent_row, tx_row

SWEPT = """EXISTS (
    SELECT FROM outbound_intents c JOIN outbound_intents p ON p.id = c.sweep_pk AND p.state = 'sending'
    WHERE c.source_address_pk = w.source_address_pk AND c.chain = w.chain AND c.scope = w.scope AND c.state = 'sending'
        AND c.sweep_pk IS NOT NULL
)"""
"""Whether the source of an intent ``w`` is part of a sweep: its next nonce slot is taken."""

IS_HELD_BACK = f"""(w.units > 0 AND w.kind IN ({listed(kinds.HELD_BACK)}) AND EXISTS (
    SELECT FROM merchants m WHERE m.id = w.merchant_pk AND m.suspended_at IS NOT NULL
))"""
"""Whether an intent ``w`` waits for its merchant to be reinstated. Taking an allowance back, to 0, does not."""

IS_LEAVING = """EXISTS (SELECT FROM outbound_slots s WHERE s.intent_pk = r.id AND s.state = 'open'
    AND s.created_at > {since} AND NOT EXISTS (SELECT FROM outbound_txs t WHERE t.slot_pk = s.id AND t.state = 'mined'))
"""
"""Whether an intent ``r`` was signed since then, and is in no block yet."""

NODES_APART_MAX = 3
"""Blocks by which the node that tells a balance may be behind the one that told of a receipt."""


OUTFLOW = f"""
SELECT i.contract, count(*) AS slots,
    sum(CASE WHEN newest.state = 'mined' THEN 0 ELSE sent.units END) AS units,
    sum(CASE WHEN newest.state = 'mined' THEN 0 ELSE newest.fee END) AS fee,
    sum(CASE WHEN newest.state = 'mined' THEN 0 ELSE newest.covered END) AS covered,
    sum(CASE WHEN newest.height > c.height - {NODES_APART_MAX} THEN sent.units ELSE 0 END) AS just_mined
FROM outbound_slots s JOIN outbound_intents i ON i.id = s.intent_pk
    CROSS JOIN LATERAL
    (SELECT CASE WHEN i.action IN ('transfer', 'stake', 'call') THEN i.units ELSE 0 END) sent (units)
    LEFT JOIN chain_cursors c ON c.chain = s.chain AND c.scope = s.scope
    JOIN LATERAL (SELECT max(t.state) FILTER (WHERE t.state = 'mined') AS state, max(t.height) AS height,
        max(greatest(t.fee_limit - t.fee_covered, 0) * t.fee_price + t.fee_extra) AS fee,
        max(t.fee_covered) AS covered FROM outbound_txs t WHERE t.slot_pk = s.id) newest ON true
WHERE s.address_pk = $1 AND s.chain = $2 AND s.scope = $3 AND s.state = 'open' AND s.id IS DISTINCT FROM {{beside}}
GROUP BY i.contract
"""  # noqa: S608  a constant


async def pending_outflow(
    conn: AsyncConnection, chain_scope: ChainScope, address_pk: int, *, beside: int | None = None
) -> PendingOutflow:
    """Return what is on its way out of an address and not seen in a block yet, fees at their highest included.

    The slot ``beside`` which it is asked for is not counted.
    """
    where = (address_pk, *chain_scope.key, beside)
    return outflow((await conn.exec_driver_sql(OUTFLOW.format(beside="$4::bigint"), where)).all())


def outflow(found: Sequence[Row[Any]]) -> PendingOutflow:
    """Return what rows of ``OUTFLOW`` say."""
    units = {row.contract: int(row.units) for row in found}
    coin = units.get(None, 0)
    units[None] = coin + sum(int(row.fee) for row in found)
    return PendingOutflow(
        slots=sum(row.slots for row in found),
        covered=sum(int(row.covered) for row in found),
        units=units,
        just_mined={row.contract: int(row.just_mined) for row in found},
        coin=coin,
    )


async def lock_slot(conn: AsyncConnection, slot_pk: int) -> Sequence[TxRow]:
    """Return a slot's transactions, newest first, locked with slot and intent; none where the slot is closed.

    Whoever changes what becomes of a transaction locks it for that before. A poll only notes where it has read one,
    and does not wait: the signer may be asked meanwhile.
    """
    found = await conn.exec_driver_sql(
        "SELECT 1 FROM outbound_slots s JOIN outbound_intents i ON i.id = s.intent_pk WHERE s.id = $1"
        " AND s.state = 'open' FOR UPDATE",
        (slot_pk,),
    )
    if found.first() is None:
        return []
    rows = await conn.exec_driver_sql(f"{TX} WHERE t.slot_pk = $1 ORDER BY t.id FOR KEY SHARE OF t", (slot_pk,))
    return [tx_row(row) for row in reversed(rows.all())]


_WAITING = f"""
SELECT {INTENT}, i.nth, i.due_at, i.priority FROM (SELECT *, row_number() OVER
    (PARTITION BY source_address_pk ORDER BY priority, retried_at, due_at, id) AS nth FROM outbound_intents
    w WHERE chain = $1 AND scope = $2 AND state = 'waiting' AND kind NOT IN ({listed(kinds.CARRIERS)})
    AND due_at <= $3 AND cancel_asked_at IS NULL AND NOT {SWEPT} AND NOT {IS_HELD_BACK}) i
{JOINS} WHERE i.nth <= $4 ORDER BY i.nth, i.due_at, i.priority, i.id LIMIT $5
"""  # noqa: S608  constants
_HELD = f"""
outbound_intents w WHERE chain = $1 AND scope = $2 AND state = 'waiting' AND due_at <= $3 AND cancel_asked_at IS NULL
    AND w.merchant_pk IN (SELECT id FROM merchants WHERE suspended_at IS NOT NULL) AND {IS_HELD_BACK}
"""  # noqa: S608  a constant
_WAITING_AND_HELD = f"""
SELECT held.is_any, i.* FROM (SELECT EXISTS (SELECT FROM {_HELD}) AS is_any) held LEFT JOIN ({_WAITING}) i ON true
ORDER BY i.nth, i.due_at, i.priority, i.intent_pk
"""  # noqa: S608  constants


async def waiting(conn: AsyncConnection, chain_scope: ChainScope, now: datetime, limit: int) -> Sequence[IntentRow]:
    """Return the intents whose time it is, in the order in which they should be sent.

    Every sender has a share of its own, the first of each before the second of any; and whoever was let wait has a
    later time, so that those who can be sent come up however many cannot.
    """
    rows = await conn.exec_driver_sql(_WAITING, (*chain_scope.key, now, limit, limit * 4))
    return [intent_row(row, reason=row.reason) for row in rows]


async def waiting_and_held(
    conn: AsyncConnection, chain_scope: ChainScope, now: datetime, limit: int
) -> tuple[Sequence[IntentRow], bool]:
    """Return the same, and whether there is anything that ``held_back()`` returns."""
    rows = (await conn.exec_driver_sql(_WAITING_AND_HELD, (*chain_scope.key, now, limit, limit * 4))).all()
    return [intent_row(row, reason=row.reason) for row in rows if row.intent_pk is not None], rows[0].is_any


async def due_for_reason(  # noqa: PLR0913  each by name
    conn: AsyncConnection, chain_scope: ChainScope, now: datetime, reason: str, *, is_deferred: bool, limit: int
) -> Sequence[IntentRow]:
    """Return due intents that wait for this reason, or for any but this and the signer."""
    which = "w.reason = $4" if is_deferred else "(w.reason IS NULL OR w.reason <> $4 AND w.reason NOT LIKE 'signer:%')"
    rows = await conn.exec_driver_sql(
        f"SELECT {INTENT} FROM (SELECT * FROM outbound_intents w WHERE chain = $1 AND scope = $2"  # noqa: S608  constants
        f" AND state = 'waiting' AND cancel_asked_at IS NULL AND due_at <= $3 AND {which} ORDER BY due_at, id LIMIT $5)"
        f" i {JOINS} ORDER BY i.id",
        (*chain_scope.key, now, reason, limit),
    )
    return [intent_row(row, reason=row.reason) for row in rows]


async def held_back(conn: AsyncConnection, chain_scope: ChainScope, now: datetime, limit: int) -> Sequence[IntentRow]:
    """Return intents whose time it is, and which wait for their merchants to be reinstated.

    These are not reinstated before the transaction ends, so that whoever does it finds what was deferred until then.
    """
    rows = await conn.exec_driver_sql(
        f"SELECT {INTENT} FROM (SELECT * FROM {_HELD} ORDER BY due_at LIMIT $4) i {JOINS} ORDER BY i.id",  # noqa: S608
        (*chain_scope.key, now, limit),
    )
    held = [intent_row(row, reason=row.reason) for row in rows]
    if not held:
        return []
    locked = await conn.exec_driver_sql(
        "SELECT id FROM merchants WHERE id = ANY($1::bigint[]) AND suspended_at IS NOT NULL ORDER BY id FOR SHARE",
        ([intent.update.merchant_pk for intent in held],),
    )
    suspended = set(locked.scalars())
    return [intent for intent in held if intent.update.merchant_pk in suspended]


_LOCK_WAITING = f"""
SELECT id FROM outbound_intents w WHERE id = ANY($1::bigint[]) AND state = 'waiting'
    AND cancel_asked_at IS NULL AND NOT {SWEPT} AND NOT {IS_HELD_BACK}{{more}} ORDER BY id FOR UPDATE SKIP LOCKED
"""  # noqa: S608  constants
# It was planned with what is lent; $2 is since when a return counts.
_STILL_LENT = f"""
    AND NOT EXISTS (SELECT FROM outbound_intents r WHERE r.recipient_address_pk = w.source_address_pk
        AND r.chain = w.chain AND r.scope = w.scope AND r.kind = '{kinds.IntentKind.LOAN_RETURN}'
        AND r.state IN ('waiting', 'sending') AND (r.state = 'waiting' OR {IS_LEAVING.format(since="$2")}))
"""
# What waits to be sent has no other slots than dead ones, and gets none from anybody else: the sender is locked.
_LOCK_WITH_DEAD_SLOTS = f"""
WITH still AS MATERIALIZED ({_LOCK_WAITING.format(more=_STILL_LENT)})
SELECT still.id, (
    SELECT array_agg(dead.number ORDER BY dead.id) FROM (
        SELECT s.id, coalesce(s.sequence, max(t.valid_until)) AS number FROM outbound_slots s
            JOIN outbound_txs t ON t.slot_pk = s.id
        WHERE s.intent_pk = still.id AND s.state = 'dead' GROUP BY s.id
    ) dead
) AS dead FROM still
"""  # noqa: S608  constants


async def lock_waiting(conn: AsyncConnection, intents: Sequence[IntentRow]) -> set[int]:
    """Lock those that still wait to be sent, and return their rows: not what somebody has asked to cancel since."""
    rows = await conn.exec_driver_sql(_LOCK_WAITING.format(more=""), ([one.id for one in intents],))
    return set(rows.scalars())


async def lock_with_dead_slots(
    conn: AsyncConnection, intents: Sequence[IntentRow], lent_since: datetime
) -> Mapping[int, Sequence[int] | None]:
    """Do the same for one sender, which is locked, and return of each its dead slots, None where it never had one.

    None of them, where what was lent to it has been asked back since then: its plans may count on that.
    Those are their nonces, or without nonces until when each was valid. Of one whose nonce was left to another slot
    there is no number, only that the intent has it.
    """
    rows = await conn.exec_driver_sql(_LOCK_WITH_DEAD_SLOTS, ([one.id for one in intents], lent_since))
    return {row.id: None if row.dead is None else [number for number in row.dead if number is not None] for row in rows}


async def lock_sender(conn: AsyncConnection, chain_scope: ChainScope, address_pk: int, mined: int | None) -> int:
    """Lock the sender, take note of how many of its transactions are mined, and return its next sequence.

    Another wallet with the same seed, or a database out of a backup, may have used sequences that ours do not know.
    """
    row = (
        await conn.exec_driver_sql(
            "INSERT INTO outbound_senders AS s (address_pk, chain, scope, next_sequence, mined_sequence)"
            " VALUES ($3, $1, $2, $4, $4) ON CONFLICT (address_pk, chain, scope) DO UPDATE"
            " SET next_sequence = greatest(s.next_sequence, excluded.next_sequence),"
            " mined_sequence = greatest(s.mined_sequence, excluded.mined_sequence) RETURNING next_sequence",
            (*chain_scope.key, address_pk, mined or 0),
        )
    ).one()
    return int(row.next_sequence)


class SlotUse(NamedTuple):
    """Whose a nonce slot is, and its state."""

    intent_pk: int
    state: str


async def slot_use(conn: AsyncConnection, chain_scope: ChainScope, address_pk: int, sequence: int) -> SlotUse | None:
    """Return what has a nonce of the sender, or None where none ever had it."""
    rows = await conn.exec_driver_sql(
        "SELECT intent_pk, state FROM outbound_slots WHERE address_pk = $3 AND chain = $1 AND scope = $2"
        " AND sequence = $4",
        (*chain_scope.key, address_pk, sequence),
    )
    row = rows.one_or_none()
    return None if row is None else SlotUse(row.intent_pk, row.state)


class NewTx(Struct, frozen=True, kw_only=True):
    """A signed transaction to be stored: for a new slot at this sequence."""

    intent: IntentRow
    sequence: int | None
    signed: SignedTx
    fee: Fee
    valid_until: int | None


_OPEN_SLOTS = """
WITH slots AS (
    INSERT INTO outbound_slots (intent_pk, address_pk, chain, scope, sequence, created_at)
    SELECT intent, $1, $2, $3, sequence, $4 FROM unnest($5::bigint[], $6::bigint[]) AS n (intent, sequence)
    RETURNING id, intent_pk
), sending AS (
    UPDATE outbound_intents i SET state = 'sending', reason = NULL, retried_at = NULL, updated_at = $4 FROM slots
    WHERE i.id = slots.intent_pk
), following AS (
    UPDATE outbound_senders SET next_sequence = $15 WHERE address_pk = $1 AND chain = $2 AND scope = $3
)
INSERT INTO outbound_txs (
    slot_pk, chain, scope, tx_id, raw, fee_limit, fee_price, fee_tip, fee_extra, fee_covered, valid_until, created_at
)
SELECT slots.id, $2, $3, n.tx_id, n.raw, n.fee_limit, n.fee_price, n.fee_tip, n.fee_extra, n.fee_covered,
    n.valid_until, $4
FROM unnest($5::bigint[], $7::text[], $8::bytea[], $9::numeric[], $10::numeric[], $11::numeric[], $12::numeric[],
    $13::numeric[], $14::bigint[])
    AS n (intent, tx_id, raw, fee_limit, fee_price, fee_tip, fee_extra, fee_covered, valid_until)
JOIN slots ON slots.intent_pk = n.intent
"""


async def open_slots(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    chain_scope: ChainScope,
    address_pk: int,
    txs: Sequence[NewTx],
    *,
    next_sequence: int,
    now: datetime,
) -> None:
    """Give intents their nonce slots, with the transactions that fill them.

    The database refuses an intent that has a slot already.
    """
    await conn.exec_driver_sql(
        _OPEN_SLOTS,
        (
            address_pk,
            *chain_scope.key,
            now,
            [tx.intent.id for tx in txs],
            [tx.sequence for tx in txs],
            [tx.signed.tx_id for tx in txs],
            [tx.signed.raw for tx in txs],
            [tx.fee.limit for tx in txs],
            [tx.fee.price for tx in txs],
            [tx.fee.tip for tx in txs],
            [tx.fee.extra for tx in txs],
            [tx.fee.covered for tx in txs],
            [tx.valid_until for tx in txs],
            next_sequence,
        ),
    )


async def add_replacement(  # noqa: PLR0913  each by name
    conn: AsyncConnection, chain_scope: ChainScope, old: TxRow, signed: SignedTx, *, role: str, fee: Fee, now: datetime
) -> None:
    await conn.exec_driver_sql(
        "INSERT INTO outbound_txs (slot_pk, chain, scope, role, tx_id, raw, fee_limit, fee_price, fee_tip, fee_extra,"
        " created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING",
        (
            old.slot_pk,
            *chain_scope.key,
            role,
            signed.tx_id,
            signed.raw,
            fee.limit,
            fee.price,
            fee.tip,
            fee.extra,
            now,
        ),
    )


async def note_tries(
    conn: AsyncConnection, chain_scope: ChainScope, accepted: Sequence[str], others: Sequence[str], now: datetime
) -> None:
    """Remember what was broadcast, and what of it nodes accepted."""
    await conn.exec_driver_sql(
        "WITH due AS (SELECT id, tx_id = ANY($3::text[]) AS accepted FROM outbound_txs WHERE chain = $1 AND scope = $2"
        " AND tx_id = ANY($3::text[] || $4::text[]) ORDER BY id FOR UPDATE)"
        " UPDATE outbound_txs t SET tried_at = $5,"
        " tries = t.tries + 1, sent_at = CASE WHEN accepted THEN coalesce(t.sent_at, $5) ELSE t.sent_at END,"
        " state = CASE WHEN accepted AND t.state = 'stored' THEN 'sent' ELSE t.state END FROM due WHERE t.id = due.id",
        (*chain_scope.key, list(accepted), list(others), now),
    )
