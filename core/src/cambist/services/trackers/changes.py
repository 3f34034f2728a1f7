"""Changing trackers: where they deliver, how many addresses they may have, on and off, and away."""

from __future__ import annotations

from datetime import datetime

from msgspec import UNSET, Struct, UnsetType
from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.services.errors import ConflictError
from cambist.services.identity import plans
from cambist.services.identity.merchants import Name, check_name, lock_merchant
from cambist.services.identity.projects import Url
from cambist.services.webhooks.urls import check_webhook_url
from cambist.settings import WebhookTargets

from . import history
from .create import AddressesMax
from .credentials import TrackerAccess, no_such_token


class ChangeTracker(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What shall be different; what is left out stays."""

    url: Url | UnsetType = UNSET
    name: Name | UnsetType = UNSET
    max_addresses: AddressesMax | UnsetType = UNSET


async def lock(conn: AsyncConnection, tracker: TrackerAccess) -> int:
    """Let the tracker and its list change one at a time, until the transaction ends; return its ``max_addresses``.

    Raises UnauthenticatedError for a tracker that was deleted since its token was read.
    """
    mine = models.Tracker.id == tracker.pk, models.Tracker.deleted_at.is_(None)
    locked = select(models.Tracker.max_addresses).where(*mine).with_for_update(key_share=True)
    found: int | None = await conn.scalar(locked)
    if found is None:
        raise no_such_token()
    return found


async def count_addresses(conn: AsyncConnection, tracker: TrackerAccess) -> int:
    """Return how many addresses are on the list."""
    counted = select(func.count()).where(models.TrackerAddress.tracker_pk == tracker.pk)
    return (await conn.execute(counted)).scalar_one()


async def change(
    conn: AsyncConnection, tracker: TrackerAccess, changes: ChangeTracker, *, targets: WebhookTargets, now: datetime
) -> None:
    """Change what is set in ``changes``. Raises InvalidError, ForbiddenError (PLAN_LIMIT) and ConflictError."""
    columns: dict[str, object] = {}
    if changes.url is not UNSET:
        check_webhook_url(changes.url, targets, field="url")
        columns["url"] = changes.url
    if changes.name is not UNSET:
        columns["name"] = check_name(changes.name)
    await lock(conn, tracker)
    if changes.max_addresses is not UNSET:
        plans.require_addresses(await plans.plan_of(conn, tracker.actor.merchant_pk), changes.max_addresses)
        watched = await count_addresses(conn, tracker)
        if changes.max_addresses < watched:
            words = f"maxAddresses cannot be less than the {watched} addresses that are watched. Remove some first."
            raise ConflictError("TOO_MANY_ADDRESSES", words)
        columns["max_addresses"] = changes.max_addresses
    if columns:
        await _write(conn, tracker, columns, now)


async def switch_on(conn: AsyncConnection, tracker: TrackerAccess, *, now: datetime) -> None:
    """Switch the tracker on. Raises ForbiddenError (PLAN_LIMIT) where its merchant's plan has no room for it."""
    # Before the question whether it is on: of two who switch it on at once, the second finds it so.
    await lock_merchant(conn, tracker.actor.merchant_pk)
    await lock(conn, tracker)
    if await conn.scalar(select(models.Tracker.is_active).where(models.Tracker.id == tracker.pk)):
        return
    await plans.require_webhook(conn, tracker.actor, tracker.chain)
    await _write(conn, tracker, {"is_active": True}, now)
    await history.read_again(conn, tracker.pk)


async def switch_off(conn: AsyncConnection, tracker: TrackerAccess, *, now: datetime) -> None:
    """Switch the tracker off: nothing is told from the commit on, what is under way excepted."""
    await lock(conn, tracker)
    await _write(conn, tracker, {"is_active": False}, now)
    await history.read_again(conn, tracker.pk)


async def remove_tracker(conn: AsyncConnection, tracker: TrackerAccess, *, now: datetime) -> None:
    """Delete the tracker: its token, its list and its deliveries end. What it told stays in the log."""
    await lock(conn, tracker)
    await conn.execute(delete(models.TrackerAddress).where(models.TrackerAddress.tracker_pk == tracker.pk))
    await _write(conn, tracker, {"is_active": False, "deleted_at": now}, now)
    await history.delete(conn, tracker.pk)


async def _write(conn: AsyncConnection, tracker: TrackerAccess, columns: dict[str, object], now: datetime) -> None:
    changed = update(models.Tracker).where(models.Tracker.id == tracker.pk)
    await conn.execute(changed.values(columns | {"updated_at": now}))
