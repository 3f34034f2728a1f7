"""A merchant's projects: making, reading and changing them, and their signing secret."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Literal

from litestar import Controller, Response, get, patch, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import UNSET, Meta, Struct, UnsetType
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.actor import Actor
from cambist.services.audit.entries import Action
from cambist.services.identity import merchants, projects
from cambist.services.identity.merchants import Name
from cambist.services.identity.projects import ChangeProject, Url
from cambist.services.identity.sessions import SessionPrincipal
from cambist.services.listing import Listed, Part, Sort
from cambist.services.webhooks.secrets import OVERLAP_MINUTES_MAX, Rotation
from cambist_web.auth import needs, owned_project_routes, session_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.once import Once
from cambist_web.origin import Audit
from cambist_web.schemas import Answer, Body, CursorPageAnswer, sent
from cambist_web.standing import still

from .signature_checks import SignatureCheckView, check_view


class CreateProject(Body, frozen=True, kw_only=True):
    """A new project. Its mode stays what it is."""

    name: Name
    mode: Literal["live", "sandbox"]
    payment_webhook_url: Url | None = None


class ProjectView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A project, as its merchant sees it. `previousSecretUntil` is there while a rotated secret still signs, too."""

    project_id: str
    name: str
    mode: str
    payment_webhook_url: str | None
    webhook_signing: bool
    webhook_secret_rotated_at: datetime | None
    previous_secret_until: datetime | None
    signature_check: SignatureCheckView | None
    underpayment_tolerance_percent: float
    grace_hours: int
    extended_events: bool
    sandbox_auto_mine: bool
    is_active: bool
    created_at: datetime


class ProjectAnswer(Answer, frozen=True, kw_only=True):
    """One project. `webhookSecret` is there once, when it is new."""

    project: ProjectView
    webhook_secret: str | UnsetType = UNSET


class ProjectList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of a merchant's projects."""

    projects: Sequence[ProjectView]


class RotateSecret(Body, frozen=True, kw_only=True):
    """How long the old secret goes on signing beside the new one, in `X-Webhook-Signature-Previous`.

    The same `idempotencyKey` replaces it once, and gets the same new secret, as long as that is the present one.
    """

    overlap_minutes: Annotated[int, Meta(ge=0, le=OVERLAP_MINUTES_MAX)] = 0
    idempotency_key: str | None = None

    @property
    def overlap(self) -> timedelta:
        return timedelta(minutes=self.overlap_minutes)


class SecretRotated(Answer, frozen=True, kw_only=True):
    """The new signing secret, shown once. `previousSecretUntil` is there where the old one goes on beside it."""

    message: str
    webhook_secret: str
    rotated_at: datetime
    previous_secret_until: datetime | UnsetType = UNSET


def rotated(rotation: Rotation) -> SecretRotated:
    message = "The new secret signs every webhook from now on. It is not shown again."
    until = rotation.previous_until or UNSET
    return SecretRotated(
        message=message,
        webhook_secret=rotation.secret,
        rotated_at=rotation.rotated_at,
        previous_secret_until=until,
    )


def project_view(project: projects.Project, now: datetime) -> ProjectView:
    until = project.previous_secret_until
    return ProjectView(
        project_id=project.project_id,
        name=project.name,
        mode=project.mode,
        payment_webhook_url=project.payment_webhook_url,
        webhook_signing=project.signs_webhooks,
        webhook_secret_rotated_at=project.secret_rotated_at,
        previous_secret_until=until if until is not None and until > now else None,
        signature_check=check_view(project.signature_check, project.signature_checked_at),
        underpayment_tolerance_percent=float(project.underpayment_tolerance_percent),
        grace_hours=project.grace_hours,
        extended_events=project.extended_events,
        sandbox_auto_mine=project.sandbox_auto_mine,
        is_active=project.is_active,
        created_at=project.created_at,
    )


class Projects(Controller):
    tags = ("Projects",)

    @post("/", status_code=201, summary="Make a project", opt=needs(member="projects.add"))
    async def create(
        self,
        data: JSONBody[CreateProject],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        once: NamedDependency[Once],
    ) -> ProjectAnswer:
        """Add a live or sandbox project. `webhookSecret`, 64 hexadecimal characters, is shown this once."""
        name = merchants.check_name(data.name)
        async with web.db.transaction() as conn:
            await once.take(conn)
            await still(conn, session, "projects.add")
            project, secret = await web.projects.create(
                conn,
                session.merchant_pk,
                name=name,
                mode=data.mode,
                payment_webhook_url=data.payment_webhook_url,
                now=web.clock.now(),
            )
            await audit.record(conn, Action.PROJECT_MADE, subject=project.project_id, changed=sent(data))
            shown = project_view(project, web.clock.now())
            return await once.keep(conn, ProjectAnswer(project=shown, webhook_secret=secret))

    @get("/", summary="List projects", opt=needs(member="read"))
    async def list(
        self,
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        *,
        sort: TimeSort = Sort.OLDEST,
    ) -> Response[ProjectList]:
        """Return the merchant's projects."""

        async def found(conn: AsyncConnection, part: Part) -> Listed[ProjectView]:
            listed = await projects.list_projects(conn, session, part)
            return listed.shown_as(partial(project_view, now=web.clock.now()))

        return await asked.of(web, "projects", session.merchant_pk, sort=sort).answer(ProjectList, found)


class Project(Controller):
    tags = ("Projects",)

    @get("/", summary="Read a project", opt=needs(member="read"))
    async def read(self, actor: NamedDependency[Actor], web: NamedDependency[Web]) -> ProjectAnswer:
        """Return the project with its settings."""
        async with web.db.autocommit() as conn:
            return ProjectAnswer(project=project_view(await projects.get(conn, actor), web.clock.now()))

    @patch("/", summary="Change a project", opt=needs(member="projects.change", step_up=True))
    async def change(
        self,
        data: JSONBody[ChangeProject],
        actor: NamedDependency[Actor],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> ProjectAnswer:
        """Change what is sent and leave the rest. Payments that exist keep what they were made with.

        `webhookSigning: false` takes the secret away, and webhooks are then sent with an empty signature; `true`
        makes a new one where there is none, and `webhookSecret` shows it once.
        """
        if data.name is not UNSET:
            merchants.check_name(data.name)
        async with web.db.transaction() as conn:
            await still(conn, session, "projects.change", actor)
            project, secret = await web.projects.change(conn, actor, data, now=web.clock.now())
            await audit.record(conn, Action.PROJECT_CHANGED, subject=actor.project_id, changed=sent(data))
        if data.is_active is not UNSET:
            web.key_cache.clear()
        shown = project_view(project, web.clock.now())
        return ProjectAnswer(project=shown, webhook_secret=UNSET if secret is None else secret)

    @post(
        "/rotate-webhook-secret",
        status_code=200,
        summary="Replace the signing secret",
        opt=needs(member="projects.change", step_up=True),
    )
    async def rotate_secret(
        self,
        actor: NamedDependency[Actor],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        data: JSONBody[RotateSecret | None] = None,
    ) -> SecretRotated:
        """Return a new signing secret, shown this once. The old one is invalid at once, if no overlap is asked for."""
        asked, now = data or RotateSecret(), web.clock.now()
        async with web.db.transaction() as conn:
            await still(conn, session, "projects.change", actor)
            rotation = await web.projects.rotate_secret(
                conn, actor, overlap=asked.overlap, now=now, key=asked.idempotency_key
            )
            if not rotation.replayed:
                await audit.record(
                    conn, Action.WEBHOOK_SECRET_ROTATED, subject=actor.project_id, overlap_minutes=asked.overlap_minutes
                )
        return rotated(rotation)


controllers = [
    session_routes("/api/merchant/projects", Projects),
    owned_project_routes("/api/merchant/projects/{project_id:str}", Project),
]
