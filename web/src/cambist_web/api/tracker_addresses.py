"""A tracker's list of addresses, and the transactions that it has told, for whoever has its token."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter

from cambist.services.audit.entries import Action
from cambist.services.listing import Period, Sort
from cambist.services.trackers import addresses, transactions
from cambist.services.trackers.addresses import (
    AddressResult,
    AddressView,
    ChangeAddress,
    ManyAddresses,
    NamedAddress,
    NewAddress,
)
from cambist.services.trackers.create import BLOCK_MAX
from cambist.services.trackers.credentials import TrackerAccess
from cambist.services.trackers.transactions import Direction, MovementStatus, TrackedTransaction, Wanted
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.origin import Audit
from cambist_web.schemas import Answer, CursorPageAnswer, NonEmptyFilter
from cambist_web.tracker_auth import tracker_routes

MANY_BYTES_MAX = 4 * 1024 * 1024
"""Of a body with ten thousand addresses: room for labels, and some metadata."""

AddressFilter = Annotated[str | None, QueryParameter(min_length=1, max_length=256)]
HashFilter = Annotated[str | None, QueryParameter(name="txHash", min_length=1, max_length=128)]
FromBlock = Annotated[int | None, QueryParameter(name="fromBlock", description="Included.", ge=0, le=BLOCK_MAX)]
ToBlock = Annotated[int | None, QueryParameter(name="toBlock", description="Included.", ge=0, le=BLOCK_MAX)]


class AddressList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of the addresses that a tracker watches, what was added last first."""

    addresses: Sequence[AddressView]


class AddressAdded(Answer, frozen=True, kw_only=True):
    """A watched address. `result` is `added`, or `exists` where it was watched already and nothing changed."""

    address: AddressView
    result: str


class AddressAnswer(Answer, frozen=True, kw_only=True):
    """A watched address."""

    address: AddressView


class AddressesAdded(Answer, frozen=True, kw_only=True):
    """What became of each address, in the order of the request, and how many came to what."""

    added: int
    exists: int
    invalid: int
    over_limit: int
    results: Sequence[AddressResult]


class AddressesRemoved(Answer, frozen=True, kw_only=True):
    """What became of each address, in the order of the request, and how many came to what."""

    removed: int
    not_watched: int
    invalid: int
    results: Sequence[AddressResult]


class TransactionList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of the transactions that a tracker has told."""

    transactions: Sequence[TrackedTransaction]


AddressSort: TypeAlias = Literal["-createdAt", "createdAt", "address", "-address"]


class Addresses(Controller):
    tags = ("Trackers",)

    @get("/list", summary="List watched addresses")
    async def list(
        self,
        tracker: NamedDependency[TrackerAccess],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        *,
        address: AddressFilter = None,
        sort: Annotated[AddressSort, QueryParameter(description="`-` is what was added last first.")] = "-createdAt",
    ) -> Response[AddressList]:
        """Return the addresses that the tracker watches; or the one that is asked for."""
        wanted = _spelled(web, tracker, address)
        query = asked.of(web, "tracker-addresses", tracker.pk, sort=sort, filters=wanted)
        return await query.answer(AddressList, lambda conn, part: addresses.list_addresses(conn, tracker, wanted, part))

    @post("/add", status_code=200, summary="Watch an address")
    async def add(
        self,
        data: JSONBody[NewAddress],
        tracker: NamedDependency[TrackerAccess],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> AddressAdded:
        """Put an address on the list: every block is matched against it that is read after this answer."""
        checked = addresses.check_one(web.gateway.registry, tracker.chain, data)
        async with web.db.transaction() as conn:
            registry, now = web.gateway.registry, web.clock.now()
            found, result = await addresses.add_one(conn, tracker, registry, checked, now=now)
        if result == "added":
            audit.count(Action.TRACKER_LIST_CHANGED)
        return AddressAdded(address=found, result=result)

    @post("/add-bulk", status_code=200, summary="Watch addresses", request_max_body_size=MANY_BYTES_MAX)
    async def add_many(
        self,
        data: JSONBody[ManyAddresses],
        tracker: NamedDependency[TrackerAccess],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> AddressesAdded:
        """Put up to 10,000 addresses on the list. One that is wrong or finds no room holds none of the others back."""
        registry = web.gateway.registry
        checked = await asyncio.to_thread(addresses.check_many, registry, tracker.chain, data.addresses)
        async with web.db.transaction() as conn:
            results = await addresses.add(conn, tracker, registry, checked, now=web.clock.now())
        counted = Counter(one.result for one in results)
        if counted["added"]:
            audit.count(Action.TRACKER_LIST_CHANGED)
        return AddressesAdded(
            added=counted["added"],
            exists=counted["exists"],
            invalid=counted["invalid"],
            over_limit=counted["over_limit"],
            results=results,
        )

    @post("/update", status_code=200, summary="Change a watched address")
    async def change(
        self,
        data: JSONBody[ChangeAddress],
        tracker: NamedDependency[TrackerAccess],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> AddressAnswer:
        """Change label and metadata, those that are sent; null takes them away."""
        address = addresses.normalizer(web.gateway.registry, tracker.chain)(data.address)
        async with web.db.transaction() as conn:
            found = await addresses.change(conn, tracker, address, data)
        audit.count(Action.TRACKER_LIST_CHANGED)
        return AddressAnswer(address=found)

    @post("/remove", status_code=200, summary="Stop watching an address")
    async def remove(
        self,
        data: JSONBody[NamedAddress],
        tracker: NamedDependency[TrackerAccess],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Answer:
        """Take an address off the list: nothing of it is told from now on, what is under way excepted."""
        address = addresses.normalizer(web.gateway.registry, tracker.chain)(data.address)
        async with web.db.transaction() as conn:
            await addresses.remove_one(conn, tracker, address)
        audit.count(Action.TRACKER_LIST_CHANGED)
        return Answer()

    @post("/remove-bulk", status_code=200, summary="Stop watching addresses", request_max_body_size=MANY_BYTES_MAX)
    async def remove_many(
        self,
        data: JSONBody[ManyAddresses],
        tracker: NamedDependency[TrackerAccess],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> AddressesRemoved:
        """Take up to 10,000 addresses off the list."""
        registry = web.gateway.registry
        checked = await asyncio.to_thread(addresses.check_many, registry, tracker.chain, data.addresses)
        async with web.db.transaction() as conn:
            results = await addresses.remove(conn, tracker, checked)
        counted = Counter(one.result for one in results)
        if counted["removed"]:
            audit.count(Action.TRACKER_LIST_CHANGED)
        return AddressesRemoved(
            removed=counted["removed"],
            not_watched=counted["not_watched"],
            invalid=counted["invalid"],
            results=results,
        )


class Transactions(Controller):
    tags = ("Trackers",)

    @get("/list", summary="List a tracker's transactions")
    async def list(  # noqa: PLR0913  filters and paging, each by name
        self,
        tracker: NamedDependency[TrackerAccess],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        address: AddressFilter = None,
        direction: Annotated[Direction | None, QueryParameter()] = None,
        token: NonEmptyFilter = None,
        status: Annotated[MovementStatus | None, QueryParameter()] = None,
        tx_hash: HashFilter = None,
        from_block: FromBlock = None,
        to_block: ToBlock = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[TransactionList]:
        """Return every transfer that the tracker has told of, with what has become of it by now.

        `from` and `to` are of `createdAt`, when the tracker told of it first.
        """
        wanted = Wanted(
            address=_spelled(web, tracker, address),
            direction=direction,
            token=token,
            status=status,
            tx_hash=tx_hash,
            from_block=from_block,
            to_block=to_block,
            period=period,
        )
        query = asked.of(web, "tracker-transactions", tracker.pk, sort=sort, filters=wanted)
        return await query.answer(
            TransactionList, lambda conn, part: transactions.list_transactions(conn, tracker, wanted, part)
        )


def _spelled(web: Web, tracker: TrackerAccess, address: str | None) -> str | None:
    return None if address is None else addresses.normalizer(web.gateway.registry, tracker.chain)(address)


controllers = [
    tracker_routes("/api/webhook/address", Addresses),
    tracker_routes("/api/webhook/transaction", Transactions),
]
