"""Webhooks of all merchants, for operators: what fails and waits, receivers in trouble, sending again in bulk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta, to_builtins
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.webhooks import TOLD
from cambist.services.audit.entries import Action
from cambist.services.errors import FieldProblem, InvalidError
from cambist.services.identity import projects
from cambist.services.identity.merchants import find_pk
from cambist.services.jobs import requests
from cambist.services.jobs.requests import Kind, NewJob
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.webhooks import all_deliveries, endpoints, redelivery
from cambist.services.webhooks.all_deliveries import (
    DeliveryFilters,
    DeliveryOfMerchant,
    FailingTarget,
    OperatorDelivery,
    Status,
)
from cambist.services.webhooks.bulk import Failed
from cambist.services.webhooks.redelivery import REDELIVERED_MAX
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.once import Once
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, CursorPageAnswer, NonEmptyFilter

from .admin_jobs import JobAnswer, ask_for, asked_by, job_view
from .deliveries import EventName
from .events import FailedSince

BULK_MAX = 100_000
"""Deliveries that one job may start."""

PublicId = Annotated[str, Meta(min_length=1, max_length=64)]
StatusFilter = Annotated[Status | None, QueryParameter()]
MerchantFilter = Annotated[str | None, QueryParameter(name="merchantId", min_length=1, max_length=64)]
ProjectFilter = Annotated[str | None, QueryParameter(name="projectId", min_length=1, max_length=64)]
EndpointFilter = Annotated[str | None, QueryParameter(name="endpointId", min_length=1, max_length=64)]


class OperatorDeliveryList(CursorPageAnswer, frozen=True, kw_only=True):
    """A page of deliveries."""

    deliveries: Sequence[OperatorDelivery]


class OperatorDeliveryDetail(Answer, frozen=True, kw_only=True):
    """One delivery of anybody's."""

    delivery: DeliveryOfMerchant


class FailingList(CursorPageAnswer, frozen=True, kw_only=True):
    """A page of receivers in trouble, the one that has failed for longest first."""

    endpoints: Sequence[FailingTarget]


class RedeliverMany(FailedSince, frozen=True, kw_only=True):
    """What is meant: what reached nobody, from `since`, included, to `until`, not included, of whom it names.

    At most `limit` are started, the oldest first.
    """

    merchant_id: PublicId | None = None
    project_id: PublicId | None = None
    endpoint_id: PublicId | None = None
    events: Annotated[Sequence[EventName], Meta(max_length=50)] = ()
    limit: Annotated[int, Meta(ge=1, le=BULK_MAX)] = REDELIVERED_MAX

    def failed(self) -> Failed:
        """Return which deliveries that is. Raises InvalidError."""
        since, until = self.moments()
        return Failed(
            since=since,
            until=until,
            merchant_id=self.merchant_id,
            project_id=self.project_id,
            endpoint_id=self.endpoint_id,
            events=sorted(set(self.events)),
            most=self.limit,
        )


class AllWebhooks(Controller):
    tags = ("Operator",)

    @get("/deliveries", summary="List everybody's deliveries", opt=permits("webhooks.read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        status: StatusFilter = None,
        merchant_id: MerchantFilter = None,
        project_id: ProjectFilter = None,
        endpoint_id: EndpointFilter = None,
        event: NonEmptyFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[OperatorDeliveryList]:
        """Return the deliveries of all merchants. `failing` are those that are tried again."""
        wanted = DeliveryFilters(
            status=status, merchant_id=merchant_id, project_id=project_id, endpoint_id=endpoint_id, event=event
        )

        async def found(conn: AsyncConnection, part: Part) -> Listed[OperatorDelivery]:
            return await all_deliveries.list_deliveries(conn, wanted, period, part)

        query = asked.of(web, "deliveries", "operator", sort=sort, filters=(wanted, period))
        return await query.answer(OperatorDeliveryList, found)

    @get("/deliveries/{delivery_id:str}", summary="Read anybody's delivery", opt=permits("webhooks.read"))
    async def read(self, delivery_id: FromPath[str], web: NamedDependency[Web]) -> OperatorDeliveryDetail:
        """Return one delivery with whose it is, its body and its attempts."""
        async with web.db.transaction() as conn:
            return OperatorDeliveryDetail(delivery=await all_deliveries.get_delivery(conn, delivery_id))

    @post(
        "/deliveries/{delivery_id:str}/redeliver",
        status_code=200,
        summary="Send anybody's delivery again",
        opt=permits("webhooks.redeliver"),
    )
    async def redeliver_one(
        self,
        delivery_id: FromPath[str],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        once: NamedDependency[Once],
    ) -> OperatorDeliveryDetail:
        """Make the delivery due at once, with a fresh set of attempts. 409 while it is still being delivered."""
        async with web.db.transaction() as conn:
            is_new = await once.take(conn)
            if is_new:
                await redelivery.redeliver(conn, None, delivery_id, now=web.clock.now())
            found = await all_deliveries.get_delivery(conn, delivery_id)
            if is_new:
                whose = audit.about(found.merchant_id, found.project_id)
                await whose.record(conn, Action.DELIVERY_SENT_AGAIN, subject=delivery_id, event=found.event)
        await web.gateway.hints.publish("webhooks")
        return OperatorDeliveryDetail(delivery=found)

    @get("/failing", summary="List failing receivers", opt=permits("webhooks.read"))
    async def failing(
        self, web: NamedDependency[Web], asked: NamedDependency[Asked], *, merchant_id: MerchantFilter = None
    ) -> Response[FailingList]:
        """Return the receivers that fail now, since when, and what they answered last.

        Of those that the oldest 20,000 failing deliveries fail at: `totalIsExact` says whether these are all.
        """
        query = asked.of(web, "failing-webhooks", "operator", sort="failingSince", filters=merchant_id)
        return await query.answer(
            FailingList, lambda conn, part: all_deliveries.list_failing(conn, part, merchant_id=merchant_id)
        )

    @post("/redeliver", status_code=201, summary="Send again in bulk", opt=permits("webhooks.redeliver"))
    async def redeliver(
        self,
        data: JSONBody[RedeliverMany],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        once: NamedDependency[Once],
    ) -> JobAnswer:
        """Have a worker send again what was dropped, and what had no target then and has one now.

        Ids and bodies stay, so receivers know what they have heard of. While the same is being done, the answer is
        that job.
        """
        failed = data.failed()
        arguments = to_builtins(failed)
        async with web.db.transaction() as conn:
            await once.take(conn)
            await _check_named(conn, failed)
            new = NewJob(
                kind=Kind.WEBHOOK_REDELIVERY,
                arguments=arguments,
                requested_by=asked_by(audit),
                unique_key=" ".join(f"{name}={value}" for name, value in sorted(arguments.items())),
            )
            job = await ask_for(conn, web, audit, new)
            answer = await once.keep(conn, JobAnswer(job=job_view(job, web.clock.now())))
        await web.gateway.hints.publish(requests.TOPIC)
        return answer


async def _check_named(conn: AsyncConnection, failed: Failed) -> None:
    """Raise NotFoundError for what nobody has, or another: a misspelt one must not look as if all were well.

    InvalidError for the name of no event.
    """
    for event in failed.events:
        if event not in TOLD:
            problem = FieldProblem("events", "names what is no webhook event")
            raise InvalidError("INVALID_EVENT", f"{event!r} is no webhook event.", [problem])
    merchant_pk = None if failed.merchant_id is None else await find_pk(conn, failed.merchant_id)
    project_pk = None
    if failed.project_id is not None:
        project_pk = await projects.find_pk(conn, failed.project_id, merchant_pk)
    if failed.endpoint_id is not None:
        await endpoints.check_exists(conn, failed.endpoint_id, project_pk=project_pk, merchant_pk=merchant_pk)


controllers = [admin_routes("/api/admin/webhooks", AllWebhooks)]
