"""Deliveries and receivers over all merchants, for operators: what fails, what waits, and since when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct
from sqlalchemy import ColumnElement, func, literal_column, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Merchant, Project, Tracker, WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent
from cambist.db.structs import AnyRow, columns_of, literally, one_of, to_struct
from cambist.services.listing import Listed, ListOf, Part, Period, check_depth, micros, read_list
from cambist.services.paging import TOTAL_MAX, Place

from . import delivery_log
from .delivery_log import DeliveryAnswer

Status: TypeAlias = Literal["failing", "pending", "paused", "delivered", "dropped", "no_target", "cancelled"]
"""Of a delivery; ``failing`` are those that are pending after an attempt that failed."""


class LastAttempt(Struct, frozen=True, kw_only=True, rename="camel"):
    """The latest attempt of a delivery: what was answered, or why nothing was."""

    attempted_at: datetime
    status_code: int | None
    error: str | None


class OperatorDelivery(Struct, frozen=True, kw_only=True, rename="camel"):
    """One event for one target, as operators see it. `webhookId` is the tracker that it is for, if any."""

    delivery_id: str
    merchant_id: str
    merchant_name: str
    project_id: str
    project_name: str
    mode: str
    event_id: str | None
    endpoint_id: str | None
    webhook_id: str | None
    event: str
    resource_id: str
    url: str | None
    status: Status | Literal["tested"]
    attempts: int
    last_attempt: LastAttempt | None
    created_at: datetime
    delivered_at: datetime | None
    next_attempt_at: datetime | None


class DeliveryOfMerchant(DeliveryAnswer, frozen=True, kw_only=True, rename="camel"):
    """One event for one target, whose it is, what became of it, and every attempt to deliver it."""

    merchant_id: str
    merchant_name: str
    project_id: str
    project_name: str
    mode: str


class DeliveryFilters(Struct, frozen=True, kw_only=True):
    """Which deliveries are meant. The ids are the public ones."""

    status: Status | None = None
    merchant_id: str | None = None
    project_id: str | None = None
    endpoint_id: str | None = None
    event: str | None = None


class FailingTarget(Struct, frozen=True, kw_only=True, rename="camel"):
    """A receiver that deliveries fail at: an endpoint, a tracker, or the URL of a project or its payments.

    `failingSince` is when the oldest event happened that it has not taken and is still tried for.
    """

    merchant_id: str
    merchant_name: str
    project_id: str
    project_name: str
    mode: str
    endpoint_id: str | None
    webhook_id: str | None
    url: str | None
    failing: int
    failing_since: datetime
    next_attempt_at: datetime
    last_attempt: LastAttempt | None


SCANNED_MAX = 20_000
"""How many failing deliveries are looked at for the list of receivers."""

_d = WebhookDelivery
_ENDED_BADLY = ("dropped", "paused", "no_target", "cancelled")
_FAILING = literally(_d.status, "pending"), _d.attempts > 0
_ROWS = (
    select(
        *columns_of(
            OperatorDelivery,
            _d,
            merchant_id=Merchant.merchant_id,
            merchant_name=Merchant.name,
            project_id=Project.project_id,
            project_name=Project.name,
            mode=Project.mode,
            event_id=WebhookEvent.event_id,
            endpoint_id=WebhookEndpoint.endpoint_id,
            webhook_id=Tracker.webhook_id,
            url=func.coalesce(_d.url, WebhookEndpoint.url),
            attempts=_d.attempts_total,
            last_attempt=literal_column("NULL"),
            next_attempt_at=_d.due_at,
        ),
        _d.id,
        _d.attempts.label("tried"),
    )
    .join(Project, Project.id == _d.project_pk)
    .join(Merchant, Merchant.id == Project.merchant_pk)
    .outerjoin(WebhookEvent, WebhookEvent.id == _d.event_pk)
    .outerjoin(WebhookEndpoint, WebhookEndpoint.id == _d.endpoint_pk)
    .outerjoin(Tracker, Tracker.id == _d.tracker_pk)
)
_WHOSE = (
    select(
        Merchant.merchant_id,
        Merchant.name.label("merchant_name"),
        Project.project_id,
        Project.name.label("project_name"),
        Project.mode,
    )
    .select_from(_d)
    .join(Project, Project.id == _d.project_pk)
    .join(Merchant, Merchant.id == Project.merchant_pk)
)
_TARGETS = """
WITH failing AS (
    SELECT * FROM webhook_deliveries WHERE status = 'pending' AND attempts > 0 ORDER BY id LIMIT $2
), target AS (
    SELECT f.target_key, f.project_pk, f.endpoint_pk, f.tracker_pk, max(f.id) AS last_pk, count(*) AS failing,
        min(f.created_at) AS failing_since, min(f.due_at) AS next_attempt_at
    FROM failing f GROUP BY f.target_key, f.project_pk, f.endpoint_pk, f.tracker_pk
), listed AS (
    SELECT target.*, m.merchant_id, m.name AS merchant_name, p.project_id, p.name AS project_name, p.mode
    FROM target JOIN projects p ON p.id = target.project_pk JOIN merchants m ON m.id = p.merchant_pk
    WHERE $1::text IS NULL OR m.merchant_id = $1
)
"""
_FAILING_TOTAL = f"{_TARGETS} SELECT count(*) AS total, (SELECT count(*) FROM failing) AS scanned FROM listed"  # noqa: S608  as below
_FAILING_TARGETS = f"""
{_TARGETS}
SELECT l.*, e.endpoint_id, t.webhook_id, coalesce(d.url, e.url) AS url, a.attempted_at, a.status_code, a.error
FROM listed l
JOIN webhook_deliveries d ON d.id = l.last_pk
LEFT JOIN webhook_endpoints e ON e.id = l.endpoint_pk
LEFT JOIN trackers t ON t.id = l.tracker_pk
LEFT JOIN LATERAL (
    SELECT * FROM webhook_attempts a WHERE a.delivery_pk = d.id ORDER BY a.number DESC LIMIT 1
) AS a ON true
WHERE $3::bigint IS NULL OR (l.failing_since, l.last_pk) > (to_timestamp(0) + $3 * interval '1 microsecond', $4::bigint)
ORDER BY l.failing_since, l.last_pk LIMIT $5 OFFSET $6
"""  # noqa: S608  constants of this module


_LIST = ListOf(_d.id)


async def list_deliveries(
    conn: AsyncConnection, wanted: DeliveryFilters, period: Period, part: Part
) -> Listed[OperatorDelivery]:
    """Return one part of all merchants' deliveries."""
    filters = {
        Merchant.merchant_id: wanted.merchant_id,
        Project.project_id: wanted.project_id,
        WebhookEndpoint.endpoint_id: wanted.endpoint_id,
        _d.event: wanted.event,
    }
    where = [*_of_status(wanted.status), *_within(period)]
    found = await read_list(conn, _ROWS, lambda row: row, _LIST, part, where=where, filters=filters, period=period)
    attempts = await _last_attempts(conn, [row.id for row in found.items])
    return found.shown_as(lambda row: _view(row, attempts.get(row.id)))


async def get_delivery(conn: AsyncConnection, delivery_id: str) -> DeliveryOfMerchant:
    """Return one delivery of anybody's. Raises NotFoundError."""
    found = await delivery_log.get_delivery(conn, None, delivery_id)
    whose = (await conn.execute(_WHOSE.where(_d.delivery_id == delivery_id))).mappings().one()
    shown = {name: getattr(found, name) for name in DeliveryAnswer.__struct_fields__}
    return DeliveryOfMerchant(**shown, **whose)


def _of_status(status: Status | None) -> Sequence[ColumnElement[bool]]:
    """Return the condition on the status, written out for the partial indexes of those that are rare."""
    if status is None:
        return ()
    if status == "failing":
        return _FAILING
    exactly = literally(_d.status, status)
    return (exactly, literally(_d.status, *_ENDED_BADLY)) if status in _ENDED_BADLY else (exactly,)


def _within(period: Period) -> Sequence[ColumnElement[bool]]:
    """Return the conditions on when deliveries were made.

    Their numbers are not in that order: what a merchant asks to have sent again has a new one, and its event's date.
    """
    found: list[ColumnElement[bool]] = []
    if period.since is not None:
        found.append(_d.created_at >= period.since)
    if period.until is not None:
        found.append(_d.created_at < period.until)
    return found


def _view(row: AnyRow, attempt: LastAttempt | None) -> OperatorDelivery:
    shown = {name: getattr(row, name) for name in OperatorDelivery.__struct_fields__}
    is_pending = row.status == "pending"
    shown |= {"last_attempt": attempt, "next_attempt_at": row.next_attempt_at if is_pending else None}
    if is_pending and row.tried:
        shown["status"] = "failing"
    return OperatorDelivery(**shown)


async def _last_attempts(conn: AsyncConnection, delivery_pks: Sequence[int]) -> Mapping[int, LastAttempt]:
    attempt = WebhookAttempt
    latest = (
        select(attempt.delivery_pk, *columns_of(LastAttempt, attempt))
        .where(one_of(attempt.delivery_pk, delivery_pks))
        .ext(distinct_on(attempt.delivery_pk))
        .order_by(attempt.delivery_pk, attempt.number.desc())
    )
    return {row.delivery_pk: to_struct(LastAttempt, row) for row in await conn.execute(latest)}


async def list_failing(conn: AsyncConnection, part: Part, *, merchant_id: str | None) -> Listed[FailingTarget]:
    """Return one part of the receivers that the oldest ``SCANNED_MAX`` failing deliveries fail at.

    The longest failing comes first. Raises InvalidError for a page that is too deep.
    """
    check_depth(part)
    counted = (await conn.exec_driver_sql(_FAILING_TOTAL, (merchant_id, SCANNED_MAX))).one()
    after = (None, None) if part.after is None else (part.after.value, part.after.pk)
    values = (merchant_id, SCANNED_MAX, *after, part.limit + 1, (part.page - 1) * part.limit)
    rows = (await conn.exec_driver_sql(_FAILING_TARGETS, values)).all()
    shown, last = rows[: part.limit], None
    if len(rows) > part.limit:
        last = Place(micros(shown[-1].failing_since), shown[-1].last_pk)
    # A file holds what the pages show: of the oldest alone, where there are more.
    exact = counted.scanned < SCANNED_MAX or part.count_max > TOTAL_MAX
    return Listed(items=[_target(row) for row in shown], total=counted.total, exact=exact, last=last)


def _target(row: AnyRow) -> FailingTarget:
    last = None
    if row.attempted_at is not None:
        last = LastAttempt(attempted_at=row.attempted_at, status_code=row.status_code, error=row.error)
    told = {name: getattr(row, name) for name in FailingTarget.__struct_fields__ if name != "last_attempt"}
    return FailingTarget(**told, last_attempt=last)
