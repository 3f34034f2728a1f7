"""A project's payments: made, listed, read. The same handlers serve programs and people."""

from __future__ import annotations

from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter

from cambist.domain.payments import Status
from cambist.services.actor import Actor
from cambist.services.paging import LIMIT
from cambist.services.receiving.payments import create, read
from cambist.services.receiving.payments.create import PaymentContext
from cambist.services.receiving.payments.requests import CreatePayment
from cambist_web.context import Web
from cambist_web.parameters import Filter, Limit, Page, idempotency_header
from cambist_web.schemas import made_response

from .schemas import PaymentAnswer, PaymentList, PaymentMade, ReceiptLinks

IdempotencyKey = Annotated[str | None, idempotency_header("The same key never makes a second payment.")]


def _context(web: Web) -> PaymentContext:
    gateway = web.gateway
    return PaymentContext(
        db=gateway.db,
        registry=gateway.registry,
        rates=gateway.rates,
        leaser=gateway.leaser,
        platform=web.platform,
        clock=gateway.clock,
        ids=gateway.ids,
        allow_private_targets=gateway.settings.webhooks.allow_private_targets,
    )


def checkout_url(web: Web, public_id: str) -> str:
    """Return where the customer pays."""
    return f"{web.settings.web.base_url}/pay/{public_id}"


class Payments(Controller):
    """The payments of one project."""

    tags = ("Payments",)

    @post("/", status_code=201, summary="Make a payment")
    async def create(
        self,
        data: JSONBody[CreatePayment],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        idempotency_key: IdempotencyKey = None,
    ) -> Response[PaymentMade]:
        """Return a payment with an address of its own, and the page on which the customer pays.

        A repetition with the same idempotency key returns the first payment with status 200 and `idempotent`.
        """
        made = await create.create_payment(_context(web), actor, data, idempotency_key)
        answer = PaymentMade(payment=made.payment, checkout_url=checkout_url(web, made.payment.public_id))
        return made_response(answer, replayed=made.replayed)

    @get("/", summary="List payments")
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        *,
        status: Annotated[Status | None, QueryParameter()] = None,
        chain: Filter = None,
        page: Page = 1,
        limit: Limit = LIMIT,
    ) -> PaymentList:
        """Return the project's payments, newest first."""
        async with web.db.transaction() as conn:
            found = await read.list_payments(conn, actor.project_pk, status=status, chain=chain, page=page, limit=limit)
        return PaymentList(payments=found.items, page=page, limit=limit, total=found.total)

    @get("/{payment_id:str}", summary="Read a payment")
    async def read(
        self, payment_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> PaymentAnswer:
        """Return the payment in full, with the customer's data and the transfers to its address."""
        async with web.db.autocommit() as conn:
            return PaymentAnswer(payment=await read.get_payment(conn, actor.project_pk, payment_id))

    @get("/{payment_id:str}/receipt-links", summary="Read a payment's links")
    async def links(
        self, payment_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> ReceiptLinks:
        """Return the pages to send the customer to."""
        async with web.db.autocommit() as conn:
            found = await read.get_links(conn, actor.project_pk, payment_id)
        return ReceiptLinks(
            payment_id=found.payment_id,
            public_id=found.public_id,
            status=found.status,
            receipt_url=f"{web.settings.web.base_url}/receipt/{found.public_id}",
            checkout_url=checkout_url(web, found.public_id),
        )
