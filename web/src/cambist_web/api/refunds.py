"""Refunds of a project's payments. The same handlers serve programs and people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.payouts import Status
from cambist.services.actor import Actor
from cambist.services.audit.entries import Action
from cambist.services.idempotency import Made
from cambist.services.identity.projects import require_active
from cambist.services.listing import Period, Sort
from cambist.services.reversals.refunds import create, read
from cambist.services.reversals.refunds.create import RefundRequest
from cambist.services.reversals.refunds.read import RefundView
from cambist_web.auth import key_routes, needs, project_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.origin import Audit
from cambist_web.schemas import (
    Answer,
    CursorPageAnswer,
    MadeAnswer,
    idempotency_header,
    made_response,
)
from cambist_web.sending import cancel, payout_context, sent_on

IdempotencyKey = Annotated[str | None, idempotency_header("The same key never refunds twice.")]
PaymentFilter = Annotated[str | None, QueryParameter(name="paymentId", max_length=64)]


class RefundMade(MadeAnswer, frozen=True, kw_only=True):
    """A refund. `idempotent` is there, and true, where it was made before."""

    refund: RefundView


class RefundAnswer(Answer, frozen=True, kw_only=True):
    """A refund."""

    refund: RefundView


class RefundList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of refunds. `total` counts all pages."""

    refunds: Sequence[RefundView]


async def record_refund(audit: Audit, conn: AsyncConnection, made: Made[RefundView]) -> None:
    """Write down that a refund was asked for, unless it was before."""
    if made.replayed:
        return
    one = made.resource
    told = {"chain": one.chain, "token": one.token, "amount": one.amount, "toAddress": one.to_address}
    if one.to_tag:
        told["toTag"] = one.to_tag
    about = {"paymentId": one.payment_id, "depositId": one.deposit_id}
    await audit.record(conn, Action.REFUND_ASKED, subject=one.refund_id, **told, **about)


async def made_answer(web: Web, actor: Actor, made: Made[RefundView]) -> Response[RefundMade]:
    """Have a new refund be sent, and answer with it."""
    if not made.replayed:
        await sent_on(web, actor, made.resource.chain)
    return made_response(RefundMade(refund=made.resource), replayed=made.replayed)


class Refunds(Controller):
    tags = ("Payments",)

    @post("/{payment_id:str}/refund", status_code=201, summary="Refund a payment", opt=needs("refunds", step_up=True))
    async def create(  # noqa: PLR0913, PLR0917  the path, the body, and what the use case needs
        self,
        payment_id: FromPath[str],
        data: JSONBody[RefundRequest],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        idempotency_key: IdempotencyKey = None,
    ) -> Response[RefundMade]:
        """Send back what the payment received, or a part of it: never more than that in sum.

        A held excess goes first, the rest comes out of the available balance. A repetition with the same idempotency
        key returns the first refund with status 200 and `idempotent`.
        """
        async with web.db.transaction() as conn:
            made = await create.create_refund(conn, payout_context(web), actor, payment_id, data, idempotency_key)
            await record_refund(audit, conn, made)
        return await made_answer(web, actor, made)

    @get("/refunds/list", summary="List refunds", opt=needs("read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        status: Annotated[Status | None, QueryParameter()] = None,
        of_payment: PaymentFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[RefundList]:
        """Return the project's refunds, or one payment's."""
        query = asked.of(web, "refunds", actor.project_pk, sort=sort, filters=(status, of_payment, period))
        return await query.answer(
            RefundList,
            lambda conn, part: read.list_refunds(
                conn, actor.project_pk, part, status=status, payment_id=of_payment, period=period
            ),
        )

    @get("/refunds/{refund_id:str}", summary="Read a refund", opt=needs("read"))
    async def read(
        self, refund_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> RefundAnswer:
        """Return how far the refund has come."""
        return await self._answer(web, actor, refund_id)

    @post("/refunds/{refund_id:str}/cancel", status_code=200, summary="Cancel a refund", opt=needs("refunds"))
    async def cancel(
        self,
        refund_id: FromPath[str],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> RefundAnswer:
        """Cancel a refund that waits, such as one whose deposit a reorganization has taken away.

        It is `cancelling` until its money is back, a moment later, and `cancelled` afterwards; its payment is then what
        it was before. What is on its way already is refused with `ALREADY_SENT`. To cancel it again is no error.
        """
        async with web.db.transaction() as conn:
            await require_active(conn, actor)
            await read.get_refund(conn, actor.project_pk, refund_id)
            asked = await cancel(web, audit, conn, refund_id, actor.asked_by)
        await sent_on(web, actor, asked.chain)
        return await self._answer(web, actor, refund_id)

    async def _answer(self, web: Web, actor: Actor, refund_id: str) -> RefundAnswer:
        async with web.db.autocommit() as conn:
            return RefundAnswer(refund=await read.get_refund(conn, actor.project_pk, refund_id))


controllers = [key_routes("/api/payment", Refunds), project_routes("/payments", Refunds)]
