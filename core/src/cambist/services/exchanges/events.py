"""What a merchant is told of an exchange that has ended: ``exchange.succeeded`` and ``exchange.failed``."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Project
from cambist.domain.exchanges import MadeFor, Status
from cambist.domain.failures import code_of
from cambist.domain.moments import moment
from cambist.domain.money import format_units
from cambist.ports import Ids
from cambist.services.webhooks.outbox import NewEvent, enqueue

from .rows import ExchangeRow


async def enqueue_ended(conn: AsyncConnection, row: ExchangeRow, ids: Ids, now: datetime) -> None:
    """Queue the event of an exchange that has just ended, where the project asks for such events.

    One that a payout made is told of with the payout.
    """
    if row.made_for is MadeFor.PAYOUT:
        return
    columns = Project.project_id, Project.payment_webhook_url, Project.extended_events
    project = (await conn.execute(select(*columns).where(Project.id == row.project_pk))).one()
    if not project.extended_events:
        return
    data: dict[str, object] = {
        "resource": "exchange",
        "txnId": row.txn_id,
        "kind": str(row.kind),
        "mode": str(row.made_for),
        "status": str(row.status),
        "sourceChain": row.source_chain,
        "sourceToken": row.source_token,
        "sourceAmount": format_units(row.units, row.source_decimals),
        "destChain": row.dest_chain,
        "destToken": row.dest_token,
        "destAmount": None if row.output_units is None else format_units(row.output_units, row.dest_decimals),
        "txHash": row.tx_id,
        "destTxHash": row.dest_tx_id,
        "timestamp": moment(now),
    }
    if row.status is Status.FAILED:
        data |= {"error": row.error, "errorCode": code_of(row.error)}
    event = NewEvent(
        project_pk=row.project_pk,
        project_id=project.project_id,
        event=f"exchange.{row.status}",
        resource_id=row.txn_id,
        url=project.payment_webhook_url,
        data=data,
    )
    await enqueue(conn, [event], ids=ids, now=now)
