"""The audit log, as operators and merchants read it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency, Provide
from litestar.params import QueryParameter
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.audit import trail
from cambist.services.audit.entries import Action, ActorKind
from cambist.services.audit.trail import OwnTrailEntry, TrailEntry, Wanted
from cambist.services.identity.sessions import SessionPrincipal
from cambist.services.jobs import requests
from cambist.services.jobs.requests import Kind, NewJob
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.oversight.finding import TEXT_CHARS_MAX, merchant_named
from cambist_web.auth import needs, session_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.once import Once
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.oversight import Merchant
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, CursorPageAnswer, NonEmptyFilter

from .admin_jobs import JobView, ask_for, asked_by, job_view

Text = Annotated[str | None, QueryParameter(min_length=1, max_length=TEXT_CHARS_MAX)]
InAction = Annotated[Action | None, QueryParameter()]
OfKind = Annotated[ActorKind | None, QueryParameter(name="actorKind")]


class AuditVerification(Struct, frozen=True, kw_only=True, rename="camel"):
    """A comparison of the whole log with its seals, and what is wrong.

    Entries that are `waiting` have no seal yet, since they are of the last minute. Without `comparedWithFile` there was
    no copy of the seals outside the database: nobody would notice if the newest were removed with their entries.
    """

    job_id: str
    finished_at: datetime
    requested_by: str
    agrees: bool
    entries: int
    seals: int
    waiting: int
    problems: Sequence[str]
    compared_with_file: bool


class AuditTrail(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of the audit log. `verification` is the last one that has ended; null where none is kept."""

    entries: Sequence[TrailEntry]
    verification: AuditVerification | None


class AuditVerificationAsked(Answer, frozen=True, kw_only=True):
    """The job that compares the log with its seals, or the one that does it already."""

    job: JobView


class OwnAuditTrail(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of what was done that concerns the merchant."""

    entries: Sequence[OwnTrailEntry]


async def provide_wanted(  # noqa: PLR0913, PLR0917  every query parameter is one
    period: NamedDependency[Period],
    action: InAction = None,
    actor_kind: OfKind = None,
    actor: Text = None,
    project: NonEmptyFilter = None,
    subject: Text = None,
    address: NonEmptyFilter = None,
) -> Wanted:
    """Read what both lists take."""
    return Wanted(
        action=action,
        actor_kind=actor_kind,
        actor=actor,
        project_id=project,
        subject=subject,
        address=address,
        period=period,
    )


class AllEntries(Controller):
    tags = ("Operator",)
    dependencies = {"wanted": Provide(provide_wanted)}  # noqa: RUF012  the framework's way

    @get("/", summary="Read the audit log", opt=permits("audit.read"))
    async def list(
        self,
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        wanted: NamedDependency[Wanted],
        *,
        merchant: Merchant = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[AuditTrail]:
        """Return who did what, from where, and what was refused. Reading it is no entry."""

        async def found(conn: AsyncConnection, part: Part) -> Listed[TrailEntry]:
            named = None if merchant is None else await merchant_named(conn, merchant)
            return await trail.list_entries(conn, wanted, part, merchant_id=named)

        query = asked.of(web, "audit", "operator", sort=sort, filters=(wanted, merchant))
        async with web.db.transaction() as conn:
            verification = await _last_verification(conn)
        return await query.answer(AuditTrail, found, verification=verification)

    @post("/verify", status_code=201, summary="Verify the audit log", opt=permits("audit.verify"))
    async def verify(
        self, web: NamedDependency[Web], audit: NamedDependency[Audit], once: NamedDependency[Once]
    ) -> AuditVerificationAsked:
        """Have a worker compare every entry with its seal. It changes nothing; the log then says what came of it."""
        new = NewJob(kind=Kind.AUDIT_VERIFICATION, arguments={}, requested_by=asked_by(audit), unique_key="all")
        async with web.db.transaction() as conn:
            await once.take(conn)
            job = await ask_for(conn, web, audit, new)
            answer = await once.keep(conn, AuditVerificationAsked(job=job_view(job, web.clock.now())))
        await web.gateway.hints.publish(requests.TOPIC)
        return answer


async def _last_verification(conn: AsyncConnection) -> AuditVerification | None:
    job = await requests.last_succeeded(conn, Kind.AUDIT_VERIFICATION)
    if job is None:
        return None
    result = job.result or {}
    return AuditVerification(
        job_id=job.job_id,
        finished_at=job.finished_at or job.created_at,
        requested_by=job.requested_by,
        agrees=result.get("agrees", False),
        entries=result.get("entries", 0),
        seals=result.get("seals", 0),
        waiting=result.get("waiting", 0),
        problems=result.get("problems", []),
        compared_with_file=result.get("compared_with_file", False),
    )


class OwnEntries(Controller):
    tags = ("Team",)
    dependencies = {"wanted": Provide(provide_wanted)}  # noqa: RUF012  the framework's way

    @get("/", summary="Read your audit log", opt=needs(member="audit.read"))
    async def list(
        self,
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        wanted: NamedDependency[Wanted],
        *,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[OwnAuditTrail]:
        """Return what members, keys and tracker tokens of yours did or were refused, and what was done for you.

        Of what the gateway's operators did you read that it was done.
        """
        query = asked.of(web, "own-audit", session.merchant_pk, sort=sort, filters=wanted)
        return await query.answer(
            OwnAuditTrail, lambda conn, part: trail.list_own(conn, session.merchant_id, wanted, part)
        )


controllers = [
    admin_routes("/api/admin/audit", AllEntries),
    session_routes("/api/dashboard/audit", OwnEntries),
]
