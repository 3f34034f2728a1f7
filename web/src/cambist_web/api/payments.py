"""A project's payments: made, listed, read, priced again; and a payment as anybody sees it who has its link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter

from cambist.domain.payments import Status
from cambist.services.actor import Actor
from cambist.services.listing import Period, Sort
from cambist.services.receiving.payments import create, read
from cambist.services.receiving.payments.create import PaymentContext
from cambist.services.receiving.payments.read import Filters, get_public
from cambist.services.receiving.payments.recalculate import Recalculate, fetch_rate, recalculate
from cambist.services.receiving.payments.requests import CreatePayment
from cambist.services.receiving.payments.views import PaymentDetail, PaymentView, PublicPayment
from cambist_web.auth import key_routes, needs, project_routes, public_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.schemas import (
    Answer,
    CursorPageAnswer,
    Filter,
    MadeAnswer,
    idempotency_header,
    made_response,
)

OrderFilter = Annotated[str | None, QueryParameter(name="orderId", min_length=1, max_length=255)]
AmountFilter = Annotated[str | None, QueryParameter(description="As it was asked for.", min_length=1, max_length=160)]
IdempotencyKey = Annotated[str | None, idempotency_header("The same key never makes a second payment.")]


class PaymentMade(MadeAnswer, frozen=True, kw_only=True):
    """A payment, and where its customer pays. `idempotent` is there, and true, where it was made before."""

    payment: PaymentView
    checkout_url: str


class PaymentList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of payments. `total` counts all pages."""

    payments: Sequence[PaymentView]


class PaymentAnswer(Answer, frozen=True, kw_only=True):
    """A payment in full."""

    payment: PaymentDetail


class PaymentChanged(Answer, frozen=True, kw_only=True):
    """A payment after something was done with it."""

    payment: PaymentView


class ReceiptLinks(Answer, frozen=True, kw_only=True):
    """Pages to send a customer to."""

    payment_id: str
    public_id: str
    status: str
    receipt_url: str
    checkout_url: str


class PublicAnswer(Answer, frozen=True, kw_only=True):
    """A payment as its customer sees it."""

    payment: PublicPayment


def _context(web: Web) -> PaymentContext:
    gateway = web.gateway
    return PaymentContext(
        db=gateway.db,
        registry=gateway.registry,
        pauses=gateway.pauses,
        token_rules=gateway.token_rules,
        rates=gateway.rates,
        leaser=gateway.leaser,
        platform=web.platform,
        clock=gateway.clock,
        ids=gateway.ids,
        macs=web.macs,
        targets=gateway.settings.webhook_targets,
    )


def checkout_url(web: Web, public_id: str) -> str:
    return f"{web.settings.web.base_url}/pay/{public_id}"


class Payments(Controller):
    tags = ("Payments",)

    @post("/", status_code=201, summary="Make a payment", opt=needs("payments"))
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

    @get("/", summary="List payments", opt=needs("read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        status: Annotated[Status | None, QueryParameter()] = None,
        chain: Filter = None,
        order_id: OrderFilter = None,
        amount: AmountFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[PaymentList]:
        """Return the project's payments. `from` and `to` are about when they were made."""
        wanted = Filters(
            status=status,
            chain=chain,
            order_id=order_id,
            since=period.since,
            until=period.until,
            amount=amount,
        )
        query = asked.of(web, "payments", actor.project_pk, sort=sort, filters=wanted)
        return await query.answer(
            PaymentList, lambda conn, part: read.list_payments(conn, actor.project_pk, web.macs, wanted, part)
        )

    @get("/{payment_id:str}", summary="Read a payment", opt=needs("read"))
    async def read(
        self, payment_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> PaymentAnswer:
        """Return the payment in full, with the customer's data and the transfers to its address."""
        async with web.db.autocommit() as conn:
            return PaymentAnswer(payment=await read.get_payment(conn, actor.project_pk, payment_id, web.macs))

    @get("/{payment_id:str}/receipt-links", summary="Read a payment's links", opt=needs("read"))
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


class PaymentsInPerson(Controller):
    tags = ("Payments",)

    @post(
        "/{payment_id:str}/recalculate",
        status_code=200,
        summary="Refresh an expired payment's rate",
        opt=needs("payments"),
    )
    async def recalculate(
        self,
        payment_id: FromPath[str],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        data: JSONBody[Recalculate | None] = None,
    ) -> PaymentChanged:
        """Open an expired fiat payment again: what remains of it is priced at the rate of now."""
        gateway = web.gateway
        chains, token_rules, rates = gateway.registry.chains, gateway.token_rules, gateway.rates
        await fetch_rate(web.db, actor, payment_id, chains=chains, token_rules=token_rules, rates=rates)
        async with web.db.transaction() as conn:
            payment = await recalculate(
                conn,
                actor,
                payment_id,
                data or Recalculate(),
                chains=chains,
                token_rules=token_rules,
                rates=rates,
                clock=gateway.clock,
                ids=gateway.ids,
                macs=web.macs,
            )
        await gateway.hints.publish("webhooks", f"payment:{payment.public_id}")
        return PaymentChanged(payment=payment)


class PublicPayments(Controller):
    tags = ("Payments",)

    @get("/{public_id:str}", summary="Read a payment as its customer")
    async def read(self, public_id: FromPath[str], web: NamedDependency[Web]) -> PublicAnswer:
        """Return what to pay and where, and the transfers that have come, without anything about who pays."""
        return PublicAnswer(payment=await get_public(web.db, web.gateway.registry.chains, public_id, web.macs))


controllers = [
    key_routes("/api/payment", Payments),
    project_routes("/payments", Payments, PaymentsInPerson),
    public_routes("/api/payment/public", PublicPayments),
]
