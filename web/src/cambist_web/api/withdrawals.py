"""Money that a merchant takes out in person, with a code of the second factor for each withdrawal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter

from cambist.domain.intents import AskedBy
from cambist.domain.payouts import Status
from cambist.services.actor import Actor
from cambist.services.audit.entries import Action
from cambist.services.errors import ForbiddenError
from cambist.services.idempotency import Made
from cambist.services.identity import projects
from cambist.services.identity.sessions import SessionPrincipal
from cambist.services.listing import Period, Sort
from cambist.services.payouts import withdrawals
from cambist.services.payouts.queue import PayoutContext
from cambist.services.payouts.withdrawals import WithdrawalRequest, WithdrawalView
from cambist_web.auth import needs, session_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.origin import Audit
from cambist_web.schemas import Answer, CursorPageAnswer, MadeAnswer, idempotency_header, made_response
from cambist_web.sending import cancel, changed_on, payout_context, sent_on
from cambist_web.standing import still_in_person

IdempotencyKey = Annotated[str | None, idempotency_header("The same key never withdraws twice.")]
ProjectFilter = Annotated[str | None, QueryParameter(name="projectId", max_length=64)]


class WithdrawalMade(MadeAnswer, frozen=True, kw_only=True):
    """A withdrawal. `idempotent` is there, and true, where it was made before."""

    withdrawal: WithdrawalView


class WithdrawalAnswer(Answer, frozen=True, kw_only=True):
    """A withdrawal."""

    withdrawal: WithdrawalView


class WithdrawalList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of withdrawals. `total` counts all pages."""

    withdrawals: Sequence[WithdrawalView]


class Withdrawals(Controller):
    """A merchant's withdrawals, of all projects."""

    tags = ("Withdrawals",)

    @post("/", status_code=201, summary="Withdraw money", opt=needs(member="withdrawals"))
    async def create(
        self,
        data: JSONBody[WithdrawalRequest],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        idempotency_key: IdempotencyKey = None,
    ) -> Response[WithdrawalMade]:
        """Send available money to an address. Needs a code of the authenticator, which is good for one withdrawal.

        An address that was never withdrawn to before has to wait for a while first; `waitsFor` says so. A repetition
        with the same idempotency key returns the first withdrawal with status 200 and `idempotent`, without a code.
        """
        context = payout_context(web)
        async with web.db.transaction() as conn:
            actor = await projects.authorize(conn, session, data.project_id)
            before = await withdrawals.before(conn, context, actor, data, idempotency_key)
        if before is None:
            try:
                await web.two_factor.require_code(session.member_pk, data.totp_code)
            except ForbiddenError as error:
                # A twin of this request may have spent the code, and be about to answer.
                before = await _made_meanwhile(web, context, actor, data, idempotency_key)
                if before is None:
                    raise error from None
        if before is not None:
            made = Made(before, replayed=True)
        else:
            async with web.db.transaction() as conn:
                still = partial(still_in_person, conn, session, "withdrawals", actor)
                made = await withdrawals.create_withdrawal(conn, context, actor, data, idempotency_key, check=still)
                if not made.replayed:
                    one = made.resource
                    told = {"chain": one.chain, "token": one.token, "amount": one.amount, "toAddress": one.to_address}
                    if one.to_tag:
                        told["toTag"] = one.to_tag
                    told |= {"projectId": data.project_id}
                    await audit.record(conn, Action.WITHDRAWAL_ASKED, subject=one.withdrawal_id, **told)
        if not made.replayed:
            await sent_on(web, actor, made.resource.chain)
        answer = WithdrawalMade(withdrawal=made.resource)
        return made_response(answer, replayed=made.replayed)

    @get("/", summary="List withdrawals", opt=needs(member="withdrawals.read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        project_id: ProjectFilter = None,
        status: Annotated[Status | None, QueryParameter()] = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[WithdrawalList]:
        """Return the merchant's withdrawals."""
        query = asked.of(web, "withdrawals", session.merchant_pk, sort=sort, filters=(project_id, status, period))
        return await query.answer(
            WithdrawalList,
            lambda conn, part: withdrawals.list_withdrawals(
                conn,
                web.gateway.registry,
                session.merchant_pk,
                part,
                project_id=project_id,
                status=status,
                period=period,
            ),
        )

    @get("/{withdrawal_id:str}", summary="Read a withdrawal", opt=needs(member="withdrawals.read"))
    async def read(
        self, withdrawal_id: FromPath[str], session: NamedDependency[SessionPrincipal], web: NamedDependency[Web]
    ) -> WithdrawalAnswer:
        """Return how far the withdrawal has come, and what it waits for."""
        return await self._answer(web, session, withdrawal_id)

    @post(
        "/{withdrawal_id:str}/cancel",
        status_code=200,
        summary="Cancel a withdrawal",
        opt=needs(member="withdrawals"),
    )
    async def cancel(
        self,
        withdrawal_id: FromPath[str],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> WithdrawalAnswer:
        """Cancel a withdrawal that waits, for the delay of a new address say. It takes no code: nothing leaves.

        It is `cancelling` until its money is available again, a moment later, and `cancelled` afterwards, which
        `withdrawal.failed` tells. What is on its way already is refused with `ALREADY_SENT`. To cancel it again is no
        error.
        """
        async with web.db.transaction() as conn:
            await withdrawals.get_withdrawal(conn, web.gateway.registry, session.merchant_pk, withdrawal_id)
            asked = await cancel(web, audit, conn, withdrawal_id, AskedBy.SESSION)
        await changed_on(web, asked.mode, asked.project_pk, asked.chain)
        return await self._answer(web, session, withdrawal_id)

    async def _answer(self, web: Web, session: SessionPrincipal, withdrawal_id: str) -> WithdrawalAnswer:
        async with web.db.autocommit() as conn:
            found = await withdrawals.get_withdrawal(conn, web.gateway.registry, session.merchant_pk, withdrawal_id)
        return WithdrawalAnswer(withdrawal=found)


async def _made_meanwhile(
    web: Web, context: PayoutContext, actor: Actor, data: WithdrawalRequest, idempotency_key: str | None
) -> WithdrawalView | None:
    async with web.db.engine.opened(transaction=False) as conn:  # which nobody commits
        return await withdrawals.made_meanwhile(conn, context, actor, data, idempotency_key)


controllers = [session_routes("/api/dashboard/withdrawals", Withdrawals)]
