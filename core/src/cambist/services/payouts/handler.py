"""What happens to money that was set aside: the engine calls this in the transaction in which it happens.

What is set aside lies in pending until its transaction is final, and leaves the main wallet with it; or goes back to
where it came from. The status says where it is, so that the same update does nothing twice; beyond that, every
reference names the transaction and its life, so that what a deep reorg undid can be posted again, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

import structlog
from msgspec import structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import transposed
from cambist.domain.failures import SENTENCES, Failure
from cambist.domain.intents import IntentKind, metered_as
from cambist.domain.payouts import FINISHED, GIVEN_BACK, Status, release, take_again, while_waiting
from cambist.plugin import Units
from cambist.ports import Ids
from cambist.services.accounting import usage
from cambist.services.accounting.ledger import Account, Movement, Posting, Purpose, lock_balances, post
from cambist.services.sending.handler import IntentHandler, IntentUpdate

from . import events
from .read import PayoutRow, lock_by_intents

log = structlog.get_logger(__name__)

FAILED_WITHOUT_REASON = SENTENCES[Failure.NOT_SENT]

_Change = tuple[PayoutRow, IntentUpdate]


class RefundHandler(Protocol):
    """What refunds mean beyond their money: for payments, and for deposits of which a part was held.

    ``broadcast_at`` is None for those that were never sent before; revived ones had failed, and were mined all the
    same. ``on_failed`` returns by payout how much of what was held goes back there, and ``on_revived`` how much of it
    leaves held again; the rest is the merchant's.
    """

    async def on_broadcast(self, conn: AsyncConnection, payouts: Sequence[PayoutRow], now: datetime, /) -> None: ...
    async def on_failed(
        self, conn: AsyncConnection, payouts: Sequence[PayoutRow], now: datetime, /
    ) -> Mapping[int, Units]: ...
    async def on_final(self, conn: AsyncConnection, payouts: Sequence[PayoutRow], now: datetime, /) -> None: ...
    async def on_revived(
        self, conn: AsyncConnection, payouts: Sequence[PayoutRow], now: datetime, /
    ) -> Mapping[int, Units]: ...


class PayoutHandler(IntentHandler):
    """Serves the kinds payout, refund, withdrawal and auto_payout; live and simulated ones never in the same call.

    The ledger comes last: rows are locked before accounts everywhere, so that nobody waits in a circle.
    """

    def __init__(self, refunds: RefundHandler, ids: Ids) -> None:
        self._refunds = refunds
        self._ids = ids

    async def on_waiting(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        changes = await _lock_changed(conn, updates, lambda status: status not in FINISHED)
        changed = [
            structs.replace(row, status=while_waiting(row.status), waits_for=one.reason, tx_id=None)
            for row, one in changes
        ]
        await _save(conn, changed, now)

    async def on_broadcast(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        changes = await _lock_changed(conn, updates, lambda status: status not in FINISHED)
        changed = [
            structs.replace(row, status=Status.BROADCAST, waits_for=None, tx_id=one.tx_id) for row, one in changes
        ]
        await _save(conn, changed, now)
        if refunds := _refunds(changed):
            await self._refunds.on_broadcast(conn, refunds, now)

    async def on_final(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        """Post that the money has left the main wallet."""
        changes = await _lock_changed(conn, updates, lambda status: status != Status.COMPLETED)
        changed = [_finished(row, one, Status.COMPLETED, None, now) for row, one in changes]
        await _save(conn, changed, now)
        await events.enqueue_events(conn, changed, "completed", self._ids, now)
        revived = _refunds(new for new, (old, _) in zip(changed, changes, strict=True) if old.status in GIVEN_BACK)
        held = await self._refunds.on_revived(conn, revived, now) if revived else {}
        if refunds := _refunds(changed):
            await self._refunds.on_final(conn, refunds, now)
        await _post_final(conn, changes, held)

    async def on_failed(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        """Give the money back, and what it cost in credits where nothing was sent, which would have cost a fee."""
        changes = await _lock_changed(conn, updates, lambda status: status not in FINISHED)
        changed = [
            _finished(
                row,
                one,
                Status.CANCELLED if one.was_cancelled else Status.FAILED,
                one.reason or FAILED_WITHOUT_REASON,
                now,
            )
            for row, one in changes
        ]
        await _save(conn, changed, now)
        unsent = [payout for payout in changed if payout.broadcast_at is None]
        for operation, payout_ids in _by_operation(unsent).items():
            await usage.give_back(conn, operation, payout_ids, now)
        await events.enqueue_events(conn, changed, "failed", self._ids, now)
        refunds = _refunds(changed)
        held = await self._refunds.on_failed(conn, refunds, now) if refunds else {}
        await _post_failed(conn, changes, held)

    async def on_undone(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        """Post that a deep reorg put the money back into the main wallet: it is under way again."""
        changes = await _lock_changed(conn, updates, lambda status: status == Status.COMPLETED)
        changed = [structs.replace(row, status=Status.BROADCAST, finished_at=None) for row, _ in changes]
        await _save(conn, changed, now)
        movements = [
            (row, one, [Movement(row.account(Purpose.CUSTODY_WALLET), row.account(Purpose.PENDING), row.units)])
            for row, one in changes
        ]
        await _post(conn, "undone", movements)


async def _lock_changed(
    conn: AsyncConnection, updates: Sequence[IntentUpdate], concerns: Callable[[Status], bool]
) -> list[_Change]:
    """Return the payouts that the updates change, locked. A payout with two updates is changed once."""
    by_intent = {one.intent_pk: one for one in updates}
    rows = await lock_by_intents(conn, list(by_intent))
    for missing in by_intent.keys() - rows.keys():
        log.error("payout_missing", intent=by_intent[missing].reference)
    return [(row, by_intent[intent]) for intent, row in rows.items() if concerns(row.status)]


def _finished(row: PayoutRow, one: IntentUpdate, status: Status, error: str | None, now: datetime) -> PayoutRow:
    tx_id = one.tx_id or row.tx_id
    return structs.replace(row, status=status, waits_for=None, error=error, tx_id=tx_id, finished_at=now)


def _refunds(payouts: Iterable[PayoutRow]) -> list[PayoutRow]:
    return [payout for payout in payouts if payout.kind == IntentKind.REFUND]


def _by_operation(payouts: Iterable[PayoutRow]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for payout in payouts:
        found.setdefault(metered_as(payout.kind), []).append(payout.payout_id)
    return found


_SAVE = """
UPDATE payouts p SET status = n.status, waits_for = n.waits_for, error = n.error, tx_id = n.tx_id,
    finished_at = n.finished_at, updated_at = $1,
    broadcast_at = CASE WHEN n.status = 'broadcast' THEN coalesce(p.broadcast_at, $1) ELSE p.broadcast_at END
FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])
    AS n (id, status, waits_for, error, tx_id, finished_at)
WHERE p.id = n.id
"""


async def _save(conn: AsyncConnection, payouts: Sequence[PayoutRow], now: datetime) -> None:
    rows = [(one.pk, str(one.status), one.waits_for, one.error, one.tx_id, one.finished_at) for one in payouts]
    if rows:
        await conn.exec_driver_sql(_SAVE, (now, *transposed(rows)))


async def _post(
    conn: AsyncConnection, what: str, moved: Sequence[tuple[PayoutRow, IntentUpdate, list[Movement]]]
) -> None:
    """Post what happened to each payout's money, once for each incarnation of a transaction.

    The incarnation alone is not enough: a transaction that replaces another has its own.
    """
    postings = [
        Posting(
            mode=row.mode,
            kind=f"{row.kind}_{what}",
            reference=f"{row.payout_id}:{one.tx_id or '-'}:{one.incarnation}",
            movements=[movement for movement in movements if movement.units],
        )
        for row, one, movements in moved
    ]
    if not postings:
        return
    posted = await post(conn, postings[0].mode, postings)
    if len(posted) != len(postings):
        # The status says that it has yet to happen, the ledger that it has: nothing may go on from here.
        old = [posting.reference for posting in postings if (posting.kind, posting.reference) not in posted]
        raise AssertionError(f"posted before, although the status says otherwise: {old}")


async def _locked(conn: AsyncConnection, rows: Sequence[PayoutRow], purposes: Sequence[Purpose]) -> dict[Account, int]:
    """Return the balances of the payouts' accounts, locked."""
    accounts = [row.account(purpose) for row in rows for purpose in purposes]
    return dict(await lock_balances(conn, rows[0].mode, accounts)) if rows else {}


async def _post_final(conn: AsyncConnection, changes: Sequence[_Change], held: Mapping[int, Units]) -> None:
    """Post completions. One that had failed was given back already, and is taken from there again.

    ``held`` is by payout how much of it is taken from held.
    """
    late = [row for row, _ in changes if row.status in GIVEN_BACK]
    touched = (Purpose.AVAILABLE, Purpose.RECEIVABLE, Purpose.PENDING, Purpose.HELD, Purpose.CUSTODY_WALLET)
    balances = await _locked(conn, late, touched)
    moved = []
    for row, one in changes:
        custody = row.account(Purpose.CUSTODY_WALLET)
        moves = [Movement(row.account(Purpose.PENDING), custody, row.units)]
        if row.status in GIVEN_BACK:
            log.error("failed_payout_was_mined", payout_id=row.payout_id, tx_id=one.tx_id)
            available, from_held = row.account(Purpose.AVAILABLE), held.get(row.pk, Units(0))
            taken, owed = take_again(Units(row.units - from_held), Units(balances[available]))
            balances[available] -= taken
            moves = [
                Movement(row.account(Purpose.HELD), custody, from_held),
                Movement(available, custody, taken),
                Movement(row.account(Purpose.RECEIVABLE), custody, owed),
            ]
        moved.append((row, one, moves))
    await _post(conn, "completed", moved)


async def _post_failed(conn: AsyncConnection, changes: Sequence[_Change], held: Mapping[int, Units]) -> None:
    rows = [row for row, _ in changes]
    touched = (Purpose.AVAILABLE, Purpose.RECEIVABLE, Purpose.PENDING, Purpose.HELD)
    balances = await _locked(conn, rows, touched)
    moved = []
    for row, one in changes:
        pending, debt = row.account(Purpose.PENDING), row.account(Purpose.RECEIVABLE)
        parts = release(row.units, held.get(row.pk, Units(0)), Units(-balances[debt]))
        balances[debt] += parts.repaid
        moves = [
            Movement(pending, row.account(Purpose.HELD), parts.held),
            Movement(pending, debt, parts.repaid),
            Movement(pending, row.account(Purpose.AVAILABLE), parts.available),
        ]
        moved.append((row, one, moves))
    await _post(conn, "failed", moved)
