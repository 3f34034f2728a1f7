"""How deposits came to the main wallet, and what each of those transfers cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated

from litestar import Controller, Response, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.money import format_units
from cambist.registry import Registry
from cambist.services.actor import Actor
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.sending.collections import listing
from cambist.services.sending.collections.listing import Collection
from cambist_web.auth import key_routes, needs, project_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.operator_auth import admin_routes
from cambist_web.permissions import permits
from cambist_web.schemas import CursorPageAnswer, NonEmptyFilter

ModeFilter = Annotated[str, QueryParameter(pattern="^(live|sandbox)$")]


class Cost(Struct, frozen=True, kw_only=True):
    """What the platform paid, in the chain's own coin. Nothing of it came out of what was collected."""

    amount: str
    token: str


class CollectionView(Struct, frozen=True, kw_only=True, rename="camel"):
    """Deposits of one token that were brought from one address to the main wallet."""

    collection_id: str
    merchant_id: str
    merchant_name: str
    status: str
    chain: str
    token: str
    amount: str
    from_address: str
    deposits: int
    tx_hash: str | None
    fee: Cost
    created_at: datetime
    completed_at: datetime | None


class CollectionList(CursorPageAnswer, frozen=True, kw_only=True):
    """A page of collections."""

    collections: Sequence[CollectionView]


class Collections(Controller):
    tags = ("Wallet",)

    @get("/collections", summary="List collections", opt=needs("read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        chain: NonEmptyFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[CollectionList]:
        """Return what was brought to the main wallet, and what each transfer cost the platform."""
        owner = actor.merchant_pk, actor.mode
        query = asked.of(web, "collections", *owner, sort=sort, filters=(chain, period))
        return await query.answer(CollectionList, partial(_read, web, *owner, chain, period))


class AllCollections(Controller):
    tags = ("Operator",)

    @get("/", summary="List everybody's collections", opt=permits("money.read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        mode: ModeFilter = "live",
        chain: NonEmptyFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[CollectionList]:
        """Return all merchants' collections, and what each transfer cost."""
        query = asked.of(web, "collections", "operator", mode, sort=sort, filters=(chain, period))
        return await query.answer(CollectionList, partial(_read, web, None, mode, chain, period))


async def _read(  # noqa: PLR0913, PLR0917  whose, which, and which part
    web: Web,
    merchant_pk: int | None,
    mode: str,
    chain: str | None,
    period: Period,
    conn: AsyncConnection,
    part: Part,
) -> Listed[CollectionView]:
    found = await listing.list_collections(conn, merchant_pk, mode, part, chain=chain, period=period)
    return found.shown_as(partial(_view, web.gateway.registry))


def _view(registry: Registry, one: Collection) -> CollectionView:
    chain = registry.chains.get(one.chain)
    symbol, decimals = ("", 0) if chain is None else (chain.native.symbol, chain.native.decimals)
    return CollectionView(
        collection_id=one.collection_id,
        merchant_id=one.merchant_id,
        merchant_name=one.merchant_name,
        status=one.status,
        chain=one.chain,
        token=one.token,
        amount=format_units(one.units, one.decimals),
        from_address=one.source,
        deposits=one.deposits,
        tx_hash=one.tx_id,
        fee=Cost(amount=format_units(one.fee, decimals), token=symbol),
        created_at=one.created_at,
        completed_at=one.finished_at,
    )


controllers = [
    key_routes("/api/merchant/wallet", Collections),
    project_routes("/wallet", Collections),
    admin_routes("/api/admin/collections", AllCollections),
]
