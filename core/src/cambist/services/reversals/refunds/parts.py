"""What of a refund was held, deposit by deposit: taken when it is asked for, given back when it fails.

A refund that had failed and is mined all the same takes it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import and_, bindparam, case, delete, func, insert, null, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Deposit, RefundPart
from cambist.db.structs import one_of
from cambist.plugin import Units
from cambist.services.accounting.ledger import Purpose
from cambist.services.payouts.read import PayoutRow
from cambist.services.receiving.deposits.rows import DepositRow, lock_deposits


class Part(Struct, frozen=True):
    """Units of a deposit, in one of its lives."""

    deposit: DepositRow
    units: Units


def held_parts(deposits: Sequence[DepositRow], units: Units) -> Sequence[Part]:
    """Return what the deposits hold of an amount, the first of them first."""
    return _first_parts(((deposit, deposit.unsent_units) for deposit in deposits), units)


def _gone_parts(deposits: Sequence[DepositRow], units: Units) -> Sequence[Part]:
    """Return which of the deposits that are not confirmed have held so much, each in the last life that has ended."""
    ended = ((one, one.incarnation - (one.status != "orphaned")) for one in deposits if one.status != "confirmed")
    return _first_parts(((replace(one, incarnation=life), one.units) for one, life in ended if life), units)


def _first_parts(offered: Iterable[tuple[DepositRow, Units]], units: Units) -> Sequence[Part]:
    parts, need = [], int(units)
    for deposit, most in offered:
        share = min(most, need)
        if share:
            parts.append(Part(deposit, Units(share)))
            need -= share
    return parts


async def take(conn: AsyncConnection, payout_pk: int, parts: Sequence[Part]) -> None:
    """Note that the refund has taken these parts out of held. The deposits are locked."""
    if not parts:
        return
    taken = update(Deposit).where(Deposit.id == bindparam("pk"))
    await conn.execute(
        taken.values(returned_units=Deposit.returned_units + bindparam("taken")),
        [{"pk": part.deposit.id, "taken": part.units} for part in parts],
    )
    await _note(conn, payout_pk, parts)


async def _note(conn: AsyncConnection, payout_pk: int, parts: Sequence[Part]) -> None:
    rows = [
        {"deposit_pk": part.deposit.id, "incarnation": part.deposit.incarnation, "units": part.units} for part in parts
    ]
    if rows:
        await conn.execute(insert(RefundPart).values(payout_pk=payout_pk), rows)


async def give_back(conn: AsyncConnection, payout_pks: Sequence[int]) -> Mapping[int, Units]:
    """Forget the parts of refunds that failed; return by refund how much is held again.

    A deposit that left the chain meanwhile, or came back in another life, holds nothing of it: its reversal has
    made a debt of what was taken.
    """
    failed = delete(RefundPart).where(one_of(RefundPart.payout_pk, payout_pks))
    parts = (await conn.execute(failed.returning(RefundPart))).all()
    deposits = await lock_deposits(conn, sorted({part.deposit_pk for part in parts}))
    back: dict[int, int] = {}
    by_deposit: dict[int, int] = {}
    for part in parts:
        deposit = deposits[part.deposit_pk]
        if deposit.status == "confirmed" and deposit.incarnation == part.incarnation:
            back[part.payout_pk] = back.get(part.payout_pk, 0) + part.units
            by_deposit[deposit.id] = by_deposit.get(deposit.id, 0) + part.units
    if by_deposit:
        changed = update(Deposit).where(Deposit.id == bindparam("pk"))
        changed = changed.values(
            returned_units=Deposit.returned_units - bindparam("back"),
            resolution=func.nullif(Deposit.resolution, "refunded"),
            resolved_at=case((Deposit.resolution == "refunded", null()), else_=Deposit.resolved_at),
        )
        await conn.execute(changed, [{"pk": pk, "back": units} for pk, units in by_deposit.items()])
    return {payout: Units(units) for payout, units in back.items()}


async def take_again(conn: AsyncConnection, refunds: Sequence[PayoutRow], now: datetime) -> Mapping[int, Units]:
    """Take from held what refunds had taken that failed, and were mined all the same; return by refund how much.

    So nobody sends it a second time. What is held no more, since somebody has decided about it meanwhile, is left for
    the merchant's balance to pay. So is what a deposit held that a reorg has taken away: it is noted for the life in
    which the deposit held it, and remembered when it comes back. The chain's cursor is locked.
    """
    own = {one.deposit_pk for one in refunds if one.deposit_pk is not None}
    of_payments = one_of(Deposit.payment_pk, [one.payment_pk for one in refunds if one.deposit_pk is None])
    of_them = or_(one_of(Deposit.id, sorted(own)), and_(of_payments, Deposit.matches))
    rows = await lock_deposits(conn, sorted(await conn.scalars(select(Deposit.id).where(of_them))))
    taken: dict[int, Units] = {}
    for refund in refunds:
        theirs = [row for row in rows.values() if _is_of(row, refund)]
        again = held_parts(theirs, refund.held_units)
        await take(conn, refund.pk, again)
        for part in again:
            returned = Units(part.deposit.returned_units + part.units)
            rows[part.deposit.id] = replace(part.deposit, returned_units=returned)
        taken[refund.pk] = Units(sum(part.units for part in again))
        await _note(conn, refund.pk, _gone_parts(theirs, Units(refund.held_units - taken[refund.pk])))
    own = {one.deposit_pk for one in refunds if one.deposit_pk is not None and taken[one.pk]}
    gone = [pk for pk, row in rows.items() if pk in own and not row.held_units]
    decided = update(Deposit).where(one_of(Deposit.id, gone))
    await conn.execute(decided.values(resolution="refunded", resolved_at=now))
    return taken


def _is_of(deposit: DepositRow, refund: PayoutRow) -> bool:
    if refund.deposit_pk is not None:
        # After a reorg, another's money may stand in its place, or another token.
        return deposit.id == refund.deposit_pk and deposit.account(Purpose.HELD) == refund.account(Purpose.HELD)
    return deposit.matches and deposit.payment_pk == refund.payment_pk
