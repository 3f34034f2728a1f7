"""What becomes of money that was set aside: told by the engine, in the transaction in which it happens.

What is set aside lies in pending until its transaction is final, and leaves the main wallet with it; or goes back to
where it came from. The status says where it lies, so that being told twice does nothing twice; beyond that, every
reference names the transaction and its life, so that what a deep reorg undid can be posted again, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.payouts import ENDED, Kind, Status, release, take_again
from cambist.plugin import Units
from cambist.services import usage
from cambist.services.ledger import Account, Movement, Posting, Purpose, lock_balances, post
from cambist.services.outbound.outcomes import Moment, Sent

from . import events
from .queue import OPERATIONS
from .records import PayoutRow, lock_by_intents

log = structlog.get_logger(__name__)

FAILED_WITHOUT_REASON = "It could not be sent."

_Told = tuple[PayoutRow, Sent]


class Refunds(Protocol):
    """What refunds mean beyond their money: for payments, and for deposits of which a part was held.

    ``broadcast_at`` is None for those that were never sent before; revived ones had failed, and were mined all the
    same. ``on_failed`` returns by payout how much of what was held goes back there; the rest is the merchant's.
    """

    async def on_broadcast(self, conn: AsyncConnection, payouts: Sequence[PayoutRow], moment: Moment, /) -> None: ...
    async def on_failed(
        self, conn: AsyncConnection, payouts: Sequence[PayoutRow], moment: Moment, /
    ) -> Mapping[int, Units]: ...
    async def on_revived(self, conn: AsyncConnection, payouts: Sequence[PayoutRow], moment: Moment, /) -> None: ...


class PayoutOutcomes:
    """Serves the kinds payout, refund, withdrawal and auto_payout, live and simulated alike.

    The ledger comes last: rows are locked before accounts everywhere, so that nobody waits in a circle.
    """

    def __init__(self, refunds: Refunds) -> None:
        """Tell ``refunds`` of what is theirs."""
        self._refunds = refunds

    async def on_waiting(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Say what they wait for."""
        told = await _told(conn, sent, lambda status: status not in ENDED)
        changed = [
            msgspec.structs.replace(row, status=Status.PROCESSING, waits_for=one.reason, tx_id=None)
            for row, one in told
        ]
        await _save(conn, changed, moment)

    async def on_broadcast(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Say that they are on their way, and in which transaction."""
        told = await _told(conn, sent, lambda status: status not in ENDED)
        changed = [
            msgspec.structs.replace(row, status=Status.BROADCAST, waits_for=None, tx_id=one.tx_id) for row, one in told
        ]
        await _save(conn, changed, moment)
        if refunds := _refunds(changed):
            await self._refunds.on_broadcast(conn, refunds, moment)

    async def on_final(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Post that the money has left the main wallet."""
        told = await _told(conn, sent, lambda status: status != Status.COMPLETED)
        changed = [
            msgspec.structs.replace(
                row,
                status=Status.COMPLETED,
                waits_for=None,
                error=None,
                tx_id=one.tx_id or row.tx_id,
                finished_at=moment.now,
            )
            for row, one in told
        ]
        await _save(conn, changed, moment)
        await events.tell(conn, changed, "completed", moment)
        if revived := _refunds(new for new, (old, _) in zip(changed, told, strict=True) if old.status == Status.FAILED):
            await self._refunds.on_revived(conn, revived, moment)
        await _post_final(conn, told)

    async def on_failed(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Give the money back, and what it cost in credits where nothing was sent, which would have cost a fee."""
        told = await _told(conn, sent, lambda status: status not in ENDED)
        changed = [
            msgspec.structs.replace(
                row,
                status=Status.FAILED,
                waits_for=None,
                error=one.reason or FAILED_WITHOUT_REASON,
                tx_id=one.tx_id or row.tx_id,
                finished_at=moment.now,
            )
            for row, one in told
        ]
        await _save(conn, changed, moment)
        unsent = [payout for payout in changed if payout.broadcast_at is None]
        for operation, payout_ids in _by_operation(unsent).items():
            await usage.give_back(conn, operation, payout_ids, moment.now)
        await events.tell(conn, changed, "failed", moment)
        refunds = _refunds(changed)
        held = await self._refunds.on_failed(conn, refunds, moment) if refunds else {}
        await _post_failed(conn, told, held)

    async def on_undone(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Post that a deep reorg put the money back into the main wallet: it is under way again."""
        told = await _told(conn, sent, lambda status: status == Status.COMPLETED)
        changed = [msgspec.structs.replace(row, status=Status.BROADCAST, finished_at=None) for row, _ in told]
        await _save(conn, changed, moment)
        movements = [
            (row, one, [Movement(row.account(Purpose.CUSTODY_WALLET), row.account(Purpose.PENDING), row.units)])
            for row, one in told
        ]
        await _post(conn, "undone", movements)


async def _told(conn: AsyncConnection, sent: Sequence[Sent], concerns: Callable[[Status], bool]) -> list[_Told]:
    """Return the payouts that the news changes, locked. A payout that is told twice is changed once."""
    by_intent = {one.intent_row: one for one in sent}
    rows = await lock_by_intents(conn, list(by_intent))
    for missing in by_intent.keys() - rows.keys():
        log.error("payout_missing", intent=by_intent[missing].reference)
    return [(row, by_intent[intent]) for intent, row in rows.items() if concerns(row.status)]


def _refunds(payouts: Iterable[PayoutRow]) -> list[PayoutRow]:
    return [payout for payout in payouts if payout.kind == Kind.REFUND]


def _by_operation(payouts: Iterable[PayoutRow]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for payout in payouts:
        found.setdefault(OPERATIONS[payout.kind], []).append(payout.payout_id)
    return found


_SAVE = """
UPDATE payouts p SET status = n.status, waits_for = n.waits_for, error = n.error, tx_id = n.tx_id,
    finished_at = n.finished_at, updated_at = $1,
    broadcast_at = CASE WHEN n.status = 'broadcast' THEN coalesce(p.broadcast_at, $1) ELSE p.broadcast_at END
FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])
    AS n (id, status, waits_for, error, tx_id, finished_at)
WHERE p.id = n.id
"""


async def _save(conn: AsyncConnection, payouts: Sequence[PayoutRow], moment: Moment) -> None:
    if not payouts:
        return
    await conn.exec_driver_sql(
        _SAVE,
        (
            moment.now,
            [payout.row for payout in payouts],
            [str(payout.status) for payout in payouts],
            [payout.waits_for for payout in payouts],
            [payout.error for payout in payouts],
            [payout.tx_id for payout in payouts],
            [payout.finished_at for payout in payouts],
        ),
    )


async def _post(conn: AsyncConnection, what: str, wanted: Sequence[tuple[PayoutRow, Sent, list[Movement]]]) -> None:
    """Post what happened to each payout's money. The same news of the same life of a transaction is news once.

    A transaction's life alone is not enough: one that replaces another has lives of its own.
    """
    postings = [
        Posting(
            mode=row.mode,
            kind=f"{row.kind}_{what}",
            reference=f"{row.payout_id}:{one.tx_id or '-'}:{one.incarnation}",
            movements=[movement for movement in movements if movement.units],
        )
        for row, one, movements in wanted
    ]
    for mode in sorted({posting.mode for posting in postings}):
        of_mode = [posting for posting in postings if posting.mode == mode]
        posted = await post(conn, mode, of_mode)
        if len(posted) != len(of_mode):
            # The status says that it has yet to happen, the ledger that it has: nothing may go on from here.
            old = [posting.reference for posting in of_mode if (posting.kind, posting.reference) not in posted]
            raise AssertionError(f"posted before, although the status says otherwise: {old}")


async def _locked(
    conn: AsyncConnection, rows: Sequence[PayoutRow], purposes: Sequence[Purpose]
) -> dict[tuple[str, Account], int]:
    """Return the balances of the payouts' accounts, by mode and account, locked."""
    found = {}
    for mode in sorted({row.mode for row in rows}):
        accounts = [row.account(purpose) for row in rows if row.mode == mode for purpose in purposes]
        balances = await lock_balances(conn, mode, accounts)
        found.update({(mode, account): balance for account, balance in balances.items()})
    return found


async def _post_final(conn: AsyncConnection, told: Sequence[_Told]) -> None:
    """Post completions. One that had failed was given back already, and is taken from there again."""
    late = [row for row, _ in told if row.status == Status.FAILED]
    touched = (Purpose.AVAILABLE, Purpose.RECEIVABLE, Purpose.PENDING, Purpose.CUSTODY_WALLET)
    balances = await _locked(conn, late, touched)
    wanted = []
    for row, one in told:
        custody = row.account(Purpose.CUSTODY_WALLET)
        moves = [Movement(row.account(Purpose.PENDING), custody, row.units)]
        if row.status == Status.FAILED:
            log.error("failed_payout_was_mined", payout_id=row.payout_id, tx_id=one.tx_id)
            available = row.account(Purpose.AVAILABLE)
            taken, owed = take_again(row.units, Units(balances[row.mode, available]))
            balances[row.mode, available] -= taken
            moves = [Movement(available, custody, taken), Movement(row.account(Purpose.RECEIVABLE), custody, owed)]
        wanted.append((row, one, moves))
    await _post(conn, "completed", wanted)


async def _post_failed(conn: AsyncConnection, told: Sequence[_Told], held: Mapping[int, Units]) -> None:
    rows = [row for row, _ in told]
    touched = (Purpose.AVAILABLE, Purpose.RECEIVABLE, Purpose.PENDING, Purpose.HELD)
    balances = await _locked(conn, rows, touched)
    wanted = []
    for row, one in told:
        pending, debt = row.account(Purpose.PENDING), row.account(Purpose.RECEIVABLE)
        parts = release(row.units, held.get(row.row, Units(0)), Units(-balances[row.mode, debt]))
        balances[row.mode, debt] += parts.repaid
        moves = [
            Movement(pending, row.account(Purpose.HELD), parts.held),
            Movement(pending, debt, parts.repaid),
            Movement(pending, row.account(Purpose.AVAILABLE), parts.available),
        ]
        wanted.append((row, one, moves))
    await _post(conn, "failed", wanted)
