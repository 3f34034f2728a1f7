"""One of everything that a merchant's project has, and everybody who is let in at the same doors for something else.

Ada's first sandbox project owns it. Strangers are keys and members of another merchant, keys of Ada's other projects,
and members of her team who act for these; each with every scope or role. Trackers have tokens of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from msgspec import Struct

from cambist.services.identity.team import MEMBER_ROLES, WHOLE_ROLES
from cambist.testing.clock import ManualClock
from tests.support.access import Access
from tests.support.knocking import MODES, SCOPES, Headers, Sitting
from tests.support.team import Teammate
from tests.support.tracker_api import make, watched
from tests.support.two_merchants import TwoMerchants
from tests.support.web import Merchant

NOBODYS = {"address": watched(99)}
"""What nobody has, where it is not just any text."""


class Caller(Struct, frozen=True, kw_only=True):
    """Somebody with a credential that is good. ``project`` is a name in ``projects``, whose mode is ``mode``.

    ``scope`` is a key's, ``all`` for one with all of them; ``member`` is a session. A tracker has neither.
    """

    headers: Headers
    project: str
    mode: str
    scope: str | None = None
    member: Sitting | None = None

    @property
    def is_bobs(self) -> bool:
        return self.project.startswith("bob")

    @property
    def may_all(self) -> bool:
        """Whether nothing is closed to who asks but what is another's."""
        return self.member.role == "owner" if self.member is not None else self.scope in {"all", None}

    @property
    def who(self) -> str:
        """Return who it is, for messages."""
        if self.member is not None:
            return f"{self.member.role}, open to {self.member.open_to or 'all'}"
        return "a tracker" if self.scope is None else f"a key for {self.scope}"

    def comes_through(self, row: Access) -> bool:
        """Whether the door of a route takes this credential; one key with a scope stands for those with another."""
        if row.door == "tracker":
            return self.scope is None and self.member is None
        if self.scope is not None:
            return row.door in {"key", "creator"} and self.scope in {"all", row.scope}
        return self.member is not None and row.door in {"project", "session", "creator"}


class Strangers(Struct, kw_only=True):
    """Ada's things, and who may not see them.

    ``ids`` are her things by the names of parameters, ``own`` what a stranger's project has where a request names two
    things. ``owners`` may do everything with hers, by the door.
    """

    two: TwoMerchants
    ids: dict[str, str]
    projects: dict[str, str]
    own: dict[str, dict[str, str]]
    owners: dict[str, Headers]
    callers: list[Caller]


async def sign_in_strangers(client: httpx.AsyncClient, clock: ManualClock) -> Strangers:
    """Play the scene that begins with all of them."""
    two = await TwoMerchants(client, clock).build()
    ada = two.ada
    await ada.step_up()
    ids = await _things(two)
    await two.bob.step_up()
    projects, callers = {"ada's": ada.project_id}, list[Caller]()
    bob = two.bob
    shops = {"bob's sandbox": (bob, "sandbox"), "bob's live": (bob, "live")}
    shops |= {"sibling": (Merchant(client), "sandbox"), "ada's live": (Merchant(client), "live")}
    own: dict[str, dict[str, str]] = {}
    for name, (merchant, mode) in shops.items():
        if merchant is not bob:
            _share(ada, merchant)
        await merchant.add_project(mode=mode)
        projects[name] = merchant.project_id
        for scope in ("all", *SCOPES):
            await merchant.add_key(**({} if scope == "all" else {"scopes": [scope]}))
            callers.append(Caller(headers=merchant.key, project=name, mode=mode, scope=scope))
            if scope == "all":
                token = (await make(client, merchant.key, startBlock=1)).token
                callers.append(Caller(headers=token, project=name, mode=mode))
                own[name] = await _event(two, merchant, mode)
    callers += await _members(client, bob, "bob's", projects, own)
    callers += await _members(client, ada, "ada's", projects, own)
    ids["session_id"] = await _other_session(ada)
    tracker = await make(client, two.who["key"], startBlock=1)
    await tracker.done("address/add-bulk", {"addresses": [ids["tracked"], ids["tracked_too"]]})
    owners = {"key": two.who["key"], "creator": ada.bearer, "project": ada.bearer, "session": ada.bearer}
    callers.sort(key=lambda caller: (caller.project, caller.member is None))
    return Strangers(
        two=two, ids=ids, projects=projects, own=own, owners=owners | {"tracker": tracker.token}, callers=callers
    )


def _share(ada: Merchant, merchant: Merchant) -> None:
    """Have another project of Ada's be made by her, with a key of its own."""
    for name in ("email", "merchant_id", "bearer", "refresh_token", "phone", "_step_up"):
        setattr(merchant, name, getattr(ada, name))


async def _things(two: TwoMerchants) -> dict[str, str]:
    """Return what Ada's project has, with what ``TwoMerchants`` does not make."""
    ada, at = two.ada, f"/api/merchant/projects/{two.ada.project_id}"
    order = {
        "chain": "memory",
        "token": "USDX",
        "pricingMode": "direct_crypto",
        "amount": "1",
        "orderId": "ada's order",
    }
    await two.post("/api/payment", order, two.who["key"])
    hook = await two.post(f"{at}/webhook-endpoints", {"url": "http://127.0.0.1:1025/ada"}, ada.bearer)
    paid = await two.paid()
    delivery = (await two.get(f"/api/dashboard/projects/{ada.project_id}/deliveries", ada.bearer))["deliveries"][0]
    mate = await Teammate(two.client, ada).sign_in("viewer", name="mate", enrolled=False, stepped_up=False)
    guest = {"email": "guest@team.example", "name": "Guest", "role": "viewer"}
    invited = await two.post("/api/dashboard/invitations", guest, ada.bearer)
    return {
        **two.ids,
        "endpoint_id": hook["endpoint"]["endpointId"],
        "delivery_id": delivery["deliveryId"],
        "member_id": mate.member_id,
        "invitation_id": invited["invitation"]["invitationId"],
        "resource_id": paid,
        "key_id": ada.key_id,
        "actor": (await two.get("/api/dashboard/members/me", ada.bearer))["member"]["memberId"],
        "order_id": "ada's order",
        "external_id": "ada's user",
        "tracked": watched(7),
        "tracked_too": watched(8),
    }


async def _event(two: TwoMerchants, merchant: Merchant, mode: str) -> dict[str, str]:
    """Return an event of a project's own where money can come by itself, which is in a sandbox."""
    if mode == "live":
        return {}
    asked = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1"}
    payment = (await two.post("/api/payment", asked, merchant.key))["payment"]["paymentId"]
    await two.post("/api/sandbox/deposit", {"paymentId": payment, "confirmations": 3}, merchant.key)
    return {"event_id": (await two.get("/api/events", merchant.key))["events"][0]["eventId"]}


async def _members(
    client: httpx.AsyncClient, merchant: Merchant, whose: str, projects: Mapping[str, str], own: dict[str, Any]
) -> list[Caller]:
    """Add members of each role to a team, some for one project alone; return each for each of the other projects."""
    others = ("bob's sandbox", "bob's live") if whose == "bob's" else ("sibling", "ada's live")
    found = list[Caller]()
    for role in MEMBER_ROLES:
        for only in (None,) if role in WHOLE_ROLES else (None, others[0]):
            name = f"{whose[0]}.{role}.{only is None}".lower()
            limit = None if only is None else [projects[only]]
            mate = await Teammate(client, merchant).sign_in(role, name=name, projects=limit)
            open_to = None if only is None else MODES[1]
            sitting = Sitting(role=role, open_to=open_to, step_up="done", headers=mate.bearer)
            for project, mode in zip(others, ("sandbox", "live"), strict=True):
                if only in {None, project}:
                    found.append(Caller(headers=mate.bearer, project=project, mode=mode, member=sitting))
            for project in others:
                own[project].setdefault("member_id", mate.member_id)
    return found


async def _other_session(merchant: Merchant) -> str:
    """Return the id of a session of the merchant's that is not the one in use, opened below the API."""
    mate = Teammate(merchant.client, merchant)
    web = mate.web
    async with web.db.transaction() as conn:
        query = "SELECT m.id FROM members m JOIN merchants o ON o.id = m.merchant_pk"
        mate.pk = (await conn.exec_driver_sql(f"{query} WHERE m.email = $1", (merchant.email,))).scalar_one()
    await mate.open()
    listed = await merchant.ask("GET", "/api/auth/sessions?limit=100")
    found: str = next(one["sessionId"] for one in listed["sessions"] if not one["current"])
    return found
