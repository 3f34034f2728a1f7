"""Members of a merchant's team at a client's other end, each with a role and a session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import httpx
from sqlalchemy import insert, select

from cambist.db import models
from cambist.services.identity import sessions
from cambist.services.identity.members import MEMBERS
from cambist.services.identity.sessions import MemberRole, Visitor
from tests.support.authenticator import Authenticator
from tests.support.web import PASSWORD, Merchant


class Teammate:
    """A member. Made below the API, which has tests of its own for how members come in."""

    def __init__(self, client: httpx.AsyncClient, merchant: Merchant) -> None:
        self.client = client
        self.web = client._transport.app.state.web  # type: ignore[attr-defined]
        self.merchant = merchant
        self.pk = 0
        self.member_id = ""
        self.email = ""
        self.phone: Authenticator | None = None
        self.bearer: dict[str, str] = {}

    async def sign_in(
        self,
        role: MemberRole,
        *,
        name: str = "",
        projects: Sequence[str] | None = None,
        enrolled: bool = True,
        stepped_up: bool = True,
    ) -> Teammate:
        """Add the member, and open a session."""
        web, name = self.web, name or role
        self.email, self.member_id = f"{name}@team.example", web.ids.new("mem")
        password_hash = await web.passwords.hash(PASSWORD)
        async with web.db.transaction() as conn:
            merchant, project, table = models.Merchant, models.Project, models.Member
            merchant_pk = await conn.scalar(
                select(merchant.id).where(merchant.merchant_id == self.merchant.merchant_id)
            )
            open_to = None
            if projects is not None:
                found = await conn.execute(select(project.id).where(project.project_id.in_(projects)))
                open_to = list(found.scalars())
            stored = {"member_id": self.member_id, "email": self.email, "name": name, "password_hash": password_hash}
            stored |= {"merchant_pk": merchant_pk, "role": role, "project_pks": open_to}
            self.pk = (await conn.execute(insert(table).values(stored).returning(table.id))).scalar_one()
        if enrolled:
            shown = await web.two_factor.enrol(self.pk, self.email, None)
            self.phone = Authenticator(shown.secret, web.clock)
            await web.two_factor.confirm(self.pk, self.phone.next_code(), session_id="")
        await self.open(stepped_up=stepped_up)
        return self

    async def open(self, *, stepped_up: bool = False) -> None:
        """Open a session, and keep its access token."""
        web, here = self.web, Visitor(ip="192.0.2.7", user_agent=None)
        async with web.db.transaction() as conn:
            opened = await web.sessions.open(conn, self.pk, here, now=web.clock.now())
            if stepped_up:
                until = web.clock.now() + timedelta(seconds=sessions.STEP_UP_S)
                await sessions.step_up(conn, MEMBERS, opened.principal.session_id, until=until)
        self.bearer = {"Authorization": f"Bearer {web.access_tokens.issue(opened.principal)}"}

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        response = await self.client.request(method, path, json=body, headers=self.bearer)
        self.client.cookies.clear()
        return response
