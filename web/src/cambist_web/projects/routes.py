"""A merchant's projects: making, reading and changing them, and their signing secret."""

from __future__ import annotations

from litestar import Controller, Response, get, patch, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import UNSET

from cambist.services.actor import Actor
from cambist.services.identity import merchants, projects
from cambist.services.identity.sessions import SessionPrincipal
from cambist_web.context import Web

from .schemas import (
    ChangeProject,
    CreateProject,
    ProjectAnswer,
    ProjectList,
    SecretRotated,
    changes_of,
    project_view,
)


class Projects(Controller):
    """All projects of a merchant."""

    tags = ("Projects",)

    @post("/", status_code=201, summary="Make a project")
    async def create(
        self, data: JSONBody[CreateProject], session: NamedDependency[SessionPrincipal], web: NamedDependency[Web]
    ) -> Response[ProjectAnswer]:
        """Add a live or sandbox project. `webhookSecret`, 64 hexadecimal characters, is shown this once."""
        name = merchants.check_name(data.name)
        async with web.db.transaction() as conn:
            project, secret = await web.projects.create(
                conn,
                session.merchant_pk,
                name=name,
                mode=data.mode,
                payment_webhook_url=data.payment_webhook_url,
                now=web.clock.now(),
            )
        return _secret_answer(ProjectAnswer(project=project_view(project), webhook_secret=secret), 201)

    @get("/", summary="List projects")
    async def list(self, session: NamedDependency[SessionPrincipal], web: NamedDependency[Web]) -> ProjectList:
        """Return every project of the merchant, oldest first."""
        async with web.db.autocommit() as conn:
            found = await projects.list_projects(conn, session.merchant_pk)
        return ProjectList(projects=[project_view(project) for project in found])


class Project(Controller):
    """One project."""

    tags = ("Projects",)

    @get("/", summary="Read a project")
    async def read(self, actor: NamedDependency[Actor], web: NamedDependency[Web]) -> ProjectAnswer:
        """Return the project with its settings."""
        async with web.db.autocommit() as conn:
            return ProjectAnswer(project=project_view(await projects.get(conn, actor)))

    @patch("/", summary="Change a project")
    async def change(
        self, data: JSONBody[ChangeProject], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> Response[ProjectAnswer]:
        """Change what is sent and leave the rest. Payments that exist keep what they were made with.

        `webhookSigning: false` takes the secret away, and webhooks are then sent with an empty signature; `true`
        makes a new one where there is none, and `webhookSecret` shows it once.
        """
        changes = changes_of(data)
        if changes.name is not UNSET:
            merchants.check_name(changes.name)
        async with web.db.transaction() as conn:
            project, secret = await web.projects.change(conn, actor, changes, now=web.clock.now())
        if changes.is_active is False:
            web.key_cache.clear()
        return _secret_answer(
            ProjectAnswer(project=project_view(project), webhook_secret=UNSET if secret is None else secret), 200
        )

    @post("/rotate-webhook-secret", status_code=200, summary="Replace the signing secret")
    async def rotate_secret(self, actor: NamedDependency[Actor], web: NamedDependency[Web]) -> Response[SecretRotated]:
        """Return a new signing secret, shown this once. The old one is invalid at once."""
        now = web.clock.now()
        async with web.db.transaction() as conn:
            secret = await web.projects.rotate_secret(conn, actor, now=now)
        message = "The new secret signs every webhook from now on. It is not shown again."
        return Response(
            SecretRotated(message=message, webhook_secret=secret, rotated_at=now), headers={"Cache-Control": "no-store"}
        )


def _secret_answer(answer: ProjectAnswer, status_code: int) -> Response[ProjectAnswer]:
    headers = {} if answer.webhook_secret is UNSET else {"Cache-Control": "no-store"}
    return Response(answer, status_code=status_code, headers=headers)
