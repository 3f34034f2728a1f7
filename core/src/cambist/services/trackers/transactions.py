"""What a tracker has told: every movement of its addresses, with what has become of it by now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field
from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from cambist.db import models
from cambist.db.structs import AnyRow, one_of
from cambist.domain.money import format_units
from cambist.services.errors import InvalidError
from cambist.services.listing import ALWAYS, Listed, ListOf, Owner, Part, Period, read_list

from .bodies import EVENTS, delivery_id
from .credentials import TrackerAccess

Direction = Literal["in", "out"]
MovementStatus = Literal["detected", "confirmed", "orphaned"]


class TrackedTransaction(Struct, frozen=True, kw_only=True, rename="camel"):
    """A transfer from or to a watched address. `direction` is seen from `address`; native coin has no contract."""

    transaction_id: str
    chain: str
    address: str
    direction: str
    token: str
    contract_address: str | None
    amount: str
    sender: str | None = field(name="from")
    recipient: str = field(name="to")
    tx_hash: str
    block_number: int
    block_hash: str
    block_time: datetime
    confirmations: int
    required_confirmations: int
    status: str
    created_at: datetime


class Wanted(Struct, frozen=True, kw_only=True):
    """Which transactions are wanted. Both blocks are included; ``address`` is normalized; ``period`` is when told."""

    address: str | None = None
    direction: Direction | None = None
    token: str | None = None
    status: MovementStatus | None = None
    tx_hash: str | None = None
    from_block: int | None = None
    to_block: int | None = None
    period: Period = ALWAYS


LIST = ListOf(models.TrackerTransaction.id, models.TrackerTransaction.created_at, window=5_000)


async def list_transactions(
    conn: AsyncConnection, tracker: TrackerAccess, wanted: Wanted, part: Part
) -> Listed[TrackedTransaction]:
    """Return one part of what the tracker has told. Raises InvalidError for blocks the wrong way.

    A transaction's hash is found at once.
    """
    if wanted.from_block is not None and wanted.to_block is not None and wanted.from_block > wanted.to_block:
        raise InvalidError.field("toBlock", "must not be less than fromBlock")
    told = models.TrackerTransaction
    # Looked up for each transaction by itself: no plan can begin with all movements there are.
    of_told = select(models.Movement).where(models.Movement.id == told.movement_pk).offset(0)
    movement = of_told.lateral("movement").c
    here = models.Cursor.chain == tracker.chain, models.Cursor.scope == tracker.scope
    columns = (
        *(told.transaction_id, told.address, told.direction, told.created_at),
        *(movement.chain, movement.token, movement.contract, movement.units, movement.decimals, movement.sender),
        *(movement.recipient, movement.tx_id, movement.height, movement.block_hash, movement.mined_at),
        *(movement.required_confirmations, movement.status),
        select(models.Cursor.head).where(*here).scalar_subquery().label("head"),
    )
    own: Owner = {told.tracker_pk: tracker.pk}
    where: list[ColumnElement[bool]] = []
    if wanted.tx_hash is not None:
        own, where = {}, [one_of(told.movement_pk, await _of_hash(conn, tracker, wanted.tx_hash))]
        where.append(told.tracker_pk == tracker.pk)
    filters = {told.address: wanted.address, told.direction: wanted.direction}
    also = list(_conditions(movement, wanted))
    shown = select(*columns)
    return await read_list(
        conn, shown, _view, LIST, part, own=own, where=where, filters=filters, also=also, period=wanted.period
    )


def _conditions(movement: ReadOnlyColumnCollection[str, Any], wanted: Wanted) -> Iterator[ColumnElement[bool]]:
    if wanted.token is not None:
        yield movement.token == wanted.token
    if wanted.status is not None:
        yield movement.status == wanted.status
    if wanted.from_block is not None:
        yield movement.height >= wanted.from_block
    if wanted.to_block is not None:
        yield movement.height <= wanted.to_block


async def _of_hash(conn: AsyncConnection, tracker: TrackerAccess, tx_hash: str) -> Sequence[int]:
    """Return the primary keys of a transaction's movements, from the two indexes that hold them."""
    found = await conn.exec_driver_sql(_OF_HASH, (tracker.chain, tracker.scope, tx_hash))
    return list(found.scalars())


_OF_HASH = """
SELECT id FROM movements WHERE chain = $1 AND scope = $2 AND tx_id = $3 AND status <> 'orphaned'
UNION ALL
SELECT id FROM movements WHERE chain = $1 AND scope = $2 AND tx_id = $3 AND status = 'orphaned'
"""


async def delivery_ids(conn: AsyncConnection, transaction_id: str) -> Sequence[str]:
    """Return the ids of all that may have told of a tracker's transaction: none where there is no such one."""
    incarnations = (await conn.exec_driver_sql(_INCARNATIONS, (transaction_id,))).all()
    return [delivery_id(transaction_id, stage, movement.incarnation) for movement in incarnations for stage in EVENTS]


_INCARNATIONS = """
WITH told AS (
    SELECT m.chain, m.scope, m.tx_id, m.position FROM tracker_transactions t JOIN movements m ON m.id = t.movement_pk
    WHERE t.transaction_id = $1
)
SELECT m.incarnation FROM told JOIN movements m USING (chain, scope, tx_id, position)
WHERE m.status <> 'orphaned'
UNION ALL
SELECT m.incarnation FROM told JOIN movements m USING (chain, scope, tx_id, position)
WHERE m.status = 'orphaned'
"""


def _view(row: AnyRow) -> TrackedTransaction:
    return TrackedTransaction(
        transaction_id=row.transaction_id,
        chain=row.chain,
        address=row.address,
        direction=row.direction,
        token=row.token,
        contract_address=row.contract,
        amount=format_units(int(row.units), row.decimals),
        sender=row.sender,
        recipient=row.recipient,
        tx_hash=row.tx_id,
        block_number=row.height,
        block_hash=row.block_hash,
        block_time=row.mined_at,
        confirmations=_confirmations(row),
        required_confirmations=row.required_confirmations,
        status=row.status,
        created_at=row.created_at,
    )


def _confirmations(row: AnyRow) -> int:
    """Count as deliveries do: what left the chain has none."""
    return 0 if row.status == "orphaned" or row.head is None else max(0, row.head - row.height)
