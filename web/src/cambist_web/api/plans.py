"""Plans: the operator makes them and gives them to merchants, who see what theirs allows and what is used of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from litestar import Controller, Response, get, patch, post, put
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import Struct

from cambist.services.accounting import cpt_months
from cambist.services.accounting.cpt_months import CptMonth
from cambist.services.actor import Actor
from cambist.services.audit.entries import Action
from cambist.services.identity import plan_catalog, plans
from cambist.services.identity.plan_catalog import ChangePlan, NewPlan, PlanView
from cambist.services.listing import Sort
from cambist_web.auth import key_routes, needs, project_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.once import Once
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body, CursorPageAnswer, sent

from .usage import PlanOffer, plan_offer


class PlanAnswer(Answer, frozen=True, kw_only=True):
    """A plan, as the operator sees it."""

    plan: PlanView


class PlanList(CursorPageAnswer, frozen=True, kw_only=True):
    """The operator's plans, and what they have who were given none of them."""

    default_plan: PlanOffer
    plans: Sequence[PlanView]


class GivePlan(Body, frozen=True, kw_only=True):
    """Which plan a merchant shall have; null for the default one, whichever that is."""

    plan_id: str | None


class PlanGiven(Answer, frozen=True, kw_only=True):
    """What a merchant has now."""

    merchant_id: str
    plan: PlanOffer


class PlanUsed(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is used of a plan in one mode: active trackers, their addresses, and the addresses of the fullest one.

    `cpt` is what was used in the calendar month (UTC) `month`, and `cptIncluded` what the plan includes in it; null
    where it includes nothing.
    """

    webhooks: int
    addresses: int
    addresses_most: int
    month: str
    cpt: int
    cpt_included: int | None


class OwnPlan(Answer, frozen=True, kw_only=True):
    """The merchant's plan, and what is used of it in the mode of the key."""

    mode: str
    plan: PlanOffer
    used: PlanUsed


class Plans(Controller):
    """What merchants can have."""

    tags = ("Operator",)

    @get("/plans", summary="List plans", opt=permits("plans.read"))
    async def list(
        self, web: NamedDependency[Web], asked: NamedDependency[Asked], *, sort: TimeSort = Sort.OLDEST
    ) -> Response[PlanList]:
        """Return every plan, archived ones included. The built-in one is none of them."""
        async with web.db.transaction() as conn:
            default = plan_offer(await plans.default_plan(conn), web.limits)
        return await asked.of(web, "plans", "operator", sort=sort).answer(
            PlanList, plan_catalog.list_plans, default_plan=default
        )

    @post("/plans", status_code=201, summary="Make a plan", opt=permits("plans.change"))
    async def make(
        self,
        data: JSONBody[NewPlan],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        once: NamedDependency[Once],
    ) -> PlanAnswer:
        """Add a plan. With `isDefault` it is from now on the plan of all who were given no other."""
        async with web.db.transaction() as conn:
            await once.take(conn)
            made = await plan_catalog.make_plan(conn, web.gateway.registry, data, ids=web.ids, now=web.clock.now())
            await audit.record(conn, Action.PLAN_MADE, subject=made.plan_id, changed=sent(data))
            answer = await once.keep(conn, PlanAnswer(plan=made))
        web.key_cache.clear()
        return answer

    @patch("/plans/{plan_id:str}", summary="Change or archive a plan", opt=permits("plans.change"))
    async def change(
        self,
        plan_id: FromPath[str],
        data: JSONBody[ChangePlan],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> PlanAnswer:
        """Change what is sent, leave the rest, for everybody who has the plan.

        With a `version`, nothing is changed where somebody has changed the plan since: `VERSION_MISMATCH`.
        An archived plan is given to nobody any more; who has it keeps it. No plan is ever deleted.
        """
        async with web.db.transaction() as conn:
            changed = await plan_catalog.change_plan(conn, web.gateway.registry, plan_id, data, now=web.clock.now())
            await audit.record(conn, Action.PLAN_CHANGED, subject=plan_id, changed=sent(data))
        web.key_cache.clear()
        return PlanAnswer(plan=changed)

    @put("/merchants/{merchant_id:str}/plan", summary="Give a merchant a plan", opt=permits("merchants.plan"))
    async def give(
        self,
        merchant_id: FromPath[str],
        data: JSONBody[GivePlan],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> PlanGiven:
        """Give a merchant a plan, or with null the default one. It holds within a second, everywhere.

        With a smaller plan everything that exists stays, and nothing can be added.
        """
        async with web.db.transaction() as conn:
            plan = await plan_catalog.give_plan(conn, merchant_id, data.plan_id)
            told = {"name": plan.name, "default": data.plan_id is None}
            await audit.record(conn, Action.PLAN_GIVEN, subject=plan.plan_id, merchant_id=merchant_id, **told)
        web.key_cache.clear()
        return PlanGiven(merchant_id=merchant_id, plan=plan_offer(plan, web.limits))


class MerchantPlan(Controller):
    """What the merchant may use, and what is used in the mode of the key."""

    tags = ("Usage",)

    @get("/", summary="Read your plan", opt=needs("read"))
    async def read(self, actor: NamedDependency[Actor], web: NamedDependency[Web]) -> OwnPlan:
        """Return what your plan allows, and what is used of it in this mode."""
        now = web.clock.now()
        async with web.db.transaction() as conn:
            plan = await plans.plan_of(conn, actor.merchant_pk)
            used = await plans.use_of(conn, actor.merchant_pk, actor.mode)
            month = await cpt_months.read_month(conn, actor.merchant_pk, actor.mode, now)
        return OwnPlan(
            mode=actor.mode,
            plan=plan_offer(plan, web.limits),
            used=plan_used(used, month, now),
        )


def plan_used(used: plans.PlanUse, month: CptMonth, now: datetime) -> PlanUsed:
    """Show what is used of a plan."""
    return PlanUsed(
        webhooks=used.webhooks,
        addresses=used.addresses,
        addresses_most=used.addresses_most,
        month=f"{cpt_months.month_of(now):%Y-%m}",
        cpt=month.used,
        cpt_included=month.included,
    )


controllers = [
    admin_routes("/api/admin", Plans),
    key_routes("/api/merchant/plan", MerchantPlan),
    project_routes("/plan", MerchantPlan),
]
