"""Trackers as merchants see them: one, or a page of them."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, cast

from msgspec import Raw, Struct
from msgspec.structs import asdict
from sqlalchemy import ColumnElement, Text, func, select
from sqlalchemy import cast as sql_cast
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import AnyRow, AnySelect
from cambist.services.errors import NotFoundError
from cambist.services.identity.projects import open_to
from cambist.services.identity.sessions import SessionPrincipal
from cambist.services.listing import Listed, ListOf, Part, read_list
from cambist.services.paging import read_one

from .credentials import TrackerSecrets
from .history import HistoryView


class TrackerView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A tracker. `startBlock` is the first block that it tells of, `addresses` how many addresses it watches.

    `readsPast` says whether each new address is told of from `startBlock` on, and not only from when it is added.

    `history` says how far the past of its addresses was read, and is null where none was asked for.
    """

    webhook_id: str
    project_id: str
    url: str
    name: str
    chain: str
    mode: str
    start_block: int
    reads_past: bool
    max_addresses: int
    addresses: int
    is_active: bool
    history: HistoryView | None
    metadata: dict[str, Any] | None
    credentials_rotated_at: datetime | None
    created_at: datetime
    updated_at: datetime


class TrackerWithToken(TrackerView, frozen=True, kw_only=True, rename="camel"):
    """A tracker, with the token that it is managed by."""

    auth_token: str


_watched = (
    select(func.count()).where(models.TrackerAddress.tracker_pk == models.Tracker.id).correlate(models.Tracker)
).scalar_subquery()


def _selected(*where: ColumnElement[bool]) -> AnySelect:
    tracker = models.Tracker
    plain = (
        tracker.webhook_id,
        models.Project.project_id,
        tracker.url,
        tracker.name,
        tracker.chain,
        tracker.mode,
        tracker.start_block,
        tracker.reads_past,
        tracker.max_addresses,
        tracker.is_active,
        tracker.credentials_rotated_at,
        tracker.created_at,
        tracker.updated_at,
        tracker.token_encrypted,
    )
    past = models.TrackerHistory
    history = past.state.label("history"), past.from_block, past.to_block, past.read_block, past.error, past.untold
    metadata = sql_cast(tracker.metadata_, Text).label("metadata")
    selected = select(*plain, *history, metadata, _watched.label("addresses")).join(models.Project)
    selected = selected.outerjoin(past, past.tracker_pk == tracker.id)
    return selected.where(*where, tracker.deleted_at.is_(None))


def _view(row: AnyRow) -> TrackerView:
    # JSON that came out of the database goes into the answer as it is.
    metadata = None if row.metadata is None else cast("dict[str, Any]", Raw(row.metadata.encode()))
    history = None if row.history is None else _history_view(row)
    return TrackerView(
        webhook_id=row.webhook_id,
        project_id=row.project_id,
        url=row.url,
        name=row.name,
        chain=row.chain,
        mode=row.mode,
        start_block=row.start_block,
        reads_past=row.reads_past,
        max_addresses=row.max_addresses,
        addresses=row.addresses,
        is_active=row.is_active,
        history=history,
        metadata=metadata,
        credentials_rotated_at=row.credentials_rotated_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _with_token(secrets: TrackerSecrets, row: AnyRow) -> TrackerWithToken:
    token = secrets.reveal_token(row.webhook_id, row.token_encrypted)
    return TrackerWithToken(**asdict(_view(row)), auth_token=token)


def not_found() -> NotFoundError:
    """Return the refusal for a tracker that is not there, or not this project's."""
    return NotFoundError("TRACKER_NOT_FOUND", "There is no such tracker webhook.")


async def get(conn: AsyncConnection, tracker_pk: int) -> TrackerView:
    """Return a tracker. Raises NotFoundError for one that was deleted."""
    return _view(await read_one(conn, _selected(models.Tracker.id == tracker_pk), not_found()))


_LIST = ListOf(models.Tracker.id)


async def list_of_merchant(
    conn: AsyncConnection, secrets: TrackerSecrets, principal: SessionPrincipal, project_id: str | None, part: Part
) -> Listed[TrackerWithToken]:
    """Return one part of the trackers of a member's projects with their tokens; of one project where it is named."""
    listed = _selected(open_to(principal))
    if project_id is not None:
        listed = listed.where(models.Project.project_id == project_id)
    return await read_list(conn, listed, partial(_with_token, secrets), _LIST, part)


async def list_of_project(conn: AsyncConnection, project_pk: int, part: Part) -> Listed[TrackerView]:
    """Return one part of a project's trackers."""
    return await read_list(conn, _selected(models.Tracker.project_pk == project_pk), _view, _LIST, part)


def _history_view(row: AnyRow) -> HistoryView:
    return HistoryView(
        state=row.history,
        from_block=row.from_block,
        to_block=row.to_block,
        read_block=row.read_block,
        error=row.error,
        untold_movements=row.untold,
    )
