"""What a page begins with: what happened over a time, what there is, and what needs attention."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from litestar import Controller, Response, get
from litestar.di import NamedDependency, Provide
from litestar.params import QueryParameter
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.bounded import bounded
from cambist.services.errors import ForbiddenError, InvalidError, UnavailableError
from cambist.services.identity import projects
from cambist.services.identity.sessions import SessionPrincipal
from cambist.services.overviews import attention, fees, holdings, operators
from cambist.services.overviews.attention import Attention, Whose
from cambist.services.overviews.fees import Fees
from cambist.services.overviews.holdings import Balances, Held
from cambist.services.overviews.spans import ZONE_CHARS_MAX, Span, Step, span_of
from cambist.services.overviews.turnover import Turnover, read_turnover
from cambist.services.pricing.price_points import CURRENCY
from cambist_web.auth import needs, session_routes
from cambist_web.context import Web
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, JsonAnswer, NonEmptyFilter, Since, Until

from .admin_jobs import asked_by

Mode = Literal["live", "sandbox"]
InMode = Annotated[Mode, QueryParameter(description="Whose money: live and sandbox are never summed together.")]
Zone = Annotated[
    str,
    QueryParameter(
        name="timeZone",
        description="In which days and hours begin, such as `Europe/Berlin`.",
        min_length=1,
        max_length=ZONE_CHARS_MAX,
    ),
]
StepParameter = Annotated[Step, QueryParameter(description="What the series is of: up to 366 days, or 744 hours.")]
Currency = Annotated[
    str, QueryParameter(description="Of all `fiat`: one of those that prices are kept in.", pattern="^[a-z]{3}$")
]


class Summed(Struct, frozen=True, kw_only=True):
    """What is summed up, and in which currency."""

    span: Span
    currency: str


class OverviewAnswer(Answer, frozen=True, kw_only=True):
    """What all overviews say of themselves: `since` is included, `until` is not."""

    mode: Mode
    currency: str
    since: datetime
    until: datetime
    time_zone: str
    step: Step
    turnover: Turnover
    attention: Sequence[Attention]


class MerchantOverview(OverviewAnswer, frozen=True, kw_only=True):
    """What came of a merchant's payments, what came in, what there is, and what needs the merchant's attention."""

    balances: Balances


class GatewayOverview(OverviewAnswer, frozen=True, kw_only=True):
    """The same of all merchants, with fees, what the gateway holds, and what needs an operator's attention."""

    exchange_fees: Fees
    network_fees: Fees
    held: Held


def _too_slow() -> UnavailableError:
    words = "There is too much in this time to sum it up at once. Ask for a shorter one."
    return UnavailableError("OVERVIEW_TOO_SLOW", words)


def kept_currencies(web: Web, wanted: str) -> Sequence[str]:
    """Return the currencies that prices are kept in. Raises InvalidError where the one that is wanted is none."""
    kept = sorted({CURRENCY, *web.settings.prices.snapshot_currencies})
    if wanted not in kept:
        raise InvalidError.field("currency", f"must be one of {', '.join(kept)}")
    return kept


async def provide_summed(  # noqa: PLR0913, PLR0917  every query parameter is one
    web: NamedDependency[Web],
    since: Since = None,
    until: Until = None,
    zone: Zone = "UTC",
    step: StepParameter = Step.DAY,
    currency: Currency = CURRENCY,
) -> Summed:
    """Read what both overviews take. Raises InvalidError."""
    kept_currencies(web, currency)
    return Summed(span=span_of(since, until, zone, step, web.clock.now()), currency=currency)


class OwnOverview(Controller):
    tags = ("Wallet",)
    dependencies = {"summed": Provide(provide_summed)}  # noqa: RUF012  the framework's way

    @get("/", summary="Read your overview", opt=needs(member="read"))
    async def read(
        self,
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        summed: NamedDependency[Summed],
        *,
        mode: InMode = "live",
        project: NonEmptyFilter = None,
    ) -> Response[MerchantOverview]:
        """Return what happened within a time, day by day or hour by hour, what there is, and what needs attention.

        Of the projects that are open to you, or of one of them. Balances are the merchant's as a whole.
        """
        await web.limiter.take(web.limits.overviews, str(session.merchant_pk))
        now, settings = web.clock.now(), await web.platform.get()
        async with web.overviews, web.db.transaction() as conn, bounded(conn, _too_slow()):
            whose = await _whose(conn, session, mode, project)
            answer = MerchantOverview(
                mode=mode,
                currency=summed.currency,
                since=summed.span.since,
                until=summed.span.until,
                time_zone=summed.span.zone,
                step=summed.span.step,
                turnover=await read_turnover(conn, summed.span, mode, summed.currency, whose),
                attention=await attention.of_merchant(conn, whose, settings, now),
                balances=await holdings.balances_of(
                    conn, web.gateway.registry, session.merchant_pk, mode, summed.currency, now
                ),
            )
        return JsonAnswer(answer)


async def _whose(conn: AsyncConnection, session: SessionPrincipal, mode: Mode, project: str | None) -> Whose:
    """Return what is summed up for a member. Raises NotFoundError and ForbiddenError for a project."""
    if project is None:
        if session.project_pks is not None and mode not in await projects.modes_of(conn, session.project_pks):
            # Balances are the merchant's as a whole: who has no project of this mode reads none of them.
            words = f"No {mode} project is open to you. An owner or admin can change that."
            raise ForbiddenError("PROJECT_NOT_OPEN", words)
        return Whose(merchant_pk=session.merchant_pk, mode=mode, project_pks=session.project_pks)
    actor = await projects.authorize(conn, session, project)
    if actor.mode != mode:
        raise InvalidError.field("project", f"is a {actor.mode} project")
    return Whose(merchant_pk=session.merchant_pk, mode=mode, project_pks=[actor.project_pk])


class WholeOverview(Controller):
    tags = ("Operator",)
    dependencies = {"summed": Provide(provide_summed)}  # noqa: RUF012  the framework's way

    @get("/", summary="Read the gateway's overview", opt=permits("overview.read"))
    async def read(
        self,
        web: NamedDependency[Web],
        summed: NamedDependency[Summed],
        audit: NamedDependency[Audit],
        *,
        mode: InMode = "live",
    ) -> Response[GatewayOverview]:
        """Return what happened at all merchants within a time, fees, what the gateway holds, what needs attention."""
        await web.limiter.take(web.limits.overviews, asked_by(audit))
        now, registry = web.clock.now(), web.gateway.registry
        span, currency = summed.span, summed.currency
        async with web.overviews, web.db.transaction() as conn, bounded(conn, _too_slow()):
            answer = GatewayOverview(
                mode=mode,
                currency=currency,
                since=span.since,
                until=span.until,
                time_zone=span.zone,
                step=span.step,
                turnover=await read_turnover(conn, span, mode, currency),
                attention=await operators.of_operators(conn, mode, now),
                exchange_fees=await fees.exchange_fees(conn, span, mode, currency),
                network_fees=await fees.network_fees(conn, registry, span, mode, currency),
                held=await holdings.held_by_all(conn, registry, mode, currency, now),
            )
        return JsonAnswer(answer)


controllers = [
    session_routes("/api/dashboard/overview", OwnOverview),
    admin_routes("/api/admin/overview", WholeOverview),
]
