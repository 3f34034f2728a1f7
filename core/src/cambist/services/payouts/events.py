"""What a merchant is told of a payout or a withdrawal: the ``data`` of their events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.money import format_units
from cambist.domain.payouts import RESOURCES
from cambist.ports import Ids
from cambist.services.webhooks.outbox import NewEvent, enqueue

from .rows import PayoutRow


class _Project(Struct, frozen=True):
    project_id: str
    url: str | None


async def enqueue_events(
    conn: AsyncConnection, payouts: Sequence[PayoutRow], outcome: str, ids: Ids, now: datetime
) -> None:
    """Queue ``payout.<outcome>`` or ``withdrawal.<outcome>`` for those whose kind has such events."""
    announced = [payout for payout in payouts if payout.kind in RESOURCES]
    if not announced:
        return
    projects = await _projects(conn, {payout.project_pk for payout in announced})
    events = [_event(payout, projects[payout.project_pk], outcome, now) for payout in announced]
    await enqueue(conn, events, ids=ids, now=now)


async def _projects(conn: AsyncConnection, project_pks: set[int]) -> Mapping[int, _Project]:
    rows = await conn.exec_driver_sql(
        "SELECT id, project_id, payment_webhook_url FROM projects WHERE id = ANY($1::bigint[])",
        (sorted(project_pks),),
    )
    return {row.id: _Project(row.project_id, row.payment_webhook_url) for row in rows}


def _event(payout: PayoutRow, project: _Project, outcome: str, now: datetime) -> NewEvent:
    resource = RESOURCES[payout.kind]
    data = {
        "resource": resource,
        f"{resource}Id": payout.payout_id,
        "chain": payout.chain,
        "token": payout.token,
        "amount": format_units(payout.units, payout.decimals),
        "toAddress": payout.to_address,
        "status": str(payout.status),
        "txHash": payout.tx_id,
        "timestamp": now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    if payout.batch_id is not None:
        data["batchId"] = payout.batch_id
    if payout.error is not None:
        data["error"] = payout.error
    return NewEvent(
        project_pk=payout.project_pk,
        project_id=project.project_id,
        event=f"{resource}.{outcome}",
        resource_id=payout.payout_id,
        url=project.url,
        data=data,
    )
