"""Money on addresses that no collection takes to a main wallet yet: why, and that it is collected now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.collections import UncollectedReason
from cambist.services.audit.entries import Action
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.oversight.finding import spellings
from cambist.services.sending.collections import explaining
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body, CursorPageAnswer, NonEmptyFilter
from cambist_web.uncollected_views import (
    AtAddressView,
    UncollectedSumView,
    UncollectedView,
    at_address,
    sum_view,
    uncollected_view,
)

from .admin_webhooks import MerchantFilter

ReasonFilter = Annotated[UncollectedReason | None, QueryParameter()]


class UncollectedList(CursorPageAnswer, frozen=True, kw_only=True):
    """A page of what is not collected."""

    uncollected: Sequence[UncollectedView]


class UncollectedSums(Answer, frozen=True, kw_only=True):
    """What is not collected, summed up."""

    sums: Sequence[UncollectedSumView]


class UncollectedAnswer(Answer, frozen=True, kw_only=True):
    """What is not collected."""

    uncollected: UncollectedView


class AddressMoney(Answer, frozen=True, kw_only=True):
    """All that is at an address and in no main wallet yet, by chain and token."""

    deposits: Sequence[AtAddressView]


class CollectNow(Body, frozen=True, kw_only=True):
    """How much of it the fee may be, in hundredths of a percent: less than all. The rule's share where left out."""

    max_fee_share_bps: Annotated[int, Meta(ge=0, le=9_999)] | None = None


class UncollectedMoney(Controller):
    tags = ("Operator",)

    @get("/uncollected", summary="List what is not collected", opt=permits("money.read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        merchant_id: MerchantFilter = None,
        chain: NonEmptyFilter = None,
        token: NonEmptyFilter = None,
        reason: ReasonFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[UncollectedList]:
        """Return confirmed money of all merchants on addresses of live chains, and why it was not collected yet."""

        async def read(conn: AsyncConnection, part: Part) -> Listed[UncollectedView]:
            wanted = {"merchant_id": merchant_id, "chain": chain, "token": token}
            found = await explaining.list_uncollected(conn, part, reason=reason, period=period, **wanted)
            return found.shown_as(lambda row: uncollected_view(row, pauses))

        pauses = await web.gateway.pauses.get()
        filters = (merchant_id, chain, token, reason, period)
        query = asked.of(web, "uncollected", "operator", sort=sort, filters=filters)
        return await query.answer(UncollectedList, read)

    @get("/uncollected/sums", summary="Sum up what is not collected", opt=permits("money.read"))
    async def sums(self, web: NamedDependency[Web]) -> UncollectedSums:
        """Return how much of each token stays on addresses of each live chain, and for which reason."""
        async with web.db.autocommit() as conn:
            found = await explaining.sum_uncollected(conn)
        return UncollectedSums(sums=[sum_view(one) for one in found])

    @post(
        "/uncollected/{uncollected_id:str}/collect",
        status_code=200,
        summary="Collect it now",
        opt=permits("collections.ask"),
    )
    async def collect(
        self,
        uncollected_id: FromPath[str],
        data: JSONBody[CollectNow],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> UncollectedAnswer:
        """Have it collected at the engine's next check, whatever its size and age, or switched off or failed before.

        As that check finds them, the fee may be `maxFeeShareBps` of it at most, and is never as much as it is worth. If
        it would be more, it stays: `askedAt` is null again, and `refusal` says why. Where a check cannot answer,
        `wishWaitsFor` says why, and it is looked at again. Once it is on its way there is nothing here any more, and a
        repetition changes nothing; then the chain's ceiling bounds its fee, as any other.
        """
        async with web.db.transaction() as conn:
            found, is_new = await explaining.ask(conn, uncollected_id, data.max_fee_share_bps, web.clock.now())
            if is_new:
                told = {"chain": found.chain, "address": found.address, "max_fee_share_bps": data.max_fee_share_bps}
                await audit.record(
                    conn, Action.COLLECTION_ASKED, subject=uncollected_id, merchant_id=found.merchant_id, **told
                )
        await web.gateway.hints.publish("outbound")
        return UncollectedAnswer(uncollected=uncollected_view(found, await web.gateway.pauses.get()))

    @delete(
        "/uncollected/{uncollected_id:str}/collect",
        status_code=200,
        summary="Take the wish back",
        opt=permits("collections.ask"),
    )
    async def withdraw(
        self, uncollected_id: FromPath[str], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> UncollectedAnswer:
        """Have it wait for its turn again, as if nobody had wanted it: it is collected when that is worth it.

        What an engine is judging meanwhile is not collected for the wish either. Once it is on its way there is nothing
        here any more; where nobody wants it, this changes nothing.
        """
        async with web.db.transaction() as conn:
            found, was_asked = await explaining.withdraw(conn, uncollected_id)
            if was_asked:
                told = {"chain": found.chain, "address": found.address}
                await audit.record(
                    conn, Action.COLLECTION_WITHDRAWN, subject=uncollected_id, merchant_id=found.merchant_id, **told
                )
        return UncollectedAnswer(uncollected=uncollected_view(found, await web.gateway.pauses.get()))

    @get("/addresses/{address:str}", summary="Read what is at an address", opt=permits("money.read"))
    async def read(self, address: FromPath[str], web: NamedDependency[Web]) -> AddressMoney:
        """Return what came to an address of a payment or an account and is in no main wallet, and what it waits for."""
        registry, pauses = web.gateway.registry, await web.gateway.pauses.get()
        async with web.db.transaction() as conn:
            found = await explaining.read_address(conn, spellings(registry, address), list(registry.families))
            views = [await at_address(web, conn, one, pauses) for one in found]
        return AddressMoney(deposits=views)


controllers = [admin_routes("/api/admin/collections", UncollectedMoney)]
