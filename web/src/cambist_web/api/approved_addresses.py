"""Where auto-payouts may go: decided by the merchant in person, with a code of the second factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter

from cambist.services.audit.entries import Action
from cambist.services.identity.sessions import SessionPrincipal
from cambist.services.listing import Sort
from cambist.services.payouts import approved_addresses
from cambist.services.payouts.approved_addresses import ApprovalRequest, ApprovedAddress, Mode
from cambist_web.auth import needs, session_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.origin import Audit
from cambist_web.schemas import Answer, CursorPageAnswer
from cambist_web.standing import still


class ApprovedAnswer(Answer, frozen=True, kw_only=True):
    """An approved address."""

    approved_address: ApprovedAddress


class ApprovedList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of the approved addresses."""

    approved_addresses: Sequence[ApprovedAddress]


class ApprovedAddresses(Controller):
    tags = ("Withdrawals",)

    @get("/", summary="List approved addresses", opt=needs(member="withdrawals.read"))
    async def list(
        self,
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        *,
        mode: Annotated[Mode | None, QueryParameter()] = None,
        sort: TimeSort = Sort.OLDEST,
    ) -> Response[ApprovedList]:
        """Return the addresses that auto-payouts may go to."""
        query = asked.of(web, "approved-addresses", session.merchant_pk, sort=sort, filters=mode)
        return await query.answer(
            ApprovedList, lambda conn, part: approved_addresses.list_approved(conn, session.merchant_pk, mode, part)
        )

    @post("/", status_code=201, summary="Approve an address", opt=needs(member="approvals"))
    async def approve(
        self,
        data: JSONBody[ApprovalRequest],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> ApprovedAnswer:
        """Let auto-payouts go to an address. Needs a code of the authenticator."""
        async with web.db.autocommit() as conn:
            address = await approved_addresses.check(
                conn, web.gateway.registry, session.merchant_pk, data, live=session.live
            )
        await web.two_factor.require_code(session.member_pk, data.totp_code)
        async with web.db.transaction() as conn:
            await still(conn, session, "approvals")
            found = await approved_addresses.approve(conn, session.merchant_pk, data, address, web.ids, web.clock.now())
            told = {"chain": data.chain, "address": found.address, "mode": found.mode}
            await audit.record(conn, Action.ADDRESS_APPROVED, subject=found.approval_id, **told)
        return ApprovedAnswer(approved_address=found)

    @delete("/{approval_id:str}", status_code=200, summary="Take an approval back", opt=needs(member="approvals"))
    async def delete(
        self,
        approval_id: FromPath[str],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Answer:
        """Stop auto-payouts to the address: those rules are switched off. Payouts that are under way still go there."""
        async with web.db.transaction() as conn:
            await approved_addresses.withdraw_approval(conn, session.merchant_pk, approval_id, web.clock.now())
            await audit.record(conn, Action.APPROVAL_WITHDRAWN, subject=approval_id)
        return Answer()


controllers = [session_routes("/api/dashboard/approved-addresses", ApprovedAddresses)]
