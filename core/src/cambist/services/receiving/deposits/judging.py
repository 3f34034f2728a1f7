"""At the head of a chain: confirm deposits, judge payments, post what follows, queue what merchants are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from msgspec import Struct, field
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import transposed
from cambist.domain import payments as machine
from cambist.domain.payments import Status, Terms, Transition
from cambist.plugin import Head, Units
from cambist.services.receiving.accounts import events as account_events
from cambist.services.receiving.payments.events import payment_event, refunded_event
from cambist.services.receiving.payments.refunds import sent_refunds
from cambist.services.webhooks.outbox import NewEvent, enqueue

from . import crediting, telling
from .rows import COLUMNS, DepositRow, deposit_row
from .store import WatchedChain, mark_dirty
from .telling import Case

JUDGED_MAX = 2_000
"""Payments of one kind judged in one transaction; the rest stay due, and the next poll takes them."""

# What is due on chain $1 and scope $2; ``pending.py`` asks whether there is any.
_ON_CHAIN = "chain = $1 AND scope = $2 AND"
CONFIRMED = f"{_ON_CHAIN} status = 'detected' AND height <= $3 - required_confirmations AND height <= {{deepest}}"
"""Deposits that have their confirmations at head $3."""
DIRTY = f"{_ON_CHAIN} dirty"
EXPIRED = f"{_ON_CHAIN} status = 'pending' AND expires_at <= {{now}}"
DETECTED = f"{_ON_CHAIN} status = 'detected'"
CONFIRMING = f"{_ON_CHAIN} status IN ('detected', 'confirming')"
"""Payments whose pages count confirmations."""


class Judgement(Struct, frozen=True, kw_only=True):
    """What judging did: public ids of payments and accounts that changed, and how many events and transitions."""

    changed: Sequence[str] = field(default_factory=tuple)
    accounts: Sequence[str] = field(default_factory=tuple)
    events: int = 0
    transitions: int = 0


async def judge(
    conn: AsyncConnection, chain_scope: WatchedChain, head: Head, now: datetime, *, counts_on: bool
) -> Judgement:
    """Confirm what has its confirmations, then let every payment that is due take its steps.

    The chain has been scanned to ``head``; ``counts_on`` says that it grew, and that there were pages which count
    confirmations. Rows are locked in id order: deposits, then payments, then the ledger's accounts.
    """
    confirmed = await _confirm(conn, chain_scope, head, now)
    due = {row.id: row for row in await conn.exec_driver_sql(_DUE, (*chain_scope.key, now, JUDGED_MAX))}
    # Their pages count confirmations, though nothing about them is decided before a deposit is confirmed or vanishes.
    changed = await _confirming(conn, chain_scope) if counts_on else set()
    return await _judge(conn, chain_scope, head, now, confirmed=confirmed, due=due, changed=changed)


async def judge_payment(
    conn: AsyncConnection, chain_scope: WatchedChain, head: Head, now: datetime, payment_pk: int
) -> Judgement:
    """Let one payment take its steps as far as the chain was read: somebody decided about its money.

    The caller has locked the chain's cursor, so that no poll is being stored. Confirms nothing.
    """
    due = {row.id: row for row in await conn.exec_driver_sql(f"{_PAYMENTS} = $1 FOR NO KEY UPDATE OF p", (payment_pk,))}
    return await _judge(conn, chain_scope, head, now, confirmed=(), due=due, changed=set())


async def _judge(  # noqa: PLR0913  what is judged, each by name
    conn: AsyncConnection,
    chain_scope: WatchedChain,
    head: Head,
    now: datetime,
    *,
    confirmed: Sequence[DepositRow],
    due: Mapping[int, Row[Any]],
    changed: set[str],
) -> Judgement:
    deposits = await _deposits(conn, list(due))
    # Only what had ended before can have been refunded, so it is rare that any is looked for.
    sent = await sent_refunds(
        conn, [row.id for row in due.values() if row.refunded_units and row.status != Status.REFUNDED]
    )
    events: list[NewEvent] = []
    updates: list[_Update] = []
    ended: list[tuple[Units, Sequence[DepositRow]]] = []
    cases: list[Case] = []
    transitions = 0
    for row in due.values():
        own = deposits.get(row.id, [])
        seen = [_seen(deposit, head) for deposit in own]
        terms = _terms(row, refund_sent=row.id in sent)
        steps = machine.judge(terms, seen, now, extended_events=row.extended_events)
        events += [_event(row, step, step.event, sent, now) for step in steps if step.event is not None]
        transitions += len(steps)
        status = steps[-1].status if steps else Status(row.status)
        order_units = steps[-1].order_units if steps else Units(int(row.order_units))
        tx_id = steps[-1].tx_id if steps else row.tx_id
        if status is Status.PENDING:
            tx_id = own[-1].tx_id if own else None
        received = machine.received(status, seen)
        if row.extended_events:
            cases.append(Case(row, status, received, own))
        states = [row.status, *(str(step.status) for step in steps)]
        before = states[-2] if steps and status is Status.REFUNDED else None
        updates.append(_Update(row.id, str(status), received, order_units, tx_id, before))
        if steps or row.dirty:
            changed.add(row.public_id)
        if status in machine.REFUNDABLE:
            ended.append((order_units, own))
    await _update(conn, updates, now)
    # What counts for an account belongs to no order that could still change: all of it is available at once.
    ended += [(deposit.units, [deposit]) for deposit in confirmed if deposit.counts_for_account]
    shares = await crediting.credit_and_allocate(conn, chain_scope.mode, confirmed, ended)
    fresh = {deposit.id for deposit in confirmed}
    events += telling.partial_events(cases, now)
    events += telling.held_events(cases, shares, fresh, now)
    events += await telling.mismatch_events(conn, [deposit for deposit in confirmed if not deposit.matches], now)
    await enqueue(conn, events, ids=chain_scope.ids, now=now)
    told = await telling.tell_accounts(conn, confirmed, chain_scope.ids, now)
    return Judgement(
        changed=sorted(changed), accounts=told.accounts, events=len(events) + told.events, transitions=transitions
    )


def _event(row: Row[Any], step: Transition, event: str, sent: Mapping[int, Any], now: datetime) -> NewEvent:
    if step.status is Status.REFUNDED:
        return refunded_event(row, sent[row.id], received=step.received, at=now)
    return payment_event(row, event=event, status=step.status, received=step.received, tx_id=step.tx_id, at=now)


async def orphan_above(conn: AsyncConnection, chain_scope: WatchedChain, height: int, now: datetime) -> int:
    """Orphan every deposit above a fork, and take back the credit of those that were confirmed; return how many.

    Nothing is judged: the money may stand in the new branch, which has yet to be read.
    """
    rows = [
        deposit_row(row)
        for row in await conn.exec_driver_sql(
            f"SELECT {COLUMNS} FROM deposits d WHERE chain = $1 AND scope = $2 AND height > $3"  # noqa: S608  a constant
            " AND status <> 'orphaned' ORDER BY id FOR UPDATE",
            (*chain_scope.key, height),
        )
    ]
    if not rows:
        return 0
    await mark_dirty(conn, chain_scope, {row.payment_pk for row in rows if row.payment_pk is not None})
    await conn.exec_driver_sql(
        "UPDATE deposits SET status = 'orphaned', available_units = 0, returned_units = 0, released_units = 0,"
        " resolution = NULL, resolved_at = NULL, orphaned_at = $2 WHERE id = ANY($1::bigint[])",
        ([row.id for row in rows], now),
    )
    # Exchanges that came of them hear of it from their claims.
    await conn.exec_driver_sql(
        "UPDATE exchange_parts SET is_gone = true WHERE deposit_pk = ANY($1::bigint[])", ([row.id for row in rows],)
    )
    await _forget_accepted(conn, rows)
    await crediting.reverse(conn, chain_scope.mode, [row for row in rows if row.status == "confirmed"])
    # Told of what was told: of what counts from when it is seen, of what is held once it is confirmed.
    gone = [row.id for row in rows if row.counts_for_account or (row.account_pk and row.status == "confirmed")]
    await account_events.tell(conn, gone, account_events.ORPHANED, chain_scope.ids, now)
    return len(rows)


async def _forget_accepted(conn: AsyncConnection, rows: Sequence[DepositRow]) -> None:
    """Shrink orders by the surplus that had been accepted for them and is gone."""
    gone: dict[int, int] = {}
    for row in rows:
        if row.resolution == "accepted" and row.payment_pk is not None:
            gone[row.payment_pk] = gone.get(row.payment_pk, 0) + row.available_units
    if gone:
        await conn.exec_driver_sql(
            "UPDATE payments p SET order_units = greatest(0, p.order_units - least(g.units, p.accepted_units)),"
            " accepted_units = p.accepted_units - least(g.units, p.accepted_units)"
            " FROM unnest($1::bigint[], $2::numeric[]) AS g (id, units) WHERE p.id = g.id",
            (list(gone), list(gone.values())),
        )


async def _confirm(conn: AsyncConnection, chain_scope: WatchedChain, head: Head, now: datetime) -> Sequence[DepositRow]:
    ceiling = chain_scope.deepest(head.height, head.finalized_height)
    rows = await conn.exec_driver_sql(
        f"WITH due AS (SELECT id FROM deposits WHERE {CONFIRMED.format(deepest='$4')} ORDER BY id FOR UPDATE)"  # noqa: S608
        " UPDATE deposits d SET status = 'confirmed', confirmed_at = $5 FROM due WHERE d.id = due.id"
        f" RETURNING {COLUMNS}",
        (*chain_scope.key, head.height, ceiling, now),
    )
    confirmed = [deposit_row(row) for row in rows]
    await mark_dirty(conn, chain_scope, {row.payment_pk for row in confirmed if row.payment_pk is not None})
    return confirmed


_PAYMENTS = """
SELECT p.id, p.payment_id, p.public_id, p.merchant_pk, p.chain, p.token, p.decimals, p.expected_units, p.received_units,
       p.order_units, p.accepted_units, p.refunded_units, p.tolerance_bps, p.grace_s, p.status, p.dirty, p.expires_at,
       p.order_id, p.tx_id, p.pricing_mode, p.amount, coalesce(p.webhook_url, j.payment_webhook_url) AS event_url,
       j.id AS project_pk, j.project_id AS project_public_id, j.extended_events
FROM payments p JOIN projects j ON j.id = p.project_pk WHERE p.id
"""

# Each kind has a share of its own: whatever one judgement leaves undecided, such as a payment that waits for a
# block, must not keep the others from being judged. Confirming ones wait for a deposit, which makes them dirty.
_DUE = f"""
WITH due AS (
    (SELECT id FROM payments WHERE {DIRTY} LIMIT $4)
    UNION
    (SELECT id FROM payments WHERE {EXPIRED.format(now="$3")} LIMIT $4)
    UNION
    (SELECT id FROM payments WHERE {DETECTED} ORDER BY id LIMIT $4)
)
{_PAYMENTS} IN (SELECT id FROM due) ORDER BY p.id FOR NO KEY UPDATE OF p
"""  # noqa: S608  a constant


async def _confirming(conn: AsyncConnection, chain_scope: WatchedChain) -> set[str]:
    rows = await conn.exec_driver_sql(
        f"SELECT public_id FROM payments WHERE {CONFIRMING} LIMIT $3",  # noqa: S608  a constant
        (*chain_scope.key, JUDGED_MAX),
    )
    return set(rows.scalars())


async def _deposits(conn: AsyncConnection, payment_pks: Sequence[int]) -> Mapping[int, Sequence[DepositRow]]:
    """Return the deposits that count for each payment, in chain order."""
    if not payment_pks:
        return {}
    rows = await conn.exec_driver_sql(
        f"SELECT {COLUMNS} FROM deposits d WHERE payment_pk = ANY($1::bigint[]) AND matches"  # noqa: S608  a constant
        " AND status <> 'orphaned' ORDER BY height, ordinal, id",
        (list(payment_pks),),
    )
    found: dict[int, list[DepositRow]] = {}
    for row in rows:
        found.setdefault(row.payment_pk, []).append(deposit_row(row))
    return found


def _terms(row: Row[Any], *, refund_sent: bool) -> Terms:
    return Terms(
        status=Status(row.status),
        expected=Units(int(row.expected_units)),
        tolerance_bps=row.tolerance_bps,
        expires_at=row.expires_at,
        grace=timedelta(seconds=row.grace_s),
        order_units=Units(int(row.order_units)),
        accepted=Units(int(row.accepted_units)),
        refund_sent=refund_sent,
    )


def _seen(deposit: DepositRow, head: Head) -> machine.Deposit:
    return machine.Deposit(
        units=deposit.units,
        confirmations=head.height - deposit.height,
        confirmed=deposit.status == "confirmed",
        mined_at=deposit.mined_at,
        tx_id=deposit.tx_id,
        set_aside=deposit.set_aside_units,
        accepted=deposit.resolution == "accepted",
    )


class _Update(NamedTuple):
    """What a payment's row says after it was judged, in the order of the statement below.

    ``before`` is there where it became refunded by that: the status that a failed refund leads back to.
    """

    id: int
    status: str
    received: int
    order_units: Units
    tx_id: str | None
    before: str | None


async def _update(conn: AsyncConnection, updates: Sequence[_Update], now: datetime) -> None:
    """Write every judged payment back; ``updated_at`` only where something changed."""
    if not updates:
        return
    await conn.exec_driver_sql(
        "UPDATE payments p SET status = u.status, received_units = u.received, order_units = u.order_units,"
        " tx_id = u.tx_id, status_before_refund = coalesce(u.before, p.status_before_refund), dirty = false,"
        " updated_at = $7"
        " FROM unnest($1::bigint[], $2::text[], $3::numeric[], $4::numeric[], $5::text[], $6::text[])"
        " AS u (id, status, received, order_units, tx_id, before)"
        " WHERE p.id = u.id AND (p.dirty OR p.status <> u.status OR p.received_units <> u.received"
        " OR p.order_units <> u.order_units OR p.tx_id IS DISTINCT FROM u.tx_id)",
        (*transposed(updates), now),
    )
