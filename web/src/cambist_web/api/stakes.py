"""What the operator stakes of the platform's own coin, so that fees need not be burned."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.failures import Failure, code_of
from cambist.domain.money import format_units
from cambist.registry import Registry
from cambist.services.audit.entries import Action
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.pricing.quotes import AmountText, Name
from cambist.services.sending.gas import stakes
from cambist.services.sending.gas.stakes import StakeAction, StakeRequest
from cambist.services.sending.queue.reasons import sentence_of
from cambist.services.supported import find_chain
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Body, CursorPageAnswer, MadeAnswer, NonEmptyFilter, made_response


class StakeBody(Body, frozen=True, kw_only=True):
    """A change of the gas station's stake. `withdraw` takes back all that can be, and needs no `amount`.

    The same `idempotencyKey` never changes it twice.
    """

    chain: Name
    action: StakeAction
    amount: AmountText | None = None
    idempotency_key: str | None = None


class StakeView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A change that was asked for. `status` is `waiting` (`waitsFor` says why), `sending`, `done` or `failed`.

    `waitsForText` and `error` are sentences, `waitsFor` and `errorCode` the same for programs.
    """

    stake_id: str
    chain: str
    action: StakeAction
    token: str
    amount: str
    status: str
    waits_for: str | None
    waits_for_text: str | None
    error: str | None
    error_code: Failure | None
    tx_hash: str | None
    created_at: datetime
    finished_at: datetime | None


class StakeAsked(MadeAnswer, frozen=True, kw_only=True):
    """The change that was asked for."""

    stake: StakeView


class StakeList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of the changes that were asked for."""

    stakes: Sequence[StakeView]


def stake_view(registry: Registry, request: StakeRequest) -> StakeView:
    chain = registry.chains.get(request.chain)
    symbol, decimals = ("", 0) if chain is None else (chain.native.symbol, chain.native.decimals)
    waits_for = request.reason if request.state == "waiting" else None
    error = request.reason if request.state == "failed" else None
    return StakeView(
        stake_id=request.reference,
        chain=request.chain,
        action=request.action,
        token=symbol,
        amount=format_units(request.units, decimals),
        status=request.state,
        waits_for=waits_for,
        waits_for_text=None if waits_for is None else sentence_of(waits_for),
        error=error,
        error_code=code_of(error),
        tx_hash=request.tx_id,
        created_at=request.created_at,
        finished_at=request.finished_at,
    )


class Stakes(Controller):
    tags = ("Operator",)

    @post("/", status_code=201, summary="Change a stake", opt=permits("stakes.change"))
    async def change(
        self, data: JSONBody[StakeBody], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> Response[StakeAsked]:
        """Have the gas station `stake` coin, `unstake` it, or `withdraw` what has waited long enough.

        It is sent by the worker, as everything is; one change at a time. A repetition with the same idempotency key
        returns the first change with status 200 and `idempotent`.
        """
        registry = web.gateway.registry
        info = find_chain(registry.chains, data.chain)
        units = stakes.read_amount(info, data.action, data.amount)
        async with web.db.transaction() as conn:
            made = await stakes.request_stake(
                conn, web.gateway.ids, info, data.action, units, web.clock.now(), key=data.idempotency_key
            )
            change = await stakes.read_stake_request(conn, made.resource)
            if not made.replayed:
                told = {"chain": info.id, "stake": str(data.action), "amount": data.amount}
                await audit.record(conn, Action.STAKE_ASKED, subject=made.resource, **told)
        if not made.replayed:
            await web.gateway.hints.publish("outbound")
        return made_response(StakeAsked(stake=stake_view(registry, change)), replayed=made.replayed)

    @get("/", summary="List changes of stakes", opt=permits("money.read"))
    async def list(
        self,
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        chain: NonEmptyFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[StakeList]:
        """Return the changes that were asked for. What is staked now is told with the gas stations."""

        async def found(conn: AsyncConnection, part: Part) -> Listed[StakeView]:
            requests = await stakes.list_stake_requests(conn, chain, part, period)
            return requests.shown_as(partial(stake_view, web.gateway.registry))

        query = asked.of(web, "stakes", "operator", sort=sort, filters=(chain, period))
        return await query.answer(StakeList, found)


controllers = [admin_routes("/api/admin/stakes", Stakes)]
