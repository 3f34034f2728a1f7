"""What happens to the money of an exchange, in the ledger; in the transaction in which it happens.

::

    asked for         available       > pending
    swap is final     pending         > custody_wallet      what comes is credited by its deposit
    bridge is final   between_chains  > custody_wallet      it is in the wallet no more, and the merchant's all the same
    filled, refunded  pending         > between_chains      what comes is credited by its deposit
    failed            pending         > available           a debt of the merchant is repaid first

The platform's own fee of a bridge stays in the wallet, and becomes the platform's there when it is paid out.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.exchanges import Kind, Status
from cambist.domain.payouts import release, take_again
from cambist.plugin import Units
from cambist.services.accounting.ledger import PLATFORM, Account, Movement, Posting, Purpose, lock_balances, post

from .rows import ExchangeRow

log = structlog.get_logger(__name__)

_CREDIT = (Purpose.AVAILABLE, Purpose.RECEIVABLE)


async def post_sent(conn: AsyncConnection, row: ExchangeRow, life: str, *, back: bool = False) -> None:
    """Post that the call is final, or with ``back`` that a reorg has undone it. ``life`` names the transaction's.

    What had failed was given back, and is taken again: what is not there any more becomes a debt.
    """
    wallet, between = row.account(Purpose.CUSTODY_WALLET), row.account(Purpose.BETWEEN_CHAINS)
    pending, is_bridge = row.account(Purpose.PENDING), row.kind is Kind.BRIDGE
    moves = [Movement(between if is_bridge else pending, wallet, row.given)]
    if back:
        moves = [move.back() for move in moves]
    elif row.status is Status.FAILED and not row.is_closed:
        log.error("failed_exchange_was_mined", txn_id=row.txn_id, tx_id=row.tx_id)
        available, debt = row.account(Purpose.AVAILABLE), row.account(Purpose.RECEIVABLE)
        balances = await lock_balances(conn, row.mode, [available, debt])
        taken, owed = take_again(row.units, Units(balances[available]))
        moves = [Movement(available, pending, taken), Movement(debt, pending, owed), *moves]
    await _post(conn, row, "undone" if back else "sent", life, moves)


async def post_failed(conn: AsyncConnection, row: ExchangeRow, life: str) -> None:
    """Give back what was set aside, or what a fill has paid for that was never sent in the end."""
    origin = row.account(Purpose.BETWEEN_CHAINS if row.is_closed else Purpose.PENDING)
    units = row.given if row.is_closed else row.units
    balances = await lock_balances(conn, row.mode, [row.account(purpose) for purpose in _CREDIT])
    parts = release(units, Units(0), Units(-balances[row.account(Purpose.RECEIVABLE)]))
    moves = [
        Movement(origin, row.account(Purpose.RECEIVABLE), parts.repaid),
        Movement(origin, row.account(Purpose.AVAILABLE), parts.available),
    ]
    await _post(conn, row, "failed", life, moves)


async def post_closed(conn: AsyncConnection, row: ExchangeRow, *, refunded: bool, back: bool = False) -> None:
    """Post that what a bridge took is between two chains no more; with ``back``, that it is again.

    The platform's fee is for what was paid out: of what was refunded, it goes back to the merchant with it.
    """
    pending, between = row.account(Purpose.PENDING), row.account(Purpose.BETWEEN_CHAINS)
    available, debt = row.account(Purpose.AVAILABLE), row.account(Purpose.RECEIVABLE)
    fee = [
        Movement(pending, row.account(Purpose.CUSTODY_WALLET), row.fee_units),
        Movement(row.account(Purpose.FLOAT_WALLET), _float(row), row.fee_units),
    ]
    if refunded and row.fee_units:
        balances = await lock_balances(conn, row.mode, [available, debt])
        if back:
            taken, owed = take_again(row.fee_units, Units(balances[available]))
            fee = [Movement(pending, available, taken), Movement(pending, debt, owed)]
        else:
            parts = release(row.fee_units, Units(0), Units(-balances[debt]))
            fee = [Movement(pending, available, parts.available), Movement(pending, debt, parts.repaid)]
    moves = [Movement(pending, between, row.given), *fee]
    if back:
        moves = [move.back() for move in moves]
    await _post(conn, row, "reopened" if back else "closed", str(row.closings), moves)


async def post_unseen(conn: AsyncConnection, row: ExchangeRow, units: Units, life: str, *, back: bool = False) -> None:
    """Credit native coin that came without a transfer that anybody tells of; with ``back``, take that back."""
    custody, available = row.dest_account(Purpose.CUSTODY_WALLET), row.dest_account(Purpose.AVAILABLE)
    debt = row.dest_account(Purpose.RECEIVABLE)
    balances = await lock_balances(conn, row.mode, [available, debt])
    if back:
        taken, owed = take_again(units, Units(balances[available]))
        moves = [Movement(available, custody, taken), Movement(debt, custody, owed)]
    else:
        parts = release(units, Units(0), Units(-balances[debt]))
        moves = [Movement(custody, debt, parts.repaid), Movement(custody, available, parts.available)]
    await _post(conn, row, "unseen_undone" if back else "unseen", life, moves)


def _float(row: ExchangeRow) -> Account:
    return Account(PLATFORM, row.account(Purpose.FLOAT).asset, Purpose.FLOAT)


async def _post(conn: AsyncConnection, row: ExchangeRow, what: str, life: str, moves: Sequence[Movement]) -> None:
    posting = Posting(
        mode=row.mode,
        kind=f"{row.kind}_{what}",
        reference=f"{row.txn_id}:{life}",
        movements=[move for move in moves if move.units],
    )
    if not await post(conn, row.mode, [posting]):
        # What is stored says that it has yet to happen, the ledger that it has: nothing may go on from here.
        raise AssertionError(f"posted before: {posting.kind} {posting.reference}")
