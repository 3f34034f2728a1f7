"""Making trackers: whose it is, whether the plan allows it, and from which block on it watches."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct
from sqlalchemy import ColumnElement, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.plugin import ChainInfo
from cambist.ports import Clock, Ids
from cambist.registry import Registry
from cambist.services.actor import Actor
from cambist.services.chain_scope import scope_of
from cambist.services.errors import ConflictError, InvalidError, NotFoundError, UnavailableError
from cambist.services.identity import plans, projects
from cambist.services.identity.merchants import Name, check_name, live_not_granted
from cambist.services.identity.projects import Url
from cambist.services.identity.sessions import SessionPrincipal
from cambist.services.metadata import metadata_text
from cambist.services.pricing.quotes import WORDING
from cambist.services.supported import find_chain
from cambist.services.webhooks.urls import check_webhook_url
from cambist.settings import WebhookTargets

from .credentials import Credentials, TrackerAccess, TrackerSecrets, new_credentials

BLOCK_MAX = 2**53 - 1
"""Every number that JSON's readers hold exactly."""
SWITCHED_OFF_MAX = 100
"""Trackers of one merchant and mode beyond the plan's: those that are switched off, which take no room in it.

Whoever tells of a movement meets their lists, too.
"""
ADDRESSES_MAX = 10_000_000
"""More than any plan allows: what is larger is a mistake."""

ShortText = Annotated[str, Meta(min_length=1, max_length=64)]
AddressesMax = Annotated[int, Meta(ge=1, le=ADDRESSES_MAX)]


class NewTracker(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new tracker. Without `startBlock` it watches from the newest block on, without `maxAddresses` the plan's."""

    url: Url
    name: Name
    chain: ShortText
    metadata: dict[str, Any] | None = None
    start_block: Annotated[int, Meta(ge=0, le=BLOCK_MAX)] | None = None
    max_addresses: AddressesMax | None = None


class CreateTracker(NewTracker, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The body of ``POST /api/webhook/create``.

    `projectId` says whose it is, and with an API key says nothing: the key's project has it. `merchantId` is for the
    operator, and means the merchant's first active project.
    """

    project_id: ShortText | None = None
    merchant_id: ShortText | None = None


class TrackerContext(Struct, frozen=True, kw_only=True):
    """What making and changing trackers needs besides a connection."""

    registry: Registry
    secrets: TrackerSecrets
    clock: Clock
    ids: Ids
    targets: WebhookTargets
    history_blocks_max: int


class CreatedTracker(Struct, frozen=True, kw_only=True):
    """A tracker that was just made, with its credentials."""

    tracker: TrackerAccess
    credentials: Credentials
    url: str
    name: str
    start_block: int
    max_addresses: int


async def owner_in_person(conn: AsyncConnection, session: SessionPrincipal, project_id: str | None) -> Actor:
    """Return the project for which a merchant in person makes a tracker: the one that is named, or the first.

    That is of those that are open to the member. Raises ForbiddenError for another's or one that is switched off,
    NotFoundError where there is none.
    """
    if project_id is None:
        project_id = await _first_project(conn, projects.open_to(session))
    actor = await projects.authorize(conn, session, project_id)
    if actor.mode == "live" and not session.live:
        raise live_not_granted()
    return actor


async def owner_for_operator(conn: AsyncConnection, project_id: str | None, merchant_id: str | None) -> Actor:
    """Return the project for which the operator makes a tracker: by its id, or the first of a merchant.

    Where both are named, the project must be the merchant's. Raises InvalidError where neither is, NotFoundError.
    """
    if project_id is None and merchant_id is None:
        raise InvalidError.field("projectId", "or merchantId is required with X-Admin-Key")
    project, merchant = models.Project, models.Merchant
    if merchant_id is not None:
        merchant_pk = await conn.scalar(select(merchant.id).where(merchant.merchant_id == merchant_id))
        if merchant_pk is None:
            raise NotFoundError("MERCHANT_NOT_FOUND", "There is no such merchant.")
        if project_id is None:
            project_id = await _first_project(conn, project.merchant_pk == merchant_pk)
    columns = project.id, project.merchant_pk, project.mode, project.is_active, merchant.merchant_id
    wanted = select(*columns).join(merchant).where(project.project_id == project_id)
    row = (await conn.execute(wanted)).one_or_none()
    if row is None or merchant_id not in {None, row.merchant_id}:
        raise NotFoundError("PROJECT_NOT_FOUND", "There is no such project.")
    return Actor(
        merchant_pk=row.merchant_pk,
        merchant_id=row.merchant_id,
        project_pk=row.id,
        project_id=str(project_id),
        mode=row.mode,
        is_active=row.is_active,
    )


async def _first_project(conn: AsyncConnection, whose: ColumnElement[bool]) -> str:
    project = models.Project
    owned = select(project.project_id).where(whose, project.is_active)
    found: str | None = await conn.scalar(owned.order_by(project.id).limit(1))
    if found is None:
        raise NotFoundError("PROJECT_NOT_FOUND", "The merchant has no active project. Make one first.")
    return found


_INSERT = text("""
INSERT INTO trackers (webhook_id, project_pk, mode, chain, scope, url, name, start_block, reads_past,
    max_addresses, metadata, token_hash, token_encrypted, secret_encrypted, created_at, updated_at)
VALUES (:webhook_id, :project_pk, :mode, :chain, :scope, :url, :name, :start_block,
    :reads_past, :max_addresses, CAST(:metadata AS json), :token_hash, :token_encrypted, :secret_encrypted, :now, :now)
RETURNING id
""")


async def create_tracker(
    conn: AsyncConnection, context: TrackerContext, project: Actor, new: NewTracker
) -> CreatedTracker:
    """Make a tracker for the project.

    Raises InvalidError, ForbiddenError (PLAN_LIMIT, PROJECT_INACTIVE) and UnavailableError (CHAIN_UNAVAILABLE).
    """
    name = check_name(new.name)
    check_webhook_url(new.url, context.targets, field="url")
    chain = find_chain(context.registry.chains, new.chain, wording=WORDING)
    if project.mode == "live" and chain.availability != "live":
        raise UnavailableError("CHAIN_UNAVAILABLE", f"{chain.name} is not available right now.")
    metadata = None if new.metadata is None else metadata_text(new.metadata)
    max_addresses = await _allowed(conn, project, chain, new.max_addresses)
    scope = scope_of(project.mode, project.project_pk)
    start_block = await _start_block(conn, chain, project, new.start_block, context.history_blocks_max)
    webhook_id, credentials, now = context.ids.new("whk"), new_credentials(context.ids), context.clock.now()
    sealed = context.secrets.columns(webhook_id, credentials)
    row = {
        "webhook_id": webhook_id,
        "project_pk": project.project_pk,
        "mode": project.mode,
        "chain": chain.id,
        "scope": scope,
        "url": new.url,
        "name": name,
        "start_block": start_block,
        "reads_past": new.start_block is not None,
        "max_addresses": max_addresses,
        "metadata": metadata,
        "now": now,
        **sealed,
    }
    pk = (await conn.execute(_INSERT, row)).scalar_one()
    tracker = TrackerAccess(
        pk=pk,
        webhook_id=webhook_id,
        chain=chain.id,
        mode=project.mode,
        scope=scope,
        suspended=False,
        token_hash=sealed["token_hash"],
        actor=project,
    )
    return CreatedTracker(
        tracker=tracker,
        credentials=credentials,
        url=new.url,
        name=name,
        start_block=start_block,
        max_addresses=max_addresses,
    )


async def _allowed(conn: AsyncConnection, project: Actor, chain: ChainInfo, wanted: int | None) -> int:
    """Return how many addresses the tracker may have; refuse what is not allowed."""
    plan = await plans.require_webhook(conn, project, chain.id)
    plans.require_addresses(plan, wanted or 1)
    tracker = models.Tracker
    # The merchant is locked by now, so trackers are counted one creation at a time.
    await projects.require_active(conn, project)
    mine = models.Project.merchant_pk == project.merchant_pk, tracker.mode == project.mode
    owned = select(func.count()).select_from(tracker).join(models.Project).where(*mine, tracker.deleted_at.is_(None))
    most = plan.webhooks_max + SWITCHED_OFF_MAX
    if (await conn.execute(owned)).scalar_one() >= most:
        words = f"You can have {most} trackers, with those that are switched off. Delete one first."
        raise ConflictError("TOO_MANY_TRACKERS", words)
    return wanted or plan.addresses_max


async def _start_block(
    conn: AsyncConnection, chain: ChainInfo, project: Actor, wanted: int | None, history_blocks_max: int
) -> int:
    """Return the first block that is told of: the wanted one, or the newest. Raises InvalidError, UnavailableError."""
    head = await _head(conn, chain, project)
    if wanted is None:
        if head is None:
            words = f"The gateway does not know the newest block of {chain.name} yet. Send startBlock, or try again."
            raise UnavailableError("CHAIN_UNAVAILABLE", words)
        return head
    if head is not None and wanted < head - history_blocks_max:
        words = f"is more than {history_blocks_max} blocks before {head}, the newest; further back no past is read"
        raise InvalidError.field("startBlock", words)
    return wanted


async def _head(conn: AsyncConnection, chain: ChainInfo, project: Actor) -> int | None:
    """Return the newest block that is known; None where the gateway has not read the chain yet."""
    if project.mode == "sandbox":
        simulated = models.SandboxChain
        mine = simulated.project_pk == project.project_pk, simulated.chain == chain.id
        return await conn.scalar(select(simulated.height).where(*mine)) or 0
    cursor = models.Cursor
    head: int | None = await conn.scalar(select(cursor.head).where(cursor.chain == chain.id, cursor.scope == 0))
    return head
