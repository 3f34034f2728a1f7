"""A tracker's list of addresses: read, added to and taken from, one at a time or thousands in one statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias, cast

from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from sqlalchemy import Text, delete, literal, select, update
from sqlalchemy import cast as sql_cast
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import AnyRow, one_of
from cambist.domain.plans import Plan
from cambist.plugin import AddressFamily, ChainInfo, InvalidAddressError
from cambist.registry import Registry
from cambist.services.errors import ConflictError, InvalidError, NotFoundError, check_text
from cambist.services.identity import plans
from cambist.services.listing import Listed, ListOf, Owner, Part, read_list
from cambist.services.metadata import check_shown, metadata_text

from . import additions, history
from .changes import count_addresses, lock
from .credentials import TrackerAccess

ROWS_MAX = 10_000
"""Addresses of one call. Their Structs are hidden from the garbage collector, which would stop everything else."""
LABEL_CHARS_MAX = 100
METADATA_BYTES_MAX = 2_048
SENT_CHARS_MAX = 200
"""How much of a text that is no address is told back."""

Label = Annotated[str, Meta(max_length=LABEL_CHARS_MAX)]
AddressText = Annotated[str, Meta(min_length=1, max_length=256)]


class NewAddress(Struct, frozen=True, kw_only=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """An address to watch. `label` and `metadata` are for you; both are told back in the list."""

    address: str
    label: str | None = None
    metadata: dict[str, Any] | None = None


class ChangeAddress(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What shall be different about a watched address; what is left out stays, and null takes it away."""

    address: AddressText
    label: Label | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET


class NamedAddress(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A watched address."""

    address: AddressText


class ManyAddresses(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Addresses, as texts or as objects with `address`, and when adding also `label` and `metadata`."""

    addresses: Annotated[tuple[str | NewAddress, ...], Meta(min_length=1, max_length=ROWS_MAX)]


class AddressView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A watched address."""

    address: str
    label: str | None
    metadata: dict[str, Any] | None
    added_at: datetime


Result: TypeAlias = Literal["added", "exists", "removed", "not_watched", "invalid", "over_limit"]


class AddressResult(Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """What became of one address of a call. `index` is its place there, from 0; `reason` says why it was refused."""

    index: int
    address: str
    result: Result
    reason: str | None


class Checked(Struct, frozen=True, kw_only=True, gc=False):
    """One address of a call, normalized, with its metadata as JSON; or with the reason why it cannot be watched."""

    index: int
    address: str
    label: str | None = None
    metadata: str | None = None
    refusal: str | None = None


def normalizer(registry: Registry, chain_id: str) -> Callable[[str], str]:
    """Return what spells an address as the chain's family does; it raises InvalidError about ``address``."""
    chain = registry.chains[chain_id]
    family = registry.families[chain.family]

    def normalize(text: str) -> str:
        try:
            return family.normalize_address(text)
        except InvalidAddressError as error:
            raise InvalidError.field("address", f"is no address on {chain.name}: {error}", "INVALID_ADDRESS") from None

    return normalize


def check_one(registry: Registry, chain_id: str, new: NewAddress) -> Checked:
    """Return an address to be added. Raises InvalidError."""
    address = normalizer(registry, chain_id)(new.address)
    if new.label is not None and len(new.label) > LABEL_CHARS_MAX:
        raise InvalidError.field("label", _LABEL_TOO_LONG)
    return Checked(index=0, address=address, label=new.label, metadata=_metadata(new.metadata))


_LABEL_TOO_LONG = f"has more than {LABEL_CHARS_MAX} characters"


def _metadata(value: dict[str, Any] | None) -> str | None:
    return None if value is None else metadata_text(value, bytes_max=METADATA_BYTES_MAX)


def check_many(registry: Registry, chain_id: str, items: Sequence[str | NewAddress]) -> Sequence[Checked]:
    """Return every address of a call, with a reason where it is none. Ten thousand take long: not for an event loop."""
    chain = registry.chains[chain_id]
    family = registry.families[chain.family]
    return [_checked(chain, family, index, item) for index, item in enumerate(items)]


def _checked(chain: ChainInfo, family: AddressFamily, index: int, item: str | NewAddress) -> Checked:
    text = item if isinstance(item, str) else item.address
    try:
        address = family.normalize_address(text)
    except InvalidAddressError as error:
        return Checked(index=index, address=text[:SENT_CHARS_MAX], refusal=f"is no address on {chain.name}: {error}")
    if isinstance(item, str):
        return Checked(index=index, address=address)
    if item.label is not None and len(item.label) > LABEL_CHARS_MAX:
        return Checked(index=index, address=address, refusal=f"label {_LABEL_TOO_LONG}")
    try:
        if item.label is not None:
            check_text(item.label, "label")
        metadata = _metadata(item.metadata)
        if item.metadata is not None:
            check_shown(item.metadata)
    except InvalidError as error:
        return Checked(index=index, address=address, refusal=error.message)
    return Checked(index=index, address=address, label=item.label, metadata=metadata)


async def add(
    conn: AsyncConnection, tracker: TrackerAccess, registry: Registry, sent: Sequence[Checked], *, now: datetime
) -> Sequence[AddressResult]:
    """Put addresses on the list, as many as there is room for, in the order in which they were sent.

    Each block that is read after the commit is matched against them. Raises ForbiddenError (PLAN_LIMIT) where the plan
    has no trackers on this chain any more.
    """
    max_addresses = await lock(conn, tracker)
    plan = await plans.plan_of(conn, tracker.actor.merchant_pk)
    plans.require_tracker(plan, tracker.chain)
    most = min(max_addresses, plan.addresses_max)
    seen = await _on_list(conn, tracker, [one.address for one in sent if one.refusal is None])
    room = most - await count_addresses(conn, tracker)
    family = registry.chains[tracker.chain].family
    wanted = [one.address for one in sent if one.refusal is None and one.address not in seen]
    unknown = await additions.untracked(conn, tracker, family, wanted)
    room_for_new = 0
    if unknown:
        room_for_new = await additions.room(conn, tracker, plan, now)
        # Another of the merchant's trackers may have added them while this one waited for the room.
        unknown = await additions.untracked(conn, tracker, family, sorted(unknown))
    results, fresh, added = [], [], 0
    for one in sent:
        result: Result = "added"
        reason = one.refusal
        if reason is not None:
            result = "invalid"
        elif one.address in seen:
            result = "exists"
        elif room <= 0:
            result, reason = "over_limit", f"maxAddresses is {most}, and as many are watched"
        elif one.address in unknown and added >= room_for_new:
            result, reason = "over_limit", _too_many_new(plan)
        else:
            added += one.address in unknown
            seen.add(one.address)
            fresh.append(one)
            room -= 1
        results.append(AddressResult(index=one.index, address=one.address, result=result, reason=reason))
    if fresh:
        await _insert(conn, tracker, family, fresh, now)
        await history.ask(conn, tracker.pk)
    if added:
        await additions.count(conn, tracker, added, now)
    return results


def _too_many_new(plan: Plan) -> str:
    return (
        f"Your plan {plan.name} allows {additions.most(plan)} addresses a month that nobody watched before"
        f" ({additions.TIMES_A_MONTH} times maxWebhooks times maxAddresses)"
    )


async def add_one(
    conn: AsyncConnection, tracker: TrackerAccess, registry: Registry, one: Checked, *, now: datetime
) -> tuple[AddressView, Result]:
    """Put an address on the list; one that is there stays as it is. Raises ForbiddenError, ConflictError when full."""
    (result,) = await add(conn, tracker, registry, [one], now=now)
    if result.result == "over_limit":
        plan = await plans.plan_of(conn, tracker.actor.merchant_pk)
        if result.reason == _too_many_new(plan):
            raise plans.plan_limit(f"{result.reason}.")
        plans.require_addresses(plan, await count_addresses(conn, tracker) + 1)
        raise ConflictError("TOO_MANY_ADDRESSES", f"{result.reason}. Raise it, or remove some.")
    return await get(conn, tracker, one.address), result.result


async def remove(conn: AsyncConnection, tracker: TrackerAccess, sent: Sequence[Checked]) -> Sequence[AddressResult]:
    """Take addresses off the list: from the commit on nothing of theirs is told, what is under way excepted."""
    await lock(conn, tracker)
    wanted = [one.address for one in sent if one.refusal is None]
    mine = models.TrackerAddress.tracker_pk == tracker.pk, one_of(models.TrackerAddress.address, wanted)
    rows = await conn.execute(delete(models.TrackerAddress).where(*mine).returning(models.TrackerAddress.address))
    gone = set(rows.scalars())
    results = []
    for one in sent:
        result: Result = "invalid" if one.refusal is not None else "removed" if one.address in gone else "not_watched"
        gone.discard(one.address)
        results.append(AddressResult(index=one.index, address=one.address, result=result, reason=one.refusal))
    return results


async def remove_one(conn: AsyncConnection, tracker: TrackerAccess, address: str) -> None:
    """Take an address off the list. Raises NotFoundError where it is not on it."""
    (result,) = await remove(conn, tracker, [Checked(index=0, address=address)])
    if result.result != "removed":
        raise not_watched()


async def change(conn: AsyncConnection, tracker: TrackerAccess, address: str, changes: ChangeAddress) -> AddressView:
    """Change label and metadata of a watched address. Raises NotFoundError."""
    columns: dict[str, object] = {}
    if changes.label is not UNSET:
        columns["label"] = changes.label
    if changes.metadata is not UNSET:
        columns["metadata"] = sql_cast(
            literal(_metadata(changes.metadata), Text()), models.TrackerAddress.metadata_.type
        )
    if columns:
        mine = models.TrackerAddress.tracker_pk == tracker.pk, models.TrackerAddress.address == address
        await conn.execute(update(models.TrackerAddress).where(*mine).values(columns))
    return await get(conn, tracker, address)


def not_watched() -> NotFoundError:
    """Return the refusal for an address that is not on the list."""
    return NotFoundError("ADDRESS_NOT_WATCHED", "This address is not on the tracker's list.")


_COLUMNS = (
    models.TrackerAddress.address,
    models.TrackerAddress.label,
    sql_cast(models.TrackerAddress.metadata_, Text).label("metadata"),
    models.TrackerAddress.added_at,
)


def _view(row: AnyRow) -> AddressView:
    metadata = None if row.metadata is None else cast("dict[str, Any]", Raw(row.metadata.encode()))
    return AddressView(address=row.address, label=row.label, metadata=metadata, added_at=row.added_at)


async def get(conn: AsyncConnection, tracker: TrackerAccess, address: str) -> AddressView:
    """Return a watched address. Raises NotFoundError."""
    mine = models.TrackerAddress.tracker_pk == tracker.pk, models.TrackerAddress.address == address
    row = (await conn.execute(select(*_COLUMNS).where(*mine))).one_or_none()
    if row is None:
        raise not_watched()
    return _view(row)


_LIST = ListOf(models.TrackerAddress.id, orders={"address": models.TrackerAddress.address})


async def list_addresses(
    conn: AsyncConnection,
    tracker: TrackerAccess,
    address: str | None,
    part: Part,
) -> Listed[AddressView]:
    """Return one part of the list; or the one address that is named."""
    own: Owner = {models.TrackerAddress.tracker_pk: tracker.pk}
    if address is not None:
        own = {**own, models.TrackerAddress.address: address}
    return await read_list(conn, select(*_COLUMNS), _view, _LIST, part, own=own)


async def _on_list(conn: AsyncConnection, tracker: TrackerAccess, addresses: Sequence[str]) -> set[str]:
    mine = models.TrackerAddress.tracker_pk == tracker.pk, one_of(models.TrackerAddress.address, addresses)
    return set((await conn.execute(select(models.TrackerAddress.address).where(*mine))).scalars())


_LISTED = """
INSERT INTO tracker_addresses (tracker_pk, chain, scope, address, label, metadata, added_at)
SELECT $1, $2, $3, address, label, metadata::json, $4
FROM unnest($5::text[], $6::text[], $7::text[]) WITH ORDINALITY AS new (address, label, metadata, number)
ORDER BY number
"""

_TRACKED = """
INSERT INTO tracked_addresses (mode, family, address)
SELECT $1, $2, address FROM unnest($3::text[]) AS new (address)
ON CONFLICT DO NOTHING
"""


async def _insert(
    conn: AsyncConnection, tracker: TrackerAccess, family: str, fresh: Sequence[Checked], now: datetime
) -> None:
    addresses = [one.address for one in fresh]
    others = [one.label for one in fresh], [one.metadata for one in fresh]
    await conn.exec_driver_sql(_LISTED, (tracker.pk, tracker.chain, tracker.scope, now, addresses, *others))
    # In one order for everybody: trackers that share addresses wait for each other, and never in a circle.
    await conn.exec_driver_sql(_TRACKED, (tracker.mode, family, sorted(addresses)))
