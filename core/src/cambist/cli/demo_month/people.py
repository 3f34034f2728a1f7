"""Who works at the shop and at the gateway beside the first of each, and what the operators decide for the shop."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct, structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.bootstrap import Gateway
from cambist.services.addresses.wallets import gas_station
from cambist.services.audit.entries import Action, Origin, record
from cambist.services.identity import api_keys, invitations, merchants, operators, plan_catalog
from cambist.services.identity.api_keys import NewKey
from cambist.services.identity.passwords import Passwords
from cambist.services.identity.plan_catalog import NewPlan
from cambist.services.identity.projects import Projects, authorize
from cambist.services.identity.sessions import MemberRole, SessionPrincipal
from cambist.services.identity.team import Share
from cambist.services.webhooks.secrets import SigningSecrets

from .shop import AT_HOME, Opened, in_person

COLLEAGUES: tuple[tuple[str, MemberRole], ...] = (("Boris", "admin"), ("Chidi", "finance"), ("Dalia", "developer"))
INVITED: tuple[str, MemberRole] = ("Emre", "viewer")
SUPPORT = "Fatou"
PLANS = (
    NewPlan(name="Starter", has_tracker=True, max_webhooks=2, max_addresses=100, price_usd="19"),
    NewPlan(
        name="Business",
        has_tracker=True,
        max_webhooks=20,
        max_addresses=5_000,
        requests_per_minute=12_000,
        price_usd="99",
    ),
)
"""The shop has the last one."""
INVITED_FOR = timedelta(days=7)
LIVE_PATH, FAMILY = "/live", "evm"


class LiveProject(Struct, frozen=True, kw_only=True):
    """The shop's live project: ``secret`` signs its webhooks, which go to ``LIVE_PATH`` of its server.

    ``station`` pays for what it sends on a chain of ``FAMILY``.
    """

    key: str
    secret: str
    station: str


class People:
    """The people of one shop and its gateway. ``marked`` is in their addresses, so that no two months share one."""

    def __init__(self, gateway: Gateway, opened: Opened, operator_id: str, *, marked: str, password: str) -> None:
        self._gateway = gateway
        self._opened = opened
        self._operator = Origin(actor_kind="operator", actor=operator_id, address=AT_HOME)
        self._marked = marked
        self._password = password

    async def join(self) -> None:
        """Have the shop's owner invite colleagues, all of whom but the last one join at once."""
        gateway = self._gateway
        for name, role in (*COLLEAGUES, INVITED):
            now, email = gateway.clock.now(), self._email(name)
            password_hash = await self._hash(email, name)
            async with gateway.db.transaction() as conn:
                invitation, token = await invitations.make(
                    conn, self._owner(), Share(role, None), email=email, name=name, ids=gateway.ids, now=now,
                    lifetime_s=int(INVITED_FOR.total_seconds()),
                )  # fmt: skip
                told: dict[str, object] = {"email": email, "role": role}
                by = in_person(self._opened)
                await record(conn, by, Action.MEMBER_INVITED, now, subject=invitation.invitation_id, details=told)
                if (name, role) == INVITED:
                    continue
                joined = await invitations.accept(conn, token, password_hash=password_hash, ids=gateway.ids, now=now)
                await record(conn, by, Action.MEMBER_JOINED, now, subject=joined.member_id, details=told)

    async def govern(self) -> None:
        """Have the operator add a colleague, and make plans, of which the shop is given one."""
        gateway, now, email = self._gateway, self._gateway.clock.now(), self._email(SUPPORT)
        password_hash = await self._hash(email, SUPPORT)
        shop = self._opened.actor
        async with gateway.db.transaction() as conn:
            added = await operators.add(
                conn, email=email, name=SUPPORT, role="support", password_hash=password_hash, ids=gateway.ids, now=now
            )
            told = {"email": email, "role": added.role}
            await record(conn, self._operator, Action.OPERATOR_MADE, now, subject=added.operator_id, details=told)
            plans = [await self._make_plan(conn, plan) for plan in PLANS]
            given = await plan_catalog.give_plan(conn, shop.merchant_id, plans[-1])
            by = structs.replace(self._operator, merchant_id=shop.merchant_id)
            await record(conn, by, Action.PLAN_GIVEN, now, subject=given.plan_id, details={"name": given.name})

    async def _make_plan(self, conn: AsyncConnection, plan: NewPlan) -> str:
        gateway, now = self._gateway, self._gateway.clock.now()
        new = structs.replace(plan, name=f"{plan.name} {self._marked}".strip())
        made = await plan_catalog.make_plan(conn, gateway.registry, new, ids=gateway.ids, now=now)
        await record(conn, self._operator, Action.PLAN_MADE, now, subject=made.plan_id, details={"name": made.name})
        return made.plan_id

    async def go_live(self, *, name: str, webhook_url: str) -> LiveProject:
        """Grant the shop live mode, and have it open a live project with a key."""
        gateway, now, shop = self._gateway, self._gateway.clock.now(), self._opened.actor
        projects = Projects(SigningSecrets(gateway.secrets), gateway.ids, targets=gateway.settings.webhook_targets)
        async with gateway.db.transaction() as conn:
            await merchants.grant_live(conn, shop.merchant_id, live=True)
            by = structs.replace(self._operator, merchant_id=shop.merchant_id)
            await record(conn, by, Action.LIVE_GRANTED, now, subject=shop.merchant_id)
            project, secret = await projects.create(
                conn, shop.merchant_pk, name=name, mode="live", payment_webhook_url=webhook_url, now=now
            )
            actor = await authorize(conn, self._owner(), project.project_id)
            by = in_person(self._opened)
            key = await api_keys.issue(
                conn, actor, NewKey(name="Till"), created_by=self._opened.member_id, ids=gateway.ids, now=now
            )
            told = {"name": name, "mode": "live"}
            await record(conn, by, Action.PROJECT_MADE, now, subject=project.project_id, details=told)
            await record(conn, by, Action.KEY_ISSUED, now, subject=key.key.key_id, details={"name": key.key.name})
            station = await gas_station(conn, FAMILY, "live")
        if station is None:
            raise AssertionError("gas stations are registered first")
        return LiveProject(key=key.secret, secret=secret, station=station.address)

    def _owner(self) -> SessionPrincipal:
        opened = self._opened
        return SessionPrincipal(
            session_id="", member_pk=opened.member_pk, member_id=opened.member_id, role="owner", project_pks=None,
            merchant_pk=opened.actor.merchant_pk, merchant_id=opened.actor.merchant_id, live=True,
        )  # fmt: skip

    def _email(self, name: str) -> str:
        return f"{name.lower()}{self._marked}@shop.example"

    async def _hash(self, email: str, name: str) -> str:
        return await Passwords(self._gateway.ids.random_bytes).hash_new(self._password, [email, name])
