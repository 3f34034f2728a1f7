"""Payouts: asked for alone or by the hundred, listed, read. The same handlers serve programs and people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import structlog
from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.bootstrap import exchange_context
from cambist.domain.money import format_units
from cambist.domain.payouts import Status
from cambist.services.actor import Actor
from cambist.services.audit.entries import Action
from cambist.services.idempotency import Made
from cambist.services.identity.projects import require_active
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.payouts import batch, create, read, with_swap
from cambist.services.payouts.batch import Batch
from cambist.services.payouts.batch_rows import Rejected
from cambist.services.payouts.read import PayoutRow, PayoutView, payout_view
from cambist.services.payouts.requests import BatchRequest, PayoutRequest, wants_swap
from cambist_web.auth import key_routes, needs, project_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.origin import Audit
from cambist_web.schemas import Answer, CursorPageAnswer, Filter, MadeAnswer, idempotency_header, made_response
from cambist_web.sending import cancel, payout_context, sent_on

log = structlog.get_logger(__name__)

IdempotencyKey = Annotated[str | None, idempotency_header("The same key never pays twice.")]
BatchFilter = Annotated[str | None, QueryParameter(name="batchId", max_length=64)]


class PayoutMade(MadeAnswer, frozen=True, kw_only=True):
    """A payout. `idempotent` is there, and true, where it was made before."""

    payout: PayoutView


class PayoutAnswer(Answer, frozen=True, kw_only=True):
    """A payout."""

    payout: PayoutView


class PayoutList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of payouts. `total` counts all pages."""

    payouts: Sequence[PayoutView]


class BatchView(Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of a batch's rows. `totalAmount` is what was debited for the accepted ones."""

    batch_id: str
    chain: str
    token: str
    total_amount: str
    accepted_rows: int
    rejected_rows: int
    replayed_rows: int
    created_at: datetime


class BatchMade(MadeAnswer, frozen=True, kw_only=True):
    """A batch: payouts in the order of their rows, and the rows that were refused alone."""

    batch: BatchView
    payouts: Sequence[PayoutView]
    rejected: Sequence[Rejected]


class BatchChecked(Answer, frozen=True, kw_only=True):
    """The rows that would be refused alone, in their order: none where all of them can be paid."""

    rejected: Sequence[Rejected]


def batch_view(batch: Batch) -> BatchView:
    return BatchView(
        batch_id=batch.batch_id,
        chain=batch.chain,
        token=batch.token,
        total_amount=format_units(batch.total, batch.decimals),
        accepted_rows=batch.accepted,
        rejected_rows=len(batch.rejected),
        replayed_rows=batch.replayed_rows,
        created_at=batch.created_at,
    )


class Payouts(Controller):
    """The payouts of one project, out of its merchant's wallet."""

    tags = ("Wallet",)

    @post("/payout", status_code=201, summary="Pay somebody", opt=needs("payouts", step_up=True))
    async def create(
        self,
        data: JSONBody[PayoutRequest],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        idempotency_key: IdempotencyKey = None,
    ) -> Response[PayoutMade]:
        """Debit the wallet and queue the payout. The recipient gets the amount whole: the platform pays the fee.

        With `srcChain`, `srcToken` and `srcAmount`, that is swapped or bridged on its way, and the recipient gets what
        comes of it, bounded by `slippage`. A repetition with the same idempotency key returns the first payout with
        status 200 and `idempotent`.
        """
        if wants_swap(data):
            made = await _pay_with_swap(web, audit, actor, data, idempotency_key)
        else:
            async with web.db.transaction() as conn:
                made = await create.create_payout(conn, payout_context(web), actor, data, idempotency_key)
                await _note(audit, conn, data, made)
            if not made.replayed:
                await sent_on(web, actor, made.resource.chain)
        answer = PayoutMade(payout=payout_view(made.resource, web.gateway.registry))
        return made_response(answer, replayed=made.replayed)

    @post("/payout/batch", status_code=201, summary="Pay many", opt=needs("payouts", step_up=True))
    async def create_batch(
        self,
        data: JSONBody[BatchRequest],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        idempotency_key: IdempotencyKey = None,
    ) -> Response[BatchMade]:
        """Pay every row that can be paid, or none where the balance does not cover them all.

        A row with a bad address or amount is refused alone. A row whose own key was used before returns that payout.
        """
        async with web.db.transaction() as conn:
            made = await batch.create_batch(conn, payout_context(web), actor, data, idempotency_key)
            if not made.replayed:
                total = batch_view(made).total_amount
                told = {"chain": data.chain, "token": data.token, "amount": total}
                await audit.record(conn, Action.BATCH_ASKED, subject=made.batch_id, payouts=made.accepted, **told)
        if made.accepted and not made.replayed:
            await sent_on(web, actor, made.chain)
        answer = BatchMade(
            batch=batch_view(made),
            payouts=[payout_view(payout, web.gateway.registry) for payout in made.payouts],
            rejected=made.rejected,
        )
        return made_response(answer, replayed=made.replayed)

    @post("/payout/batch/check", status_code=200, summary="Check many", opt=needs("payouts"))
    async def check_batch(
        self, data: JSONBody[BatchRequest], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> BatchChecked:
        """Say which rows would be refused alone, and why, before anything is paid.

        Addresses, tags, amounts and limits are judged as they would be now. Whether the balance covers them all, and
        what a row's own key did before, is not.
        """
        async with web.db.transaction() as conn:
            return BatchChecked(rejected=await batch.check_batch(conn, payout_context(web), actor, data))

    @get("/payouts", summary="List payouts", opt=needs("read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        status: Annotated[Status | None, QueryParameter()] = None,
        chain: Filter = None,
        token: Filter = None,
        batch_id: BatchFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[PayoutList]:
        """Return the project's payouts, its automatic ones among them."""

        async def found(conn: AsyncConnection, part: Part) -> Listed[PayoutView]:
            payouts = await read.list_payouts(
                conn,
                actor.project_pk,
                part,
                status=status,
                chain=chain,
                token=token,
                batch_id=batch_id,
                period=period,
            )
            return payouts.shown_as(lambda payout: payout_view(payout, web.gateway.registry))

        filters = status, chain, token, batch_id, period
        return await asked.of(web, "payouts", actor.project_pk, sort=sort, filters=filters).answer(PayoutList, found)

    @get("/payouts/{payout_id:str}", summary="Read a payout", opt=needs("read"))
    async def read(
        self, payout_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> PayoutAnswer:
        """Return how far the payout has come."""
        return await self._answer(web, actor, payout_id)

    @post("/payouts/{payout_id:str}/cancel", status_code=200, summary="Cancel a payout", opt=needs("payouts"))
    async def cancel(
        self,
        payout_id: FromPath[str],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> PayoutAnswer:
        """Cancel a payout that waits: it is not sent any more, and its money is available again a moment later.

        It is `cancelling` until then, and `cancelled` afterwards, which `payout.failed` tells. What is on its way
        already is refused with `ALREADY_SENT`. To cancel it again is no error.
        """
        async with web.db.transaction() as conn:
            await require_active(conn, actor)
            await read.find_payout(conn, actor.project_pk, payout_id)
            asked = await cancel(web, audit, conn, payout_id, actor.asked_by)
        await sent_on(web, actor, asked.chain)
        return await self._answer(web, actor, payout_id)

    async def _answer(self, web: Web, actor: Actor, payout_id: str) -> PayoutAnswer:
        async with web.db.autocommit() as conn:
            found = await read.find_payout(conn, actor.project_pk, payout_id)
        return PayoutAnswer(payout=payout_view(found, web.gateway.registry))


async def _pay_with_swap(
    web: Web, audit: Audit, actor: Actor, data: PayoutRequest, idempotency_key: str | None
) -> Made[PayoutRow]:
    """Ask for quotes between two transactions: no connection waits for somebody's server."""
    context = exchange_context(web.gateway)
    async with web.db.transaction() as conn:
        wanted = await with_swap.prepare_payout(conn, context, actor, data, idempotency_key)
    if isinstance(wanted, Made):
        return wanted
    offer = await with_swap.find_offer(context, wanted)
    async with web.db.transaction() as conn:
        made = await with_swap.start_payout(conn, context, wanted, offer)
        await _note(audit, conn, data, made)
    if made.resource.swap is not None and not made.replayed:
        await sent_on(web, actor, made.resource.swap.source_chain, "exchanges")
    return made


async def _note(audit: Audit, conn: AsyncConnection, data: PayoutRequest, made: Made[PayoutRow]) -> None:
    """Write into the audit log what was asked for, and not that it was asked for again."""
    if made.replayed:
        return
    told = {
        "chain": data.chain,
        "token": data.token,
        "amount": data.amount,
        "srcChain": data.src_chain,
        "srcToken": data.src_token,
        "srcAmount": data.src_amount,
        "toAddress": data.to_address,
        "toTag": data.to_tag,
    }
    said = {name: value for name, value in told.items() if value is not None}
    await audit.record(conn, Action.PAYOUT_ASKED, subject=made.resource.payout_id, **said)


controllers = [key_routes("/api/merchant/wallet", Payouts), project_routes("/wallet", Payouts)]
