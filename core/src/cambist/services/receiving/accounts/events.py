"""What a merchant is told of deposits to accounts: the ``data`` of every ``account.deposit.*`` event."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, to_builtins
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import AnyRow
from cambist.domain.moments import moment
from cambist.domain.money import format_units
from cambist.domain.webhooks import EXTENDED_EVENTS
from cambist.plugin import Units
from cambist.ports import Ids
from cambist.services.webhooks.outbox import NewEvent, enqueue

from .snapshots import FiatValue, show

RECEIVED = "account.deposit.received"
CONFIRMED = "account.deposit.confirmed"
ORPHANED = "account.deposit.orphaned"
HELD = "account.deposit.held"

_DEPOSITS = """
SELECT d.id, d.deposit_id, d.chain, d.token, d.decimals, d.units, d.available_units, d.returned_units, d.tx_id,
       d.status, d.incarnation, d.height, d.required_confirmations, d.held_reason, d.fiat::text AS fiat, d.fiat_reason,
       a.address, u.account_id, u.public_id, u.external_id, c.head, j.id AS project_pk, j.project_id, j.extended_events,
       j.payment_webhook_url
FROM deposits d JOIN accounts u ON u.id = d.account_pk JOIN addresses a ON a.id = d.address_pk
    JOIN projects j ON j.id = u.project_pk
    LEFT JOIN chain_cursors c ON c.chain = d.chain AND c.scope = d.scope
WHERE d.id = ANY($1::bigint[]) ORDER BY d.height, d.ordinal, d.id
"""


class Told(Struct, frozen=True, kw_only=True):
    """How many events were queued, and the public ids of the accounts that they are about."""

    events: int = 0
    accounts: Sequence[str] = ()


async def tell(conn: AsyncConnection, deposit_pks: Sequence[int], event: str, ids: Ids, now: datetime) -> Told:
    """Queue an event for each of these deposits to accounts, as they are stored now, in chain order.

    Extended events are queued where the project has them on. After the commit, publish the hints ``webhooks`` and
    ``account:<public id>``.
    """
    if not deposit_pks:
        return Told()
    rows = (await conn.exec_driver_sql(_DEPOSITS, (list(deposit_pks),))).all()
    events = [_event(row, event, now) for row in rows if row.extended_events or event not in EXTENDED_EVENTS]
    await enqueue(conn, events, ids=ids, now=now)
    return Told(events=len(events), accounts=sorted({row.public_id for row in rows}))


def _event(row: AnyRow, event: str, now: datetime) -> NewEvent:
    units = int(row.units)
    data: dict[str, Any] = {
        "resource": "account_deposit",
        "accountId": row.account_id,
        "externalId": row.external_id,
        "depositId": row.deposit_id,
        "chain": row.chain,
        "token": row.token,
        "amount": format_units(units, row.decimals),
        "address": row.address,
        "txHash": row.tx_id,
        "status": row.status,
        "confirmations": max(0, (row.head or row.height) - row.height) if row.status != "orphaned" else 0,
        "requiredConfirmations": row.required_confirmations,
        "incarnation": row.incarnation,
        "fiat": [_value(one) for one in show(row.fiat, units, row.decimals)],
        "fiatReason": row.fiat_reason,
        "timestamp": moment(now),
    }
    if event == HELD:
        held = Units(units - int(row.available_units) - int(row.returned_units))
        data |= {"heldAmount": format_units(held, row.decimals), "reason": row.held_reason}
    return NewEvent(
        project_pk=row.project_pk,
        project_id=row.project_id,
        event=event,
        resource_id=row.deposit_id,
        url=row.payment_webhook_url,
        data=data,
    )


def _value(value: FiatValue) -> dict[str, Any]:
    return {**to_builtins(value), "observedAt": moment(value.observed_at)}
