"""Writes events into the outbox, in the transaction that caused them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.webhooks import check_event
from cambist.ports import Ids


class NewEvent(Struct, frozen=True, kw_only=True):
    """Something a merchant is told.

    ``project_id`` is the public one, the body's ``webhookId``. ``resource_id`` is the payment, payout or deposit
    that it is about: events of one resource are first sent in the order in which they were enqueued. ``url``
    is None where nobody asked to be told; the event is kept all the same.
    """

    project_pk: int
    project_id: str
    event: str
    resource_id: str
    url: str | None
    data: dict[str, Any]


class _Body(Struct, frozen=True):
    event: str
    webhookId: str  # noqa: N815  the merchants' spelling
    data: dict[str, Any]


_encoder = msgspec.json.Encoder(decimal_format="string")


def encode_body(event: str, project_id: str, data: dict[str, Any]) -> bytes:
    """Return the bytes that are stored, signed and sent, and never encoded again."""
    return _encoder.encode(_Body(event, project_id, data))


_INSERT = """
INSERT INTO webhook_deliveries (delivery_id, project_pk, event, resource_id, url, body, status, due_at, created_at)
SELECT delivery_id, project_pk, event, resource_id, url, body,
    CASE WHEN url IS NULL THEN 'no_target' ELSE 'pending' END, $7, $7
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bytea[])
    WITH ORDINALITY AS new (delivery_id, project_pk, event, resource_id, url, body, number)
ORDER BY number
"""


def moment(at: datetime) -> str:
    """Write a time as every event and answer does: in UTC, with milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def enqueue(conn: AsyncConnection, events: Sequence[NewEvent], *, ids: Ids, now: datetime) -> None:
    """Write the events, due at once, in one statement. After the commit, publish the hint ``webhooks``."""
    if not events:
        return
    await conn.exec_driver_sql(
        _INSERT,
        (
            [ids.new("evt") for _ in events],
            [event.project_pk for event in events],
            [check_event(event.event) for event in events],
            [event.resource_id for event in events],
            [event.url or None for event in events],
            [encode_body(event.event, event.project_id, event.data) for event in events],
            now,
        ),
    )
