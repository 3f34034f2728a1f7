"""What deposits mean in the ledger: credited when settled, allocated when the order ends, reversed after a reorg."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Units
from cambist.services.ledger import Account, Movement, Posting, Purpose, lock_balances, post


class DepositRow(Struct, frozen=True, kw_only=True):
    """A deposit as it is stored, with its asset's name in the ledger."""

    id: int
    deposit_id: str
    merchant_row: int
    payment_row: int | None
    asset: str
    units: Units
    available_units: Units
    status: str
    incarnation: int
    height: int
    mined_at: datetime
    tx_id: str

    def account(self, purpose: Purpose) -> Account:
        """Return the merchant's account of this purpose in the deposit's asset."""
        return Account(self.merchant_row, self.asset, purpose)

    @property
    def reference(self) -> str:
        """The life of the deposit that a posting is about: one that comes back is credited again, once."""
        return f"{self.deposit_id}:{self.incarnation}"


def _move(debit: Account, credit: Account, units: int) -> list[Movement]:
    return [Movement(debit, credit, Units(units))] if units else []


async def book(
    conn: AsyncConnection, mode: str, settled: Sequence[DepositRow], ended: Sequence[tuple[Units, Sequence[DepositRow]]]
) -> None:
    """Credit settled deposits, held at first, and move what belongs to ended orders from held to available.

    ``ended`` holds an order's units, and the deposits that count for it in chain order. What the merchant owes is
    repaid first. Asking twice moves nothing twice: what a deposit already gave is on its row.

    Everything is one posting, whose accounts are locked in one go: two looks that book the same merchant's
    tokens would else wait for each other.
    """
    postings = [_credit(mode, row) for row in settled]
    shares = [share for order_units, deposits in ended for share in _shares(order_units, deposits)]
    if not shares:
        await post(conn, mode, postings)
        return
    touched = {row.account(purpose) for row in settled for purpose in (Purpose.CUSTODY_DEPOSITS, Purpose.HELD)}
    touched |= {
        row.account(purpose) for row, _ in shares for purpose in (Purpose.HELD, Purpose.AVAILABLE, Purpose.RECEIVABLE)
    }
    balances = dict(await lock_balances(conn, mode, touched))
    postings += [_allocation(mode, row, share, balances) for row, share in shares]
    await post(conn, mode, postings)
    await conn.exec_driver_sql(
        "UPDATE deposits d SET available_units = d.available_units + s.share"
        " FROM unnest($1::bigint[], $2::numeric[]) AS s (id, share) WHERE d.id = s.id",
        ([row.id for row, _ in shares], [share for _, share in shares]),
    )


def _credit(mode: str, row: DepositRow) -> Posting:
    return Posting(
        mode=mode,
        kind="deposit",
        reference=row.reference,
        movements=_move(row.account(Purpose.CUSTODY_DEPOSITS), row.account(Purpose.HELD), row.units),
    )


def _shares(order_units: Units, deposits: Sequence[DepositRow]) -> Iterator[tuple[DepositRow, int]]:
    """Yield what each deposit still has to give to its order."""
    settled = [row for row in deposits if row.status == "settled"]
    need = order_units - sum(row.available_units for row in settled)
    for row in settled:
        share = min(row.units - row.available_units, max(0, need))
        need -= share
        if share:
            yield row, share


def _allocation(mode: str, row: DepositRow, share: int, balances: dict[Account, int]) -> Posting:
    held, debt = row.account(Purpose.HELD), row.account(Purpose.RECEIVABLE)
    repaid = min(share, max(0, -balances[debt]))
    balances[debt] += repaid
    return Posting(
        mode=mode,
        kind="allocation",
        reference=f"{row.reference}:{row.available_units + share}",
        movements=[*_move(held, debt, repaid), *_move(held, row.account(Purpose.AVAILABLE), share - repaid)],
    )


async def reverse(conn: AsyncConnection, mode: str, gone: Sequence[DepositRow]) -> None:
    """Take back the credit of deposits that left the chain.

    What is still held leaves held; what became available leaves available down to zero, and the rest, which
    the merchant has spent, becomes his receivable. This never fails for lack of money.
    """
    purposes = (Purpose.CUSTODY_DEPOSITS, Purpose.HELD, Purpose.AVAILABLE, Purpose.RECEIVABLE)
    balances = dict(await lock_balances(conn, mode, {row.account(purpose) for row in gone for purpose in purposes}))
    postings = []
    for row in gone:
        custody, available = row.account(Purpose.CUSTODY_DEPOSITS), row.account(Purpose.AVAILABLE)
        taken = min(row.available_units, balances[available])
        balances[available] -= taken
        postings.append(
            Posting(
                mode=mode,
                kind="deposit_reversal",
                reference=row.reference,
                movements=[
                    *_move(row.account(Purpose.HELD), custody, row.units - row.available_units),
                    *_move(available, custody, taken),
                    *_move(row.account(Purpose.RECEIVABLE), custody, row.available_units - taken),
                ],
            )
        )
    await post(conn, mode, postings)
