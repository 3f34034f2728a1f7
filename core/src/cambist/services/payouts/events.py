"""What a merchant is told of a payout or a withdrawal: the ``data`` of their events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Project
from cambist.db.structs import AnyRow, one_of_given
from cambist.domain.failures import code_of
from cambist.domain.moments import moment
from cambist.domain.money import format_units
from cambist.domain.payouts import RESOURCES
from cambist.ports import Ids
from cambist.services.webhooks.outbox import NewEvent, enqueue

from .read import PayoutRow

_PROJECTS = select(Project.id, Project.project_id, Project.payment_webhook_url).where(one_of_given(Project.id, "pks"))


async def enqueue_events(
    conn: AsyncConnection, payouts: Sequence[PayoutRow], outcome: str, ids: Ids, now: datetime
) -> None:
    """Queue ``payout.<outcome>`` or ``withdrawal.<outcome>`` for those whose kind has such events."""
    announced = [payout for payout in payouts if payout.kind in RESOURCES]
    if not announced:
        return
    found = await conn.execute(_PROJECTS, {"pks": sorted({payout.project_pk for payout in announced})})
    projects = {row.id: row for row in found}
    events = [_event(payout, projects[payout.project_pk], outcome, now) for payout in announced]
    await enqueue(conn, events, ids=ids, now=now)


def _event(payout: PayoutRow, project: AnyRow, outcome: str, now: datetime) -> NewEvent:
    resource = RESOURCES[payout.kind]
    data: dict[str, object] = {
        "resource": resource,
        f"{resource}Id": payout.payout_id,
        "kind": str(payout.kind),
        "chain": payout.chain,
        "token": payout.token,
        "amount": format_units(payout.units, payout.decimals),
        "toAddress": payout.to_address,
        **({} if payout.to_tag is None else {"toTag": payout.to_tag}),
        "status": str(payout.status),
        "txHash": payout.tx_id,
        "timestamp": moment(now),
    }
    if payout.batch_id is not None:
        data["batchId"] = payout.batch_id
    if payout.swap is not None:
        swap = payout.swap
        data["swap"] = {
            "txnId": swap.txn_id,
            "kind": swap.kind,
            "srcChain": swap.source_chain,
            "srcToken": swap.source_token,
            "srcAmount": format_units(swap.units, swap.source_decimals),
            "txHash": swap.tx_id,
        }
    if payout.error is not None:
        data |= {"error": payout.error, "errorCode": code_of(payout.error)}
    return NewEvent(
        project_pk=payout.project_pk,
        project_id=project.project_id,
        event=f"{resource}.{outcome}",
        resource_id=payout.payout_id,
        url=project.payment_webhook_url,
        data=data,
    )
