"""Money of all merchants that waits for a decision, and what operators may decide: nothing that sends it anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.payments import HeldReason
from cambist.services.actor import Actor
from cambist.services.audit.entries import Action
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.reversals.resolutions import decide, operators
from cambist.services.reversals.resolutions.operators import OperatorResolution
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, CursorPageAnswer, NonEmptyFilter
from cambist_web.sending import payout_context

from .admin_webhooks import MerchantFilter
from .resolutions import check_shown, topics_of

ReasonFilter = Annotated[HeldReason | None, QueryParameter()]
ModeFilter = Annotated[Literal["live", "sandbox"] | None, QueryParameter()]


class OperatorResolutionList(CursorPageAnswer, frozen=True, kw_only=True):
    """A page of what waits at all merchants."""

    resolutions: Sequence[OperatorResolution]


class OperatorResolutionAnswer(Answer, frozen=True, kw_only=True):
    """A deposit, after the decision if there was one."""

    resolution: OperatorResolution


class AllResolutions(Controller):
    tags = ("Operator",)

    @get("/", summary="List what waits for decisions", opt=permits("resolutions.read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        merchant_id: MerchantFilter = None,
        mode: ModeFilter = None,
        reason: ReasonFilter = None,
        chain: NonEmptyFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[OperatorResolutionList]:
        """Return deposits of all merchants that wait for a decision, and what can be decided."""

        async def found(conn: AsyncConnection, part: Part) -> Listed[OperatorResolution]:
            waiting = await operators.list_everywhere(
                conn, part, merchant_id=merchant_id, mode=mode, reason=reason, chain=chain, period=period
            )
            await check_shown(conn, web, *(one.deposit for one in waiting.items))
            return waiting

        filters = (merchant_id, mode, reason, chain, period)
        query = asked.of(web, "resolutions", "operator", sort=sort, filters=filters)
        return await query.answer(OperatorResolutionList, found)

    @get("/{deposit_id:str}", summary="Read anybody's deposit", opt=permits("resolutions.read"))
    async def read(self, deposit_id: FromPath[str], web: NamedDependency[Web]) -> OperatorResolutionAnswer:
        """Return the deposit, and what was decided about it."""
        async with web.db.autocommit() as conn:
            found = await operators.read(conn, deposit_id)
            await check_shown(conn, web, found.deposit)
        return OperatorResolutionAnswer(resolution=found)

    @post(
        "/{deposit_id:str}/accept",
        status_code=200,
        summary="Accept a deposit for a merchant",
        opt=permits("resolutions.decide"),
    )
    async def accept(
        self, deposit_id: FromPath[str], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> OperatorResolutionAnswer:
        """Take the deposit for its order or account, as the merchant would; the order is judged again at once."""
        async with web.db.transaction() as conn:
            actor = await operators.actor_of(conn, deposit_id)
            decided = await decide.accept(conn, payout_context(web), actor, deposit_id)
            await audit.record(conn, Action.DEPOSIT_ACCEPTED, subject=deposit_id, **_whose(actor))
            found = await operators.read(conn, deposit_id)
            await check_shown(conn, web, found.deposit)
        await web.gateway.hints.publish("webhooks", *topics_of(decided))
        return OperatorResolutionAnswer(resolution=found)

    @post(
        "/{deposit_id:str}/release",
        status_code=200,
        summary="Release a deposit for a merchant",
        opt=permits("resolutions.decide"),
    )
    async def release(
        self, deposit_id: FromPath[str], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> OperatorResolutionAnswer:
        """Make the deposit available to its merchant, as the merchant would, and leave its payment as it is."""
        async with web.db.transaction() as conn:
            actor = await operators.actor_of(conn, deposit_id)
            await decide.release(conn, payout_context(web), actor, deposit_id)
            await audit.record(conn, Action.DEPOSIT_RELEASED, subject=deposit_id, **_whose(actor))
            found = await operators.read(conn, deposit_id)
            await check_shown(conn, web, found.deposit)
        return OperatorResolutionAnswer(resolution=found)


def _whose(actor: Actor) -> Mapping[str, str]:
    """Return for whom an operator decides, for the audit log."""
    return {"merchant_id": actor.merchant_id, "project": actor.project_id}


controllers = [admin_routes("/api/admin/resolutions", AllResolutions)]
