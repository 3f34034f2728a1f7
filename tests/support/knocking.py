"""Everybody who could knock at the API, and what each route answers to them, without anything happening.

Each request has a query parameter that no route knows. Whoever is let in is told so, before the handler is called;
whoever is not is refused before the body is read. So every answer is known exactly, and no request leaves a trace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, get_args

import httpx
from litestar import Litestar
from msgspec import Struct

from cambist.services.identity.api_keys import Scope
from cambist.services.identity.operators import ROLES, Role
from cambist.services.identity.sessions import MemberRole
from cambist.services.identity.team import MEMBER_ROLES, WHOLE_ROLES
from cambist.testing.clock import ManualClock
from tests.support.access import Access, filled
from tests.support.operators import Officer
from tests.support.team import Teammate
from tests.support.tracker_api import make
from tests.support.web import ADMIN_KEY, Merchant, described_codes

Headers = Mapping[str, str]

UNKNOWN = "nobodyKnowsThis"
SCOPES: Sequence[Scope] = get_args(Scope)
MODES = ("live", "sandbox")
STATUSES = {
    401: {
        "API_KEY_MISSING", "API_KEY_INVALID", "API_KEY_EXPIRED", "SESSION_REQUIRED", "INVALID_TOKEN", "SESSION_ENDED",
        "ADMIN_KEY_INVALID", "AUTH_TOKEN_MISSING", "AUTH_TOKEN_INVALID",
    },
    403: {
        "IP_NOT_ALLOWED", "SCOPE_MISSING", "LIVE_NOT_GRANTED", "ROLE_NOT_ALLOWED", "PROJECTS_LIMITED",
        "PROJECT_NOT_OWNED", "PROJECT_NOT_OPEN", "STEP_UP_REQUIRED", "TWO_FACTOR_REQUIRED",
    },
    404: {"PROJECT_NOT_FOUND"},
}  # fmt: skip
"""Every way of not being let in, by its status."""
_CHALLENGES = {"API_KEY": "ApiKey", "ADMIN_KEY": "AdminKey", "AUTH_TOKEN": "AuthToken"}


class Sitting(Struct, frozen=True, kw_only=True):
    """A member's session: the role, the projects that are open to them by mode, and how far the session has come.

    ``open_to`` is None where every project is. ``step_up`` is ``done``, ``not yet``, or ``not enrolled``.
    """

    role: MemberRole
    open_to: str | None
    step_up: str
    headers: Headers


class Duty(Struct, frozen=True, kw_only=True):
    """An operator's session."""

    role: Role
    stepped_up: bool
    headers: Headers


class Everybody(Struct, kw_only=True):
    """A merchant's team, keys and tracker, another merchant's project, and the gateway's operators."""

    merchant_id: str
    projects: dict[str, str]
    keys: dict[tuple[str, str], Headers]
    """By mode and scope, ``all`` for one with all of them."""
    elsewhere: Headers
    expiring: Headers
    members: list[Sitting]
    operators: list[Duty]
    tracker: Headers
    ended: dict[str, Headers]
    """Sessions that have ended, of a member and of an operator."""


async def sign_in_everybody(client: httpx.AsyncClient, clock: ManualClock) -> Everybody:
    """Play the scene that begins with all of them."""
    ada, bob = Merchant(client), Merchant(client)
    projects, keys = {}, {}
    await ada.register("ada@shop.example")
    for mode in MODES:
        await ada.add_project(mode=mode)
        projects[mode], keys[mode, "all"] = ada.project_id, ada.key
        for scope in SCOPES:
            await ada.add_key(scopes=[scope])
            keys[mode, scope] = ada.key
    await ada.add_key(allowedIps=["203.0.113.7"])
    elsewhere = ada.key
    await ada.add_key(expiresAt=(clock.now() + timedelta(seconds=9)).isoformat())
    await bob.register("bob@shop.example")
    await bob.add_project(mode="sandbox")
    projects["somebody else's"] = bob.project_id
    ending = f"/api/admin/merchants/{bob.merchant_id}/sessions"
    assert (await client.delete(ending, headers={"X-Admin-Key": ADMIN_KEY})).status_code < 300
    operators = []
    for role in ROLES:
        officer = await Officer(client).sign_in(role)
        operators.append(Duty(role=role, stepped_up=False, headers=officer.bearer))
        await officer.open(stepped_up=True)
        operators.append(Duty(role=role, stepped_up=True, headers=officer.bearer))
    gone = await Officer(client).sign_in("owner", name="gone", stepped_up=True)
    await gone.ask("POST", "/api/admin/auth/sign-out-everywhere")
    return Everybody(
        merchant_id=ada.merchant_id,
        projects=projects,
        keys=keys,
        elsewhere=elsewhere,
        expiring=ada.key,
        members=await _team(client, ada, projects),
        operators=operators,
        tracker=(await make(client, keys["sandbox", "all"])).token,
        ended={"member": bob.bearer, "operator": gone.bearer},
    )


async def _team(client: httpx.AsyncClient, ada: Merchant, projects: Mapping[str, str]) -> list[Sitting]:
    found = []
    for role in MEMBER_ROLES:
        for open_to in (None,) if role in WHOLE_ROLES else (None, *MODES):
            limit = None if open_to is None else [projects[open_to]]
            for enrolled in (True, False):
                name = f"{role}.{open_to}.{enrolled}".lower()
                member = await Teammate(client, ada).sign_in(
                    role, name=name, projects=limit, enrolled=enrolled, stepped_up=False
                )
                one = {"role": role, "open_to": open_to}
                step_up = "not yet" if enrolled else "not enrolled"
                found.append(Sitting(**one, step_up=step_up, headers=member.bearer))
                if enrolled:
                    await member.open(stepped_up=True)
                    found.append(Sitting(**one, step_up="done", headers=member.bearer))
    return found


class Knocker:
    """Knocks at the app's routes, below any client, and checks of every answer what is true of all."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.app: Litestar = client._transport.app  # type: ignore[attr-defined]
        self.let_in: set[Access] = set()
        self.refused: set[Access] = set()

    async def knock(self, row: Access, headers: Headers, **ids: Any) -> str | None:
        """Return why somebody is not let in, or None for who is."""
        status, told, body, was_read = await self._ask(row.method, filled(row.path, **ids), headers)
        where = f"{row.method} {row.path}: {status} {body}"
        assert body.keys() <= {"success", "error", "code", "details"}, where
        assert body["success"] is False, where
        assert isinstance(body["error"], str), where
        assert body["error"], where
        code: str = body["code"]
        described = described_codes(self.app).get((row.method, row.path))  # a page of HTML is not described
        assert described is None or code in described.get(str(status), ()), where
        if code == "VALIDATION_ERROR":
            assert (status, [one["field"] for one in body["details"]]) == (400, [UNKNOWN]), where
            self.let_in.add(row)
            return None
        assert code in STATUSES.get(status, ()), where
        assert not was_read, f"{where}: the body was read"
        if status == 401:
            assert told["www-authenticate"] == _CHALLENGES.get(code.rpartition("_")[0], "Bearer"), where
        self.refused.add(row)
        return code

    async def _ask(self, method: str, path: str, headers: Headers) -> tuple[int, Headers, dict[str, Any], bool]:
        status, told, parts, reads = 0, {}, [], 0

        async def receive() -> Any:
            nonlocal reads
            reads += 1
            return {"type": "http.request", "body": b'{"no such field": 0}', "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status, told
            if message["type"] == "http.response.start":
                status = message["status"]
                told = {name.decode().lower(): value.decode() for name, value in message["headers"]}
            else:
                parts.append(message.get("body", b""))

        sent = {"host": "gateway.example", **{name.lower(): value for name, value in headers.items()}}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": f"{UNKNOWN}=0".encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": ("192.0.2.7", 1234),
            "server": ("gateway.example", 80),
        }
        await self.app(scope, receive, send)  # type: ignore[arg-type]
        return status, told, json.loads(b"".join(parts)), bool(reads)
