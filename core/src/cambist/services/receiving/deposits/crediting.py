"""What deposits mean in the ledger: credited when confirmed, allocated when the order ends, reversed after a reorg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Units
from cambist.services.accounting.ledger import Account, Movement, Posting, Purpose, lock_balances, post

from .rows import DepositRow


def _move(debit: Account, credit: Account, units: int) -> list[Movement]:
    return [Movement(debit, credit, Units(units))] if units else []


async def credit_and_allocate(
    conn: AsyncConnection,
    mode: str,
    confirmed: Sequence[DepositRow],
    ended: Sequence[tuple[Units, Sequence[DepositRow]]],
) -> Mapping[int, int]:
    """Credit confirmed deposits, held at first, and move what belongs to ended orders from held to available.

    Returns by deposit how many units were moved.

    ``ended`` holds an order's units, and the deposits that count for it in chain order. What the merchant owes is
    repaid first. Asking twice moves nothing twice: what a deposit already gave is on its row.

    Everything is one posting, whose accounts are locked in one go: two polls that book the same merchant's
    tokens would else wait for each other.
    """
    postings = [
        Posting(mode=mode, kind="deposit", reference=row.reference, movements=_move(row.custody, row.owed, row.units))
        for row in confirmed
    ]
    shares = [share for order_units, deposits in ended for share in _shares(order_units, deposits)]
    if not shares:
        await post(conn, mode, postings)
        return {}
    touched = {account for row in confirmed for account in (row.custody, row.owed)}
    touched |= {
        row.account(purpose) for row, _ in shares for purpose in (Purpose.HELD, Purpose.AVAILABLE, Purpose.RECEIVABLE)
    }
    balances = dict(await lock_balances(conn, mode, touched))
    postings += [_allocation(mode, "allocation", row, share, balances) for row, share in shares]
    await post(conn, mode, postings)
    await conn.exec_driver_sql(
        "UPDATE deposits d SET available_units = d.available_units + s.share"
        " FROM unnest($1::bigint[], $2::numeric[]) AS s (id, share) WHERE d.id = s.id",
        ([row.id for row, _ in shares], [share for _, share in shares]),
    )
    return {row.id: share for row, share in shares}


def _shares(order_units: Units, deposits: Sequence[DepositRow]) -> Iterator[tuple[DepositRow, int]]:
    """Yield what each deposit still has to give to its order."""
    confirmed = [row for row in deposits if row.status == "confirmed"]
    need = order_units - sum(row.available_units - row.released_units for row in confirmed)
    for row in confirmed:
        share = min(row.unsent_units, max(0, need))
        need -= share
        if share:
            yield row, share


async def release(  # noqa: PLR0913  of what, how much, and for what
    conn: AsyncConnection,
    mode: str,
    row: DepositRow,
    now: datetime,
    units: Units | None = None,
    *,
    kind: str = "release",
    of: str | None = None,
) -> None:
    """Move what is held of a deposit, or so much of it, to available, where it counts for no order.

    The row is locked. ``kind`` is the posting's, and ``of`` names what else it is about: part of the reference.
    """
    share = row.held_units if units is None else units
    purposes = (Purpose.HELD, Purpose.AVAILABLE, Purpose.RECEIVABLE)
    balances = dict(await lock_balances(conn, mode, {row.account(purpose) for purpose in purposes}))
    await post(conn, mode, [_allocation(mode, kind, row, share, balances, of)])
    await conn.exec_driver_sql(
        "UPDATE deposits SET available_units = available_units + $2, released_units = released_units + $2,"
        " resolution = 'released', resolved_at = $3 WHERE id = $1",
        (row.id, share, now),
    )


def _allocation(  # noqa: PLR0913, PLR0917  the posting's name, and what is moved
    mode: str, kind: str, row: DepositRow, share: int, balances: dict[Account, int], of: str | None = None
) -> Posting:
    held, debt = row.account(Purpose.HELD), row.account(Purpose.RECEIVABLE)
    repaid = min(share, max(0, -balances[debt]))
    balances[debt] += repaid
    return Posting(
        mode=mode,
        kind=kind,
        reference=":".join(filter(None, (of, row.reference, str(row.available_units + share)))),
        movements=[*_move(held, debt, repaid), *_move(held, row.account(Purpose.AVAILABLE), share - repaid)],
    )


async def reverse(conn: AsyncConnection, mode: str, gone: Sequence[DepositRow]) -> None:
    """Take back the credit of deposits that left the chain.

    What is still held leaves held; what became available or was sent back leaves available down to zero, and the
    rest becomes the merchant's receivable. This never fails for lack of money.
    """
    purposes = (Purpose.AVAILABLE, Purpose.RECEIVABLE)
    touched = {row.account(purpose) for row in gone for purpose in purposes}
    touched |= {account for row in gone for account in (row.custody, row.owed)}
    balances = dict(await lock_balances(conn, mode, touched))
    postings = []
    for row in gone:
        custody, available = row.custody, row.account(Purpose.AVAILABLE)
        spent = row.available_units + row.returned_units
        taken = min(spent, balances[available])
        balances[available] -= taken
        postings.append(
            Posting(
                mode=mode,
                kind="deposit_reversal",
                reference=row.reference,
                movements=[
                    *_move(row.owed, custody, row.units - spent),
                    *_move(available, custody, taken),
                    *_move(row.account(Purpose.RECEIVABLE), custody, spent - taken),
                ],
            )
        )
    await post(conn, mode, postings)
