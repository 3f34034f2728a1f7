"""The people who run the gateway, for its owners: who they are, what each may do, and letting them in and out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from litestar import Controller, Response, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.audit.entries import Action
from cambist.services.errors import ForbiddenError
from cambist.services.identity import merchants, operators
from cambist.services.identity.merchants import Name
from cambist.services.identity.operators import OperatorView, Role
from cambist.services.listing import Sort
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.once import Once
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body, CursorPageAnswer

from .merchants import Email


class NewOperator(Body, frozen=True, kw_only=True):
    """Somebody to invite."""

    email: Email
    name: Name
    role: Role


class ChangeOperator(Body, frozen=True, kw_only=True):
    """What an operator may do from now on."""

    role: Role


class OperatorAnswer(Answer, frozen=True, kw_only=True):
    """An operator."""

    operator: OperatorView


class OperatorInvited(OperatorAnswer, frozen=True, kw_only=True):
    """An operator, and a link: whoever opens it first sets the password, and enrols an authenticator with it."""

    link: str
    expires_in: int


class OperatorList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of the operators."""

    operators: Sequence[OperatorView]


@asynccontextmanager
async def _acting(web: Web, audit: Audit, once: Once | None = None) -> AsyncIterator[AsyncConnection]:
    """Open a transaction for whoever asks and manages operators still: the guard's answer may be out of date."""
    async with web.db.transaction() as conn:
        if once is not None:
            await once.take(conn)
        await operators.acting(conn, audit.operator_id, audit.origin.session_id)
        yield conn


class Operators(Controller):
    tags = ("Operators",)

    @get("/", summary="List operators", opt=permits("operators.read"))
    async def list(
        self, web: NamedDependency[Web], asked: NamedDependency[Asked], *, sort: TimeSort = Sort.OLDEST
    ) -> Response[OperatorList]:
        """Return every operator, disabled ones included."""
        query = asked.of(web, "operators", "operator", sort=sort)
        return await query.answer(OperatorList, operators.list_operators)

    @post("/", status_code=201, summary="Invite an operator", opt=permits("operators.manage"))
    async def invite(
        self,
        data: JSONBody[NewOperator],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        once: NamedDependency[Once],
    ) -> OperatorInvited:
        """Add an operator without a password, and return a link that sets one, once and soon."""
        email, name = merchants.normalize_email(data.email), merchants.check_name(data.name)
        # Nobody knows this one.
        password_hash = await web.passwords.hash(web.ids.hex_secret())
        now = web.clock.now()
        async with _acting(web, audit, once) as conn:
            made = await operators.add(
                conn, email=email, name=name, role=data.role, password_hash=password_hash, ids=web.ids, now=now
            )
            lifetime_s = web.settings.auth.password_reset_s
            token = await operators.issue_link(
                conn, email, ids=web.ids, now=now, lifetime_s=lifetime_s, by=audit.operator_id
            )
            told = {"email": email, "role": data.role}
            await audit.record(conn, Action.OPERATOR_MADE, subject=made.operator_id, **told)
            view, link = await operators.read(conn, made.operator_id), operators.password_link(web.settings.web, token)
            return await once.keep(conn, OperatorInvited(operator=view, link=link, expires_in=lifetime_s))

    @patch("/{operator_id:str}", summary="Change an operator's role", opt=permits("operators.manage"))
    async def change(
        self,
        operator_id: FromPath[str],
        data: JSONBody[ChangeOperator],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> OperatorAnswer:
        """Give an operator another role, which holds from the next request on. The last owner stays one.

        Links that the operator has handed out, nobody has used, and the role may not hand out stop working.
        """
        async with _acting(web, audit) as conn:
            view, former = await operators.set_role(conn, operator_id, data.role)
            told = {"role": data.role, "former_role": former}
            await audit.record(conn, Action.OPERATOR_ROLE_CHANGED, subject=operator_id, **told)
        return OperatorAnswer(operator=view)

    @post("/{operator_id:str}/disable", status_code=200, summary="Disable an operator", opt=permits("operators.manage"))
    async def disable(
        self, operator_id: FromPath[str], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> OperatorAnswer:
        """Let an operator in no more, and end all sessions at once. The last owner cannot be disabled.

        Links that the operator has handed out and nobody has used stop working.
        """
        async with _acting(web, audit) as conn:
            view = await operators.disable(conn, operator_id, now=web.clock.now())
            await audit.record(conn, Action.OPERATOR_DISABLED, subject=operator_id)
        return OperatorAnswer(operator=view)

    @post("/{operator_id:str}/enable", status_code=200, summary="Enable an operator", opt=permits("operators.manage"))
    async def enable(
        self, operator_id: FromPath[str], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> OperatorAnswer:
        """Let an operator in again, with the password and the authenticator from before."""
        async with _acting(web, audit) as conn:
            view = await operators.enable(conn, operator_id)
            await audit.record(conn, Action.OPERATOR_ENABLED, subject=operator_id)
        return OperatorAnswer(operator=view)

    @post(
        "/{operator_id:str}/link", status_code=201, summary="Let an operator back in", opt=permits("operators.manage")
    )
    async def link(
        self, operator_id: FromPath[str], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> OperatorInvited:
        """Return a link that sets a new password, once and soon. An earlier one stops working."""
        lifetime_s = web.settings.auth.password_reset_s
        async with _acting(web, audit) as conn:
            view = await operators.read(conn, operator_id)
            token = await operators.issue_link(
                conn, view.email, ids=web.ids, now=web.clock.now(), lifetime_s=lifetime_s, by=audit.operator_id
            )
            await audit.record(conn, Action.PASSWORD_RESET_ISSUED, subject=operator_id, email=view.email)
        return OperatorInvited(
            operator=view, link=operators.password_link(web.settings.web, token), expires_in=lifetime_s
        )

    @post(
        "/{operator_id:str}/two-factor/reset",
        status_code=200,
        summary="Take an operator's second factor away",
        opt=permits("operators.manage"),
    )
    async def reset_two_factor(
        self, operator_id: FromPath[str], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> OperatorInvited:
        """Forget an operator's authenticator and password, end all sessions, and return a link that sets a password.

        The sign-in after that enrols another authenticator. Nobody resets their own: a session alone is too little.
        """
        if operator_id == audit.origin.actor:
            words = "Another owner takes it away, or 'cambist admin reset-two-factor'; a recovery code enrols another."
            raise ForbiddenError("NOT_YOURSELF", words)
        # Nobody knows this one.
        password_hash = await web.passwords.hash(web.ids.hex_secret())
        lifetime_s, now = web.settings.auth.password_reset_s, web.clock.now()
        issue: dict[str, Any] = {"ids": web.ids, "now": now, "lifetime_s": lifetime_s, "by": audit.operator_id}
        async with _acting(web, audit) as conn:
            email = (await operators.read(conn, operator_id)).email
            token = await operators.reset_two_factor(conn, email, password_hash=password_hash, **issue)
            await audit.record(conn, Action.TWO_FACTOR_RESET, subject=operator_id)
            view = await operators.read(conn, operator_id)
        return OperatorInvited(
            operator=view, link=operators.password_link(web.settings.web, token), expires_in=lifetime_s
        )


controllers = [admin_routes("/api/admin/operators", Operators)]
