"""Merchants for operators: the list, a merchant with all that it has and may, and its own limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from litestar import Controller, Response, Router, get, put
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta, Struct

from cambist.services import platform
from cambist.services.accounting import cpt_months, tokens, usage
from cambist.services.accounting.usage import MODES
from cambist.services.audit.entries import Action
from cambist.services.identity import merchants, plans
from cambist.services.identity.team import MemberView
from cambist.services.listing import Period, Sort
from cambist.services.outgoing_limits import MerchantLimit, check_own_room
from cambist.services.oversight import merchants as pages
from cambist.services.oversight.merchants import MerchantDetail, MerchantRow, ProjectRow, Wanted
from cambist.services.overviews import attention
from cambist.services.overviews.attention import Attention
from cambist.services.platform import LIMITS_MAX, check_limits
from cambist.services.versions import Version
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body, CursorPageAnswer, NonEmptyFilter, sent

from .plans import PlanUsed, plan_used
from .usage import PlanOffer, SystemCredit, plan_offer, system_credit
from .wallets import BalanceView, balance_view

Search = Annotated[
    str | None,
    QueryParameter(
        description="An id of the merchant, a project or a member, or a part of a name or an e-mail address.",
        min_length=1,
        max_length=200,
    ),
]


class MerchantList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of merchants."""

    merchants: Sequence[MerchantRow]


class ModeStanding(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a merchant has and uses in one mode, and what needs somebody's attention there."""

    mode: str
    balances: Sequence[BalanceView]
    credits: SystemCredit
    used: PlanUsed
    attention: Sequence[Attention]


class MerchantPage(Answer, frozen=True, kw_only=True):
    """All of a merchant. `limits` are its own, by `<chain>/<SYMBOL>`; what is not in them holds as for everybody.

    `limitsVersion` goes along where they are set.
    """

    merchant: MerchantRow
    members: Sequence[MemberView]
    projects: Sequence[ProjectRow]
    plan: PlanOffer
    limits: Mapping[str, MerchantLimit]
    limits_version: int
    modes: Sequence[ModeStanding]


class SetLimits(Body, frozen=True, kw_only=True):
    """What may leave this merchant's wallet in one transaction and in a day, by `<chain>/<SYMBOL>`. Replaced whole.

    `version` is the `limitsVersion` of the merchant that was read.
    """

    version: Version
    limits: Annotated[Mapping[str, MerchantLimit], Meta(max_length=LIMITS_MAX)]


class LimitsSet(Answer, frozen=True, kw_only=True):
    """The limits that are a merchant's own, and their version."""

    merchant_id: str
    limits: Mapping[str, MerchantLimit]
    version: int


class MerchantPages(Controller):
    tags = ("Operator",)

    @get("/merchants", summary="List merchants", opt=permits("merchants.read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        search: Search = None,
        is_live: Annotated[bool | None, QueryParameter(name="isLive")] = None,
        is_suspended: Annotated[bool | None, QueryParameter(name="isSuspended")] = None,
        plan: NonEmptyFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[MerchantList]:
        """Return merchants. `plan` is a plan's id: who was given none has the default one."""
        wanted = Wanted(search=search, live=is_live, suspended=is_suspended, plan_id=plan, period=period)
        query = asked.of(web, "merchants", sort=sort, filters=wanted)
        return await query.answer(MerchantList, lambda conn, part: pages.list_merchants(conn, wanted, part))

    @get("/merchants/{merchant_id:str}", summary="Read a merchant", opt=permits("merchants.read"))
    async def read(self, merchant_id: FromPath[str], web: NamedDependency[Web]) -> MerchantPage:
        """Return a merchant with members, projects, plan and limits, and in each mode its money and credits."""
        async with web.db.transaction() as conn:
            detail = await pages.read_merchant(conn, merchant_id)
        modes = [await _standing(web, detail, mode) for mode in MODES]
        async with web.db.transaction() as conn:
            plan = await plans.plan_of(conn, detail.pk)
        return MerchantPage(
            merchant=detail.row,
            members=detail.members,
            projects=detail.projects,
            plan=plan_offer(plan, web.limits),
            limits=detail.limits,
            limits_version=detail.limits_version,
            modes=modes,
        )

    @put("/merchants/{merchant_id:str}/limits", summary="Set a merchant's own limits", opt=permits("merchants.limits"))
    async def limit(
        self,
        merchant_id: FromPath[str],
        data: JSONBody[SetLimits],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> LimitsSet:
        """Replace the limits that hold for this merchant in the place of everybody's. An empty map takes them away.

        Where somebody has changed them since `version` was read, nothing is changed: `VERSION_MISMATCH`.
        """
        check_limits(data.limits, web.gateway.registry)
        async with web.db.transaction() as conn:
            check_own_room((await platform.load(conn)).limits, data.limits)
            version = await merchants.set_limits(conn, merchant_id, data.limits, version=data.version)
            told = {"changed": sent(data)}
            await audit.record(conn, Action.MERCHANT_LIMITS_SET, subject=merchant_id, merchant_id=merchant_id, **told)
        return LimitsSet(merchant_id=merchant_id, limits=data.limits, version=version)


async def _standing(web: Web, detail: MerchantDetail, mode: str) -> ModeStanding:
    now, settings = web.clock.now(), await web.platform.get()
    async with web.db.transaction() as conn:
        balances = await tokens.balances(conn, web.gateway.registry, detail.pk, mode)
        left = await usage.balance(conn, detail.pk, mode)
        used = await plans.use_of(conn, detail.pk, mode)
        month = await cpt_months.read_month(conn, detail.pk, mode, now)
        needs = await attention.of_merchant(conn, attention.Whose(merchant_pk=detail.pk, mode=mode), settings, now)
    return ModeStanding(
        mode=mode,
        balances=[balance_view(one) for one in balances],
        credits=system_credit(left, settings, mode),
        used=plan_used(used, month, now),
        attention=needs,
    )


controllers: Sequence[Router] = ()
"""Mounted by ``admin_merchants.py``: what shares a path has to be in one router."""
