"""What of a refund was held, deposit by deposit: taken when it is asked for, given back when it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Units
from cambist.services.receiving.deposits.locks import lock_deposits
from cambist.services.receiving.deposits.rows import DepositRow


class Part(Struct, frozen=True):
    """Units of a deposit, in one of its lives."""

    deposit: DepositRow
    units: Units


def held_parts(deposits: Sequence[DepositRow], units: Units) -> Sequence[Part]:
    """Return what the deposits hold of an amount, the first of them first."""
    parts, need = [], int(units)
    for deposit in deposits:
        share = min(deposit.held_units, need)
        if share:
            parts.append(Part(deposit, Units(share)))
            need -= share
    return parts


def total(parts: Sequence[Part]) -> Units:
    """Return how much the parts are together."""
    return Units(sum(part.units for part in parts))


async def take(conn: AsyncConnection, payout_pk: int, parts: Sequence[Part]) -> None:
    """Note that the refund has taken these parts out of held. The deposits are locked."""
    if not parts:
        return
    ids, units = [part.deposit.id for part in parts], [part.units for part in parts]
    await conn.exec_driver_sql(
        "UPDATE deposits d SET returned_units = d.returned_units + n.units"
        " FROM unnest($1::bigint[], $2::numeric[]) AS n (id, units) WHERE d.id = n.id",
        (ids, units),
    )
    await conn.exec_driver_sql(
        "INSERT INTO refund_parts (payout_pk, deposit_pk, incarnation, units)"
        " SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::numeric[])",
        (payout_pk, ids, [part.deposit.incarnation for part in parts], units),
    )


async def give_back(conn: AsyncConnection, payout_pks: Sequence[int]) -> Mapping[int, Units]:
    """Forget the parts of refunds that failed; return by refund how much is held again.

    A deposit that left the chain meanwhile, or came back in another life, holds nothing of it: its reversal has
    made a debt of what was taken.
    """
    rows = await conn.exec_driver_sql(
        "DELETE FROM refund_parts WHERE payout_pk = ANY($1::bigint[])"
        " RETURNING payout_pk, deposit_pk, incarnation, units",
        (list(payout_pks),),
    )
    parts = rows.all()
    deposits = await lock_deposits(conn, sorted({part.deposit_pk for part in parts}))
    back: dict[int, int] = {}
    by_deposit: dict[int, int] = {}
    for part in parts:
        deposit = deposits[part.deposit_pk]
        if deposit.status == "confirmed" and deposit.incarnation == part.incarnation:
            back[part.payout_pk] = back.get(part.payout_pk, 0) + int(part.units)
            by_deposit[deposit.id] = by_deposit.get(deposit.id, 0) + int(part.units)
    await conn.exec_driver_sql(
        "UPDATE deposits d SET returned_units = d.returned_units - n.units,"
        " resolution = CASE d.resolution WHEN 'refunded' THEN NULL ELSE d.resolution END,"
        " resolved_at = CASE d.resolution WHEN 'refunded' THEN NULL ELSE d.resolved_at END"
        " FROM unnest($1::bigint[], $2::numeric[]) AS n (id, units) WHERE d.id = n.id",
        (list(by_deposit), list(by_deposit.values())),
    )
    return {payout: Units(units) for payout, units in back.items()}
