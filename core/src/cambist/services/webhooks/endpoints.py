"""A project's endpoints: URLs that hear of its events beside the default one, each with a secret of its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType
from sqlalchemy import ColumnElement, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import columns_of, to_struct
from cambist.domain.webhooks import SignatureCheck, check_event
from cambist.ports import Ids
from cambist.services.errors import ConflictError, FieldProblem, InvalidError, NotFoundError
from cambist.services.idempotency import choose_key
from cambist.services.listing import Listed, ListOf, Part, read_list
from cambist.services.paging import read_one
from cambist.settings import WebhookTargets

from .endpoint_states import apply_endpoint_states
from .secrets import ENDPOINT_FIELD, NO_CHECK, NO_PREVIOUS, Rotation, SigningSecrets, previous_secret
from .urls import URL_CHARS_MAX, check_webhook_url

ENDPOINTS_MAX = 10
"""Endpoints of one project."""
EVENTS_MAX = 100
"""Names in one endpoint's filter: more than there are."""

Url = Annotated[str, Meta(min_length=1, max_length=URL_CHARS_MAX)]
EventName = Annotated[str, Meta(min_length=1, max_length=64)]
EventNames = Annotated[list[EventName], Meta(max_length=EVENTS_MAX)]


class Endpoint(Struct, frozen=True, kw_only=True):
    """An endpoint as its merchant sees it, never with its secret. ``events`` are the names it hears of; none is all."""

    pk: int
    endpoint_id: str
    url: str
    events: Sequence[str]
    paused: bool
    secret_rotated_at: datetime
    previous_secret_until: datetime | None
    signature_check: SignatureCheck | None
    signature_checked_at: datetime | None
    created_at: datetime


_COLUMNS = columns_of(Endpoint, models.WebhookEndpoint)


class ChangeEndpoint(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What shall be different; what is left out stays."""

    url: Url | UnsetType = UNSET
    events: EventNames | UnsetType = UNSET
    paused: bool | UnsetType = UNSET


class Endpoints:
    """The use cases of endpoints, with what they need besides a connection."""

    def __init__(self, secrets: SigningSecrets, ids: Ids, *, targets: WebhookTargets) -> None:
        self._secrets = secrets
        self._ids = ids
        self._targets = targets

    async def create(  # noqa: PLR0913  each by name
        self, conn: AsyncConnection, project_pk: int, *, url: str, events: Sequence[str], paused: bool, now: datetime
    ) -> tuple[Endpoint, str]:
        """Add an endpoint; return it and its signing secret, which is told this once.

        Raises InvalidError for a URL or an event of no use, and ConflictError where there are enough.
        """
        check_webhook_url(url, self._targets, field="url")
        # The lock lets a project's endpoints be counted one creation at a time.
        await conn.execute(
            select(models.Project.id).where(models.Project.id == project_pk).with_for_update(key_share=True)
        )
        if (await conn.execute(select(func.count()).where(*_of(project_pk)))).scalar_one() >= ENDPOINTS_MAX:
            raise ConflictError("TOO_MANY_ENDPOINTS", f"A project can have {ENDPOINTS_MAX} webhook endpoints.")
        endpoint_id, secret = self._ids.new("whe"), self._ids.hex_secret()
        made = await conn.execute(
            insert(models.WebhookEndpoint)
            .values(
                endpoint_id=endpoint_id,
                project_pk=project_pk,
                url=url,
                events=_checked(events),
                paused=paused,
                secret_encrypted=self._secrets.seal(endpoint_id, secret, field=ENDPOINT_FIELD),
                secret_rotated_at=now,
                created_at=now,
            )
            .returning(*_COLUMNS)
        )
        return to_struct(Endpoint, made.one()), secret

    async def change(
        self, conn: AsyncConnection, project_pk: int, endpoint_id: str, changes: ChangeEndpoint, *, now: datetime
    ) -> Endpoint:
        """Change what is set in ``changes``. A new URL takes what is queued, too.

        One that is paused queues from then on, and what is under way may still arrive. One that is resumed gets what
        has queued; publish the hint ``webhooks`` after the commit. Raises NotFoundError and InvalidError.
        """
        endpoint = await find(conn, project_pk, endpoint_id, lock=True)
        if changes.url is not UNSET:
            check_webhook_url(changes.url, self._targets, field="url")
        columns: dict[str, object] = {
            "url": changes.url,
            "events": changes.events if changes.events is UNSET else _checked(changes.events),
            "paused": changes.paused,
        }
        columns = {column: value for column, value in columns.items() if value is not UNSET}
        if changes.url is not UNSET and changes.url != endpoint.url:
            columns |= NO_CHECK
        if columns:
            table = models.WebhookEndpoint
            await conn.execute(update(table).where(table.id == endpoint.pk).values(columns))
        if changes.paused is not UNSET and changes.paused != endpoint.paused:
            await apply_endpoint_states(conn, now=now, endpoint_pk=endpoint.pk)
        return await find(conn, project_pk, endpoint_id)

    async def rotate_secret(  # noqa: PLR0913  each by name
        self,
        conn: AsyncConnection,
        project_pk: int,
        endpoint_id: str,
        *,
        overlap: timedelta,
        now: datetime,
        key: str | None = None,
    ) -> Rotation:
        """Replace an endpoint's secret, as a project's is. Raises NotFoundError."""
        endpoint = await find(conn, project_pk, endpoint_id, lock=True)
        secret, table = self._ids.hex_secret(), models.WebhookEndpoint
        if (key := choose_key(None, key)) is not None:
            present = select(table.secret_encrypted, table.secret_rotated_at, table.previous_secret_until)
            present = present.where(table.id == endpoint.pk)
            if before := await self._secrets.replayed(conn, present, endpoint_id, key, field=ENDPOINT_FIELD):
                return before
            secret = self._secrets.of_key(endpoint_id, key, now, field=ENDPOINT_FIELD)
        columns = {
            "secret_encrypted": self._secrets.seal(endpoint_id, secret, field=ENDPOINT_FIELD),
            "secret_rotated_at": now,
            **NO_CHECK,
            **previous_secret(table.secret_encrypted, overlap, now),
        }
        rotated = update(table).where(table.id == endpoint.pk).values(columns).returning(table.previous_secret_until)
        return Rotation(secret=secret, rotated_at=now, previous_until=await conn.scalar(rotated))


async def delete(conn: AsyncConnection, project_pk: int, endpoint_id: str, *, now: datetime) -> None:
    """Delete an endpoint: what it has not been sent is dropped, and its secret is gone. Raises NotFoundError."""
    endpoint = await find(conn, project_pk, endpoint_id, lock=True)
    table = models.WebhookEndpoint
    columns = {"deleted_at": now, "secret_encrypted": None, **NO_PREVIOUS}
    await conn.execute(update(table).where(table.id == endpoint.pk).values(columns))
    await apply_endpoint_states(conn, now=now, endpoint_pk=endpoint.pk)


async def find(conn: AsyncConnection, project_pk: int, endpoint_id: str, *, lock: bool = False) -> Endpoint:
    """Return an endpoint of the project, locked until the transaction ends where asked for. Raises NotFoundError."""
    wanted = select(*_COLUMNS).where(*_of(project_pk), models.WebhookEndpoint.endpoint_id == endpoint_id)
    missing = NotFoundError("ENDPOINT_NOT_FOUND", "This project has no such webhook endpoint.")
    return to_struct(
        Endpoint, await read_one(conn, wanted.with_for_update(key_share=True) if lock else wanted, missing)
    )


async def check_exists(
    conn: AsyncConnection, endpoint_id: str, *, project_pk: int | None, merchant_pk: int | None
) -> None:
    """Raise NotFoundError for an endpoint that nobody has, or not this project or merchant where one is named."""
    table, project = models.WebhookEndpoint, models.Project
    wanted = select(table.id).join(project).where(table.endpoint_id == endpoint_id, table.deleted_at.is_(None))
    for column, pk in ((project.id, project_pk), (project.merchant_pk, merchant_pk)):
        wanted = wanted if pk is None else wanted.where(column == pk)
    if await conn.scalar(wanted) is None:
        raise NotFoundError("ENDPOINT_NOT_FOUND", "There is no such webhook endpoint.")


_LIST = ListOf(models.WebhookEndpoint.id)


async def list_endpoints(conn: AsyncConnection, project_pk: int, part: Part) -> Listed[Endpoint]:
    """Return one part of a project's endpoints."""
    listed = select(*_COLUMNS).where(*_of(project_pk))
    return await read_list(conn, listed, partial(to_struct, Endpoint), _LIST, part)


def _of(project_pk: int) -> tuple[ColumnElement[bool], ...]:
    return models.WebhookEndpoint.project_pk == project_pk, models.WebhookEndpoint.deleted_at.is_(None)


def _checked(events: Sequence[str]) -> list[str]:
    """Return the names, each once. Raises InvalidError for one that no catalogue has."""
    for event in events:
        try:
            check_event(event)
        except ValueError:
            problem = FieldProblem("events", "names what is no webhook event")
            raise InvalidError("INVALID_EVENT", f"{event!r} is no webhook event.", [problem]) from None
    return list(dict.fromkeys(events))
