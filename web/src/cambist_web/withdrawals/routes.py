"""Money that a merchant takes out in person, with a code of the second factor for each withdrawal."""

from __future__ import annotations

from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, HeaderParameter, JSONBody, QueryParameter
from msgspec import UNSET

from cambist.domain.payouts import Status
from cambist.services import projects, withdrawals
from cambist.services.payouts.read import LIMIT, LIMIT_MAX, PAGE_MAX
from cambist.services.sessions import SessionPrincipal
from cambist.services.withdrawals import Made, WithdrawalRequest
from cambist_web.context import Web
from cambist_web.payouts.routes import desk_of, sent_on

from .schemas import WithdrawalAnswer, WithdrawalList, WithdrawalMade

IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(name="Idempotency-Key", description="The same key never withdraws twice."),
]
Page = Annotated[int, QueryParameter(ge=1, le=PAGE_MAX)]
Limit = Annotated[int, QueryParameter(ge=1, le=LIMIT_MAX)]
ProjectFilter = Annotated[str | None, QueryParameter(name="projectId", max_length=64)]


class Withdrawals(Controller):
    """A merchant's withdrawals, of all projects."""

    tags = ("Withdrawals",)

    @post("/", status_code=201, summary="Withdraw money")
    async def create(
        self,
        data: JSONBody[WithdrawalRequest],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        idempotency_key: IdempotencyKey = None,
    ) -> Response[WithdrawalMade]:
        """Send available money to an address. Needs a code of the authenticator, which is good for one withdrawal.

        An address that was never withdrawn to before has to wait for a while first; `waitsFor` says so. A repetition
        with the same idempotency key returns the first withdrawal with status 200 and `idempotent`, without a code.
        """
        desk = desk_of(web)
        async with web.db.transaction() as conn:
            actor = await projects.authorize(conn, session, data.project_id)
            before = await withdrawals.before(conn, desk, actor, data, idempotency_key)
        if before is not None:
            made = Made(before, replayed=True)
        else:
            await web.two_factor.require_code(session.merchant_row, data.totp_code)
            async with web.db.transaction() as conn:
                made = await withdrawals.create_withdrawal(conn, desk, actor, data, idempotency_key)
        if not made.replayed:
            await sent_on(web, actor, made.withdrawal.chain)
        answer = WithdrawalMade(withdrawal=made.withdrawal, idempotent=True if made.replayed else UNSET)
        return Response(answer, status_code=200 if made.replayed else 201)

    @get("/", summary="List withdrawals")
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        *,
        project_id: ProjectFilter = None,
        status: Annotated[Status | None, QueryParameter()] = None,
        page: Page = 1,
        limit: Limit = LIMIT,
    ) -> WithdrawalList:
        """Return the merchant's withdrawals, newest first."""
        async with web.db.transaction() as conn:
            found = await withdrawals.list_withdrawals(
                conn,
                web.gateway.registry,
                session.merchant_row,
                project_id=project_id,
                status=status,
                page=page,
                limit=limit,
            )
        return WithdrawalList(withdrawals=found.withdrawals, page=page, limit=limit, total=found.total)

    @get("/{withdrawal_id:str}", summary="Read a withdrawal")
    async def read(
        self, withdrawal_id: FromPath[str], session: NamedDependency[SessionPrincipal], web: NamedDependency[Web]
    ) -> WithdrawalAnswer:
        """Return how far the withdrawal has come, and what it waits for."""
        async with web.db.autocommit() as conn:
            found = await withdrawals.get_withdrawal(conn, web.gateway.registry, session.merchant_row, withdrawal_id)
        return WithdrawalAnswer(withdrawal=found)
