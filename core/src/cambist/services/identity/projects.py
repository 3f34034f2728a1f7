"""Projects: a merchant's shops, each live or sandbox, with its settings and its signing secret."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from sqlalchemy import ColumnElement, and_, bindparam, case, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import columns_of, one_of, to_struct
from cambist.domain.webhooks import SignatureCheck
from cambist.ports import Ids
from cambist.services.actor import Actor
from cambist.services.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    merchant_suspended,
    project_inactive,
)
from cambist.services.idempotency import choose_key
from cambist.services.listing import Listed, ListOf, Part, read_list
from cambist.services.webhooks.secrets import NO_CHECK, NO_PREVIOUS, Rotation, SigningSecrets, previous_secret
from cambist.services.webhooks.urls import URL_CHARS_MAX, check_webhook_url
from cambist.settings import WebhookTargets

from .merchants import Name, is_live, live_not_granted, lock_merchant
from .sessions import SessionPrincipal

PROJECTS_MAX = 100
"""Projects of one merchant."""

TOLERANCE_PERCENT_MAX = 10
GRACE_HOURS_MAX = 720

Mode = Literal["live", "sandbox"]
Url = Annotated[str, Meta(min_length=1, max_length=URL_CHARS_MAX)]


class Project(Struct, frozen=True, kw_only=True):
    """A project as its merchant sees it. ``signs_webhooks`` says whether it has a secret, never which."""

    project_id: str
    name: str
    mode: str
    payment_webhook_url: str | None
    signs_webhooks: bool
    secret_rotated_at: datetime | None
    previous_secret_until: datetime | None
    signature_check: SignatureCheck | None
    signature_checked_at: datetime | None
    underpayment_tolerance_percent: Decimal
    grace_hours: int
    extended_events: bool
    sandbox_auto_mine: bool
    is_active: bool
    created_at: datetime


_COLUMNS = columns_of(
    Project,
    models.Project,
    signs_webhooks=models.Project.webhook_secret_encrypted.is_not(None),
    secret_rotated_at=models.Project.webhook_secret_rotated_at,
    underpayment_tolerance_percent=models.Project.underpayment_tolerance_bps / Decimal(100),
    grace_hours=models.Project.grace_s // 3600,
)


class ChangeProject(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What shall be different; what is left out stays. `webhookSigning: false` takes the signing secret away."""

    name: Name | UnsetType = UNSET
    payment_webhook_url: Url | UnsetType | None = UNSET
    webhook_signing: bool | UnsetType = UNSET
    underpayment_tolerance_percent: Decimal | UnsetType = UNSET
    grace_hours: Annotated[int, Meta(ge=0, le=GRACE_HOURS_MAX)] | UnsetType = UNSET
    extended_events: bool | UnsetType = UNSET
    sandbox_auto_mine: bool | UnsetType = UNSET
    is_active: bool | UnsetType = UNSET


class Projects:
    """The use cases of projects, with what they need besides a connection."""

    def __init__(self, secrets: SigningSecrets, ids: Ids, *, targets: WebhookTargets) -> None:
        self._secrets = secrets
        self._ids = ids
        self._targets = targets

    async def create(  # noqa: PLR0913  each by name
        self,
        conn: AsyncConnection,
        merchant_pk: int,
        *,
        name: str,
        mode: Mode,
        payment_webhook_url: str | None,
        now: datetime,
    ) -> tuple[Project, str]:
        """Add a project; return it and its signing secret, which is told this once.

        Raises ForbiddenError for a live one of a merchant whom the operator has not granted live mode.
        """
        self._check_url(payment_webhook_url)
        # The lock lets a merchant's projects be counted one creation at a time.
        await lock_merchant(conn, merchant_pk)
        if mode == "live" and not await is_live(conn, merchant_pk):
            raise live_not_granted()
        owned = select(func.count()).where(models.Project.merchant_pk == merchant_pk)
        if (await conn.execute(owned)).scalar_one() >= PROJECTS_MAX:
            raise ConflictError("TOO_MANY_PROJECTS", f"A merchant can have {PROJECTS_MAX} projects.")
        project_id, secret = self._ids.new("prj"), self._ids.hex_secret()
        made = await conn.execute(
            insert(models.Project)
            .values(
                project_id=project_id,
                merchant_pk=merchant_pk,
                name=name,
                mode=mode,
                payment_webhook_url=payment_webhook_url,
                webhook_secret_encrypted=self._secrets.seal(project_id, secret),
                webhook_secret_rotated_at=now,
                created_at=now,
            )
            .returning(*_COLUMNS)
        )
        return to_struct(Project, made.one()), secret

    async def change(
        self, conn: AsyncConnection, project: Actor, changes: ChangeProject, *, now: datetime
    ) -> tuple[Project, str | None]:
        """Change what is set in ``changes``; return the project, and its secret where it got its first one."""
        columns = self._columns(project, changes)
        secret = None
        if changes.webhook_signing is False:
            columns |= {"webhook_secret_encrypted": None, "webhook_secret_rotated_at": now, **NO_PREVIOUS, **NO_CHECK}
        elif changes.webhook_signing is True and not (await get(conn, project, lock=True)).signs_webhooks:
            secret = self._ids.hex_secret()
            sealed = self._secrets.seal(project.project_id, secret)
            columns |= {"webhook_secret_encrypted": sealed, "webhook_secret_rotated_at": now, **NO_CHECK}
        if columns:
            await conn.execute(update(models.Project).where(_is(project)).values(columns))
        return await get(conn, project), secret

    async def rotate_secret(
        self, conn: AsyncConnection, project: Actor, *, overlap: timedelta, now: datetime, key: str | None = None
    ) -> Rotation:
        """Replace the signing secret. The old one signs beside it for ``overlap``; without one it is not used again.

        The same key replaces it once: a repetition returns the same secret, as long as that is the present one.
        """
        secret, own, table = self._ids.hex_secret(), project.project_id, models.Project
        if (key := choose_key(None, key)) is not None:
            present = select(
                table.webhook_secret_encrypted, table.webhook_secret_rotated_at, table.previous_secret_until
            ).where(_is(project))
            if before := await self._secrets.replayed(conn, present.with_for_update(key_share=True), own, key):
                return before
            secret = self._secrets.of_key(own, key, now)
        columns = {
            "webhook_secret_encrypted": self._secrets.seal(own, secret),
            "webhook_secret_rotated_at": now,
            **NO_CHECK,
            **previous_secret(table.webhook_secret_encrypted, overlap, now),
        }
        rotated = update(table).where(_is(project)).values(columns).returning(table.previous_secret_until)
        return Rotation(secret=secret, rotated_at=now, previous_until=await conn.scalar(rotated))

    def _columns(self, project: Actor, changes: ChangeProject) -> dict[str, object]:
        if changes.sandbox_auto_mine is True and project.mode != "sandbox":
            raise InvalidError.field("sandboxAutoMine", "is for sandbox projects only")
        if changes.payment_webhook_url is not UNSET:
            self._check_url(changes.payment_webhook_url)
        percent, hours = changes.underpayment_tolerance_percent, changes.grace_hours
        columns = {
            "name": changes.name,
            "payment_webhook_url": changes.payment_webhook_url,
            "underpayment_tolerance_bps": UNSET if percent is UNSET else _basis_points(percent),
            "grace_s": UNSET if hours is UNSET else hours * 3600,
            "extended_events": changes.extended_events,
            "sandbox_auto_mine": changes.sandbox_auto_mine,
            "is_active": changes.is_active,
        }
        columns = {column: value for column, value in columns.items() if value is not UNSET}
        return columns | (_kept_check(changes.payment_webhook_url) if "payment_webhook_url" in columns else {})

    def _check_url(self, url: str | None) -> None:
        if url is not None:
            check_webhook_url(url, self._targets, field="paymentWebhookUrl")


_ASKED_FOR = select(models.Project.id, models.Project.merchant_pk, models.Project.mode, models.Project.is_active).where(
    models.Project.project_id == bindparam("project_id")
)


async def authorize(conn: AsyncConnection, principal: SessionPrincipal, project_id: str) -> Actor:
    """Let a merchant act for one of the merchant's projects.

    Raises NotFoundError for a project that does not exist, ForbiddenError for one that is another's, or that is not
    open to this member.
    """
    row = (await conn.execute(_ASKED_FOR, {"project_id": project_id})).one_or_none()
    if row is None:
        raise NotFoundError("PROJECT_NOT_FOUND", "There is no such project.")
    if row.merchant_pk != principal.merchant_pk:
        raise ForbiddenError("PROJECT_NOT_OWNED", "This project belongs to somebody else.")
    if principal.project_pks is not None and row.id not in principal.project_pks:
        raise ForbiddenError("PROJECT_NOT_OPEN", "This project is not open to you. An owner or admin can change that.")
    return Actor(
        merchant_pk=principal.merchant_pk,
        merchant_id=principal.merchant_id,
        project_pk=row.id,
        project_id=project_id,
        mode=row.mode,
        is_active=row.is_active,
    )


_STANDING = """
SELECT p.is_active, m.suspended_at IS NOT NULL AS suspended
FROM projects p JOIN merchants m ON m.id = p.merchant_pk WHERE p.id = $1
"""


async def require_active(conn: AsyncConnection, actor: Actor) -> None:
    """Refuse a project that is switched off or whose merchant is suspended by now, whatever was known before."""
    row = (await conn.exec_driver_sql(_STANDING, (actor.project_pk,))).one()
    if row.suspended:
        raise merchant_suspended()
    if not row.is_active:
        raise project_inactive()


async def get(conn: AsyncConnection, project: Actor, *, lock: bool = False) -> Project:
    """Return a project that exists, locked until the transaction ends where asked for."""
    wanted = select(*_COLUMNS).where(_is(project))
    found = await conn.execute(wanted.with_for_update(key_share=True) if lock else wanted)
    return to_struct(Project, found.one())


def open_to(principal: SessionPrincipal) -> ColumnElement[bool]:
    """Return the condition on a project that it is the merchant's, and open to this member."""
    owned = models.Project.merchant_pk == principal.merchant_pk
    return owned if principal.project_pks is None else and_(owned, models.Project.id.in_(principal.project_pks))


_LIST = ListOf(models.Project.id)


async def list_projects(conn: AsyncConnection, principal: SessionPrincipal, part: Part) -> Listed[Project]:
    """Return one part of a merchant's projects that are open to this member."""
    owned = select(*_COLUMNS).where(open_to(principal))
    return await read_list(conn, owned, partial(to_struct, Project), _LIST, part)


async def find_pk(conn: AsyncConnection, project_id: str, merchant_pk: int | None) -> int:
    """Return the primary key of a project, of this merchant where one is named. Raises NotFoundError."""
    wanted = select(models.Project.id).where(models.Project.project_id == project_id)
    if merchant_pk is not None:
        wanted = wanted.where(models.Project.merchant_pk == merchant_pk)
    pk = await conn.scalar(wanted)
    if pk is None:
        raise NotFoundError("PROJECT_NOT_FOUND", "There is no such project.")
    return pk


async def modes_of(conn: AsyncConnection, project_pks: Sequence[int]) -> Collection[str]:
    """Return the modes that these projects are in."""
    table = models.Project
    return set((await conn.execute(select(table.mode).where(one_of(table.id, project_pks)))).scalars())


def _is(project: Actor) -> ColumnElement[bool]:
    return models.Project.id == project.project_pk


def _kept_check(url: object) -> dict[str, object]:
    """Return what becomes of the last check of signatures: it stays while the URL does."""
    table = models.Project
    is_same = table.payment_webhook_url.is_not_distinct_from(url)
    return {name: case((is_same, getattr(table, name)), else_=None) for name in NO_CHECK}


def _basis_points(percent: Decimal) -> int:
    # Bounds come first: what is huge or tiny beyond reason is compared, never calculated with.
    within = percent.is_finite() and 0 <= percent <= TOLERANCE_PERCENT_MAX
    if not within or percent != percent.quantize(Decimal("0.01")):
        words = f"must be from 0 to {TOLERANCE_PERCENT_MAX}, with at most 2 decimals"
        raise InvalidError.field("underpaymentTolerancePercent", words)
    return int(percent * 100)
