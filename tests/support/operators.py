"""Operators at a client's other end, each with a role, a second factor and a session."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx

from cambist.services.identity import operators, sessions
from cambist.services.identity.operators import OPERATORS, Role
from cambist.services.identity.sessions import Visitor
from tests.support.authenticator import Authenticator
from tests.support.web import PASSWORD

AUTH = "/api/admin/auth"


class Officer:
    """An operator. Made below the API, which has tests of its own for how operators come in."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.web = client._transport.app.state.web  # type: ignore[attr-defined]
        self.made: operators.Operator
        self.phone: Authenticator
        self.recovery_codes: list[str] = []
        self.bearer: dict[str, str] = {}

    async def sign_in(self, role: Role, *, name: str = "", stepped_up: bool = False) -> Officer:
        """Add the operator, and open a session."""
        web, name = self.web, name or role
        password_hash = await web.passwords.hash(PASSWORD)
        async with web.db.transaction() as conn:
            told = {"email": f"{name}@gateway.example", "name": name, "password_hash": password_hash}
            self.made = await operators.add(conn, role=role, **told, ids=web.ids, now=web.clock.now())
        shown = await web.operators.two_factor.enrol(self.made.pk, self.made.email, None)
        self.phone = Authenticator(shown.secret, web.clock)
        code = self.phone.next_code()
        self.recovery_codes = [*await web.operators.two_factor.confirm(self.made.pk, code, session_id="")]
        await self.open(stepped_up=stepped_up)
        return self

    async def open(self, *, stepped_up: bool = False) -> None:
        """Open a session, and keep its access token."""
        web, here = self.web, Visitor(ip="192.0.2.7", user_agent=None)
        async with web.db.transaction() as conn:
            opened = await web.operators.sessions.open(conn, self.made.pk, here, now=web.clock.now())
            if stepped_up:
                until = web.clock.now() + timedelta(seconds=sessions.STEP_UP_S)
                await sessions.step_up(conn, OPERATORS, opened.principal.session_id, until=until)
        self.bearer = {"Authorization": f"Bearer {web.operators.access_tokens.issue(opened.principal)}"}

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        response = await self.client.request(method, path, json=body, headers=self.bearer)
        self.client.cookies.clear()
        return response

    def credentials(self, **changes: Any) -> dict[str, Any]:
        """Return what signing in takes."""
        code = changes.get("totpCode") or self.phone.next_code()
        return {"email": self.made.email, "password": PASSWORD, **changes, "totpCode": code}
