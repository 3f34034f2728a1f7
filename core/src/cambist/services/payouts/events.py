"""What a merchant is told of a payout or a withdrawal: the ``data`` of their events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.money import format_units
from cambist.domain.payouts import RESOURCES
from cambist.services.outbound.outcomes import Moment
from cambist.services.webhooks.outbox import NewEvent, enqueue

from .records import PayoutRow


class _Target(Struct, frozen=True):
    project_id: str
    url: str | None


async def tell(conn: AsyncConnection, payouts: Sequence[PayoutRow], outcome: str, moment: Moment) -> None:
    """Queue ``payout.<outcome>`` or ``withdrawal.<outcome>`` for those whose kind has such events."""
    told = [payout for payout in payouts if payout.kind in RESOURCES]
    if not told:
        return
    targets = await _targets(conn, {payout.project_row for payout in told})
    events = [_event(payout, targets[payout.project_row], outcome, moment.now) for payout in told]
    await enqueue(conn, events, ids=moment.ids, now=moment.now)


async def _targets(conn: AsyncConnection, project_rows: set[int]) -> Mapping[int, _Target]:
    rows = await conn.exec_driver_sql(
        "SELECT id, project_id, payment_webhook_url FROM projects WHERE id = ANY($1::bigint[])",
        (sorted(project_rows),),
    )
    return {row.id: _Target(row.project_id, row.payment_webhook_url) for row in rows}


def _event(payout: PayoutRow, target: _Target, outcome: str, now: datetime) -> NewEvent:
    resource = RESOURCES[payout.kind]
    data = {
        "resource": resource,
        f"{resource}Id": payout.payout_id,
        "chain": payout.chain,
        "token": payout.token,
        "amount": format_units(payout.units, payout.decimals),
        "toAddress": payout.target,
        "status": str(payout.status),
        "txHash": payout.tx_id,
        "timestamp": now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    if payout.batch_id is not None:
        data["batchId"] = payout.batch_id
    if payout.error is not None:
        data["error"] = payout.error
    return NewEvent(
        project_row=payout.project_row,
        project_id=target.project_id,
        event=f"{resource}.{outcome}",
        resource_id=payout.payout_id,
        url=target.url,
        data=data,
    )
