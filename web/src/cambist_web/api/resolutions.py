"""The resolution list, and the decisions that empty it. The same handlers serve programs and people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.payments import HeldReason
from cambist.services.actor import Actor
from cambist.services.audit.entries import Action
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.receiving.accounts.read import check_addresses
from cambist.services.reversals.refunds.create import RefundRequest
from cambist.services.reversals.resolutions import decide
from cambist.services.reversals.resolutions.decide import Decided
from cambist.services.reversals.resolutions.read import ResolutionView, get_resolution, list_resolutions
from cambist_web.auth import key_routes, needs, project_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.origin import Audit
from cambist_web.schemas import Answer, CursorPageAnswer, Filter
from cambist_web.sending import payout_context

from .refunds import IdempotencyKey, PaymentFilter, RefundMade, made_answer, record_refund


class ResolutionList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of deposits that wait for a decision. `total` counts all pages."""

    resolutions: Sequence[ResolutionView]


class ResolutionAnswer(Answer, frozen=True, kw_only=True):
    """A deposit, after the decision."""

    resolution: ResolutionView


async def check_shown(conn: AsyncConnection, web: Web, *shown: ResolutionView) -> None:
    """Refuse to show the address of an account that is not proven to be its own."""
    of_accounts = [(one.account_id, one.address) for one in shown if one.account_id is not None]
    await check_addresses(conn, of_accounts, web.macs)


def topics_of(decided: Decided) -> Sequence[str]:
    """Return the hints of the pages that a decision changed."""
    return [
        *(f"payment:{public_id}" for public_id in decided.changed),
        *(f"account:{public_id}" for public_id in decided.accounts),
    ]


class Resolutions(Controller):
    """Money that does not simply belong to an order: surplus, late, wrong, unexpected."""

    tags = ("Resolutions",)

    @get("/", summary="List what waits for a decision", opt=needs("read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        reason: Annotated[HeldReason | None, QueryParameter()] = None,
        chain: Filter = None,
        of_payment: PaymentFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[ResolutionList]:
        """Return deposits to addresses of the project's payments, and to the wallet's own."""

        async def found(conn: AsyncConnection, part: Part) -> Listed[ResolutionView]:
            waiting = await list_resolutions(
                conn, actor, part, reason=reason, chain=chain, payment_id=of_payment, period=period
            )
            await check_shown(conn, web, *waiting.items)
            return waiting

        filters = (reason, chain, of_payment, period)
        query = asked.of(web, "resolutions", actor.project_pk, sort=sort, filters=filters)
        return await query.answer(ResolutionList, found)

    @get("/{deposit_id:str}", summary="Read a deposit", opt=needs("read"))
    async def read(
        self, deposit_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> ResolutionAnswer:
        """Return the deposit, and what was decided about it."""
        async with web.db.autocommit() as conn:
            resolution = await get_resolution(conn, actor, deposit_id)
            await check_shown(conn, web, resolution)
        return ResolutionAnswer(resolution=resolution)

    @post("/{deposit_id:str}/accept", status_code=200, summary="Count a deposit to its order", opt=needs("payments"))
    async def accept(
        self,
        deposit_id: FromPath[str],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> ResolutionAnswer:
        """Take the deposit for its order, however late it came; the payment is judged again at once."""
        async with web.db.transaction() as conn:
            decided = await decide.accept(conn, payout_context(web), actor, deposit_id)
            await check_shown(conn, web, decided.resolution)
            await audit.record(conn, Action.DEPOSIT_ACCEPTED, subject=deposit_id)
        await web.gateway.hints.publish("webhooks", *topics_of(decided))
        return ResolutionAnswer(resolution=decided.resolution)

    @post(
        "/{deposit_id:str}/release", status_code=200, summary="Release a deposit to the wallet", opt=needs("payments")
    )
    async def release(
        self,
        deposit_id: FromPath[str],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> ResolutionAnswer:
        """Make the deposit available, and leave its payment as it is."""
        async with web.db.transaction() as conn:
            decided = await decide.release(conn, payout_context(web), actor, deposit_id)
            await check_shown(conn, web, decided.resolution)
            await audit.record(conn, Action.DEPOSIT_RELEASED, subject=deposit_id)
        return ResolutionAnswer(resolution=decided.resolution)

    @post(
        "/{deposit_id:str}/refund", status_code=201, summary="Send a deposit back", opt=needs("refunds", step_up=True)
    )
    async def refund(  # noqa: PLR0913, PLR0917  the path, the body, and what the use case needs
        self,
        deposit_id: FromPath[str],
        data: JSONBody[RefundRequest],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        idempotency_key: IdempotencyKey = None,
    ) -> Response[RefundMade]:
        """Send back what is held of the deposit, or a part of it, on the chain on which it came.

        The status of its payment stays. A repetition returns the first refund with status 200 and `idempotent`.
        """
        async with web.db.transaction() as conn:
            made = await decide.refund(conn, payout_context(web), actor, deposit_id, data, idempotency_key)
            await record_refund(audit, conn, made)
        return await made_answer(web, actor, made)


controllers = [key_routes("/api/merchant/resolutions", Resolutions), project_routes("/resolutions", Resolutions)]
