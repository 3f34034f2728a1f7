"""An operator pauses and resumes what the gateway does on a live chain, and has blocks of it read again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from litestar import Controller, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import Meta, Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services import chain_pauses
from cambist.services.audit.entries import Action
from cambist.services.chain_pauses import Pausable, Pause, Pauses
from cambist.services.errors import check_text
from cambist.services.jobs import requests
from cambist.services.receiving.history.rescan import ask
from cambist_web.context import Web
from cambist_web.once import Once
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body

HEIGHT_MAX = 2**53

Reason = Annotated[str, Meta(min_length=3, max_length=500)]


class Steer(Body, frozen=True, kw_only=True):
    """What to pause or resume, and why: for the audit log, and whoever wonders."""

    what: Pausable
    reason: Reason


class PauseView(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is paused. `pausedBy` is an operator's identifier, or `admin key`."""

    what: Pausable
    reason: str
    paused_by: str
    paused_at: datetime


class ChainSteered(Answer, frozen=True, kw_only=True):
    """All that is paused on the chain now."""

    chain: str
    pauses: Sequence[PauseView]


def pause_views(pauses: Pauses, chain: str) -> Sequence[PauseView]:
    """Return what is paused on a chain, for answers about it."""
    return [
        PauseView(what=one.what, reason=one.reason, paused_by=one.paused_by, paused_at=one.paused_at)
        for one in sorted(pauses.values(), key=lambda one: one.what)
        if one.chain == chain
    ]


class Rescan(Body, frozen=True, kw_only=True):
    """Which blocks to read again: without `toHeight` up to the last one that was read."""

    from_height: Annotated[int, Meta(ge=0, le=HEIGHT_MAX)]
    to_height: Annotated[int, Meta(ge=0, le=HEIGHT_MAX)] | None = None
    reason: Reason


class RescanAsked(Answer, frozen=True, kw_only=True):
    """The job that reads them. While it is unfinished, asking for the same again answers the same job."""

    chain: str
    job_id: str
    state: str
    from_height: int
    to_height: int


class ChainSteering(Controller):
    tags = ("Operator",)

    @post("/pause", status_code=200, summary="Pause watching or sending", opt=permits("chains.pause"))
    async def pause(
        self,
        chain: FromPath[str],
        data: JSONBody[Steer],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> ChainSteered:
        """Stop reading a live chain, or signing on it, in every worker within seconds, until it is resumed.

        What is under way at this moment ends. No money and no time is lost: payments are judged by when they were
        paid, once the chain is read again, and payouts wait. New payments on a chain that is not watched are refused.
        """
        check_text(data.reason, "reason")
        by, now = audit.origin.actor or audit.origin.actor_kind, web.clock.now()
        new = Pause(chain=chain, what=data.what, reason=data.reason, paused_by=by, paused_at=now)
        async with web.db.transaction() as conn:
            await chain_pauses.pause(conn, web.gateway.registry, new)
            await audit.record(conn, Action.CHAIN_PAUSED, subject=chain, what=data.what, reason=data.reason)
            answer = await _answer(conn, chain)
        web.gateway.pauses.forget()
        return answer

    @post("/resume", status_code=200, summary="Resume watching or sending", opt=permits("chains.resume"))
    async def resume(
        self,
        chain: FromPath[str],
        data: JSONBody[Steer],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> ChainSteered:
        """Go on where the chain was left: every block since is read, and what waited is sent."""
        check_text(data.reason, "reason")
        async with web.db.transaction() as conn:
            before = await chain_pauses.resume(conn, chain, data.what)
            told = {"what": data.what, "reason": data.reason, "paused_at": before.paused_at.isoformat()}
            await audit.record(conn, Action.CHAIN_RESUMED, subject=chain, **told)
            answer = await _answer(conn, chain)
        web.gateway.pauses.forget()
        await web.gateway.hints.publish("outbound")
        return answer

    @post("/rescan", status_code=202, summary="Read blocks again", opt=permits("chains.rescan"))
    async def rescan(
        self,
        chain: FromPath[str],
        data: JSONBody[Rescan],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        once: NamedDependency[Once],
    ) -> RescanAsked:
        """Read blocks again beside the live watch, and credit what was missed as if it had been found live.

        Usually nothing is found. The job's result says how many blocks were read, and which deposits are new.
        """
        check_text(data.reason, "reason")
        if chain not in web.gateway.registry.chains:
            raise chain_pauses.chain_not_found(chain)
        by = audit.origin.actor or audit.origin.actor_kind
        async with web.db.transaction() as conn:
            await once.take(conn)
            job = await ask(conn, web.gateway.ids, web.clock, chain, data.from_height, data.to_height, by)
            first, last = job.arguments["first"], job.arguments["last"]
            told = {"job": job.job_id, "from_height": first, "to_height": last, "reason": data.reason}
            await audit.record(conn, Action.RESCAN_ASKED, subject=chain, **told)
            asked = RescanAsked(chain=chain, job_id=job.job_id, state=job.state, from_height=first, to_height=last)
            await once.keep(conn, asked)
        await web.gateway.hints.publish(requests.TOPIC)
        return asked


async def _answer(conn: AsyncConnection, chain: str) -> ChainSteered:
    return ChainSteered(chain=chain, pauses=pause_views(await chain_pauses.load(conn), chain))


controllers = [admin_routes("/api/admin/chains/{chain:str}", ChainSteering)]
