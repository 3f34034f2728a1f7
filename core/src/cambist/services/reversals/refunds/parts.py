"""What of a refund was held, deposit by deposit: taken when it is asked for, given back when it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from sqlalchemy import bindparam, case, delete, func, insert, null, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Deposit, RefundPart
from cambist.db.structs import one_of
from cambist.plugin import Units
from cambist.services.receiving.deposits.rows import DepositRow, lock_deposits


class Part(Struct, frozen=True):
    """Units of a deposit, in one of its lives."""

    deposit: DepositRow
    units: Units


def held_parts(deposits: Sequence[DepositRow], units: Units) -> Sequence[Part]:
    """Return what the deposits hold of an amount, the first of them first."""
    parts, need = [], int(units)
    for deposit in deposits:
        share = min(deposit.unsent_units, need)
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
    noted = insert(RefundPart).values(payout_pk=payout_pk)
    await conn.execute(
        noted,
        [
            {"deposit_pk": part.deposit.id, "incarnation": part.deposit.incarnation, "units": part.units}
            for part in parts
        ],
    )


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
