"""The operator's plans: made, changed, archived, and given to merchants. Never deleted: somebody may have them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import asdict
from sqlalchemy import func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import columns_of, to_struct
from cambist.domain.money import AmountError, parse_fiat
from cambist.domain.plans import CptPerMonth, MaxAddresses, MaxWebhooks, Plan, RequestsPerMinute
from cambist.domain.usage import Label, UsdText
from cambist.plugin import ChainInfo
from cambist.ports import Ids
from cambist.registry import Registry
from cambist.services import platform
from cambist.services.errors import ConflictError, InvalidError, NotFoundError
from cambist.services.listing import Listed, ListOf, Part, read_list
from cambist.services.platform import PlatformSettings
from cambist.services.supported import Wording, find_chain
from cambist.services.versions import Version, check_version, need_version

from .merchants import check_name, find_pk
from .plans import PLAN_COLUMNS, default_plan, plan_of

PLANS_MAX = 100
"""Plans of one gateway, archived ones included."""

Chains = tuple[str, ...]


class NewPlan(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new plan. Without `chains`, trackers may watch every chain; without `requestsPerMinute` your own limit holds.

    Whoever has no other plan has the one with `isDefault`. One that is not public is told to those alone who have it.
    """

    name: Label
    has_tracker: bool
    max_webhooks: MaxWebhooks
    max_addresses: MaxAddresses
    chains: Chains | None = None
    requests_per_minute: RequestsPerMinute | None = None
    cpt_per_month: CptPerMonth | None = None
    price_usd: UsdText | None = None
    is_default: bool = False
    is_public: bool = True


class ChangePlan(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What shall be different of a plan; what is left out stays. `archived` has it given to nobody any more.

    `chains` are replaced as a whole, which needs the `version` that was read.
    """

    version: Version | UnsetType = UNSET
    name: Label | UnsetType = UNSET
    has_tracker: bool | UnsetType = UNSET
    max_webhooks: MaxWebhooks | UnsetType = UNSET
    max_addresses: MaxAddresses | UnsetType = UNSET
    chains: Chains | UnsetType | None = UNSET
    requests_per_minute: RequestsPerMinute | UnsetType | None = UNSET
    cpt_per_month: CptPerMonth | UnsetType | None = UNSET
    price_usd: UsdText | UnsetType | None = UNSET
    is_default: bool | UnsetType = UNSET
    is_public: bool | UnsetType = UNSET
    archived: bool | UnsetType = UNSET


class PlanView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A plan as the operator sees it. `merchants` counts those who were given it; the others have the default one."""

    plan_id: str
    name: str
    has_tracker: bool
    chains: Sequence[str] | None
    webhooks_max: int = field(name="maxWebhooks")
    addresses_max: int = field(name="maxAddresses")
    requests_per_minute: int | None
    cpt_per_month: int | None
    price_usd: str | None
    is_default: bool
    is_public: bool
    archived_at: datetime | None
    created_at: datetime
    version: int
    merchants: int


_MERCHANTS = select(func.count()).where(models.Merchant.plan_pk == models.Plan.id).scalar_subquery()
_VIEW = columns_of(PlanView, models.Plan, merchants=_MERCHANTS)
_WORDING = Wording(
    chain="names no chain of this gateway",
    chain_code="VALIDATION_ERROR",
    token="",
    token_code="VALIDATION_ERROR",  # noqa: S106  a code, and no token is looked up
)


_LIST = ListOf(models.Plan.id)


async def list_plans(conn: AsyncConnection, part: Part) -> Listed[PlanView]:
    """Return one part of the plans."""
    return await read_list(conn, select(*_VIEW), partial(to_struct, PlanView), _LIST, part)


class Offers(Struct, frozen=True, kw_only=True):
    """What a calculator of costs is made of: the settings, the default plan, and the others that are public."""

    settings: PlatformSettings
    default: Plan
    others: Sequence[Plan]


async def load_offers(conn: AsyncConnection) -> Offers:
    """Return what everybody is told of costs and plans. The default plan is told, public or not."""
    plan = models.Plan
    shown = plan.is_public, plan.archived_at.is_(None), ~plan.is_default
    rows = await conn.execute(select(*PLAN_COLUMNS).where(*shown).order_by(plan.id))
    others = [to_struct(Plan, row) for row in rows]
    return Offers(settings=await platform.load(conn), default=await default_plan(conn), others=others)


async def make_plan(conn: AsyncConnection, registry: Registry, new: NewPlan, *, ids: Ids, now: datetime) -> PlanView:
    """Add a plan. Raises InvalidError, and ConflictError for a name that is taken and for one plan too many."""
    await _lock(conn)
    if (await conn.execute(select(func.count()).select_from(models.Plan))).scalar_one() >= PLANS_MAX:
        raise ConflictError("TOO_MANY_PLANS", f"There can be {PLANS_MAX} plans. Change one that you have.")
    columns = await _checked(conn, registry, asdict(new), None)
    plan_id = ids.new("pln")
    await conn.execute(insert(models.Plan).values(plan_id=plan_id, created_at=now, **columns))
    return await _read(conn, plan_id)


async def change_plan(
    conn: AsyncConnection, registry: Registry, plan_id: str, changes: ChangePlan, *, now: datetime
) -> PlanView:
    """Change what is sent, leave the rest, for everybody who has the plan.

    Raises NotFoundError, InvalidError, and ConflictError for a name that is taken, for a default plan that would be
    archived, and for another version than the one that was read.
    """
    await _lock(conn)
    before = await _read(conn, plan_id)
    if changes.chains is not UNSET:
        need_version(changes.version, "chains")
    check_version(changes.version, before.version)
    sent = {name: value for name, value in asdict(changes).items() if value is not UNSET and name != "version"}
    version = before.version + bool(sent)
    archived = sent.pop("archived", before.archived_at is not None)
    if archived and sent.get("is_default", before.is_default):
        raise ConflictError("PLAN_IS_DEFAULT", "The default plan cannot be archived. Make another one the default.")
    columns = await _checked(conn, registry, sent, plan_id)
    columns |= {"archived_at": (before.archived_at or now) if archived else None, "version": version}
    await conn.execute(update(models.Plan).where(models.Plan.plan_id == plan_id).values(columns))
    return await _read(conn, plan_id)


async def give_plan(conn: AsyncConnection, merchant_id: str, plan_id: str | None) -> Plan:
    """Give a merchant a plan, or the default one where none is named; return what the merchant has now.

    Raises NotFoundError, and ConflictError for a plan that is archived, unless the merchant has it already.
    """
    merchant_pk, plan, plan_pk = await find_pk(conn, merchant_id), models.Plan, None
    if plan_id is not None:
        # Who archives it at the same moment waits, or is waited for.
        wanted = select(plan.id, plan.archived_at).where(plan.plan_id == plan_id).with_for_update(read=True)
        row = (await conn.execute(wanted)).one_or_none()
        if row is None:
            raise _no_such_plan()
        plan_pk = row.id
        if row.archived_at is not None and (await plan_of(conn, merchant_pk)).plan_id != plan_id:
            raise ConflictError("PLAN_ARCHIVED", "This plan is archived: nobody is given it any more.")
    await conn.execute(update(models.Merchant).where(models.Merchant.id == merchant_pk).values(plan_pk=plan_pk))
    return await plan_of(conn, merchant_pk)


async def _lock(conn: AsyncConnection) -> None:
    """Let one operator at a time change plans: names, their number and the default are decided over all of them."""
    await conn.execute(text("LOCK TABLE plans IN SHARE ROW EXCLUSIVE MODE"))


async def _read(conn: AsyncConnection, plan_id: str) -> PlanView:
    row = (await conn.execute(select(*_VIEW).where(models.Plan.plan_id == plan_id))).one_or_none()
    if row is None:
        raise _no_such_plan()
    return to_struct(PlanView, row)


async def _checked(
    conn: AsyncConnection, registry: Registry, sent: dict[str, object], plan_id: str | None
) -> dict[str, object]:
    """Return what is sent by the names of columns; makes room for another default. Raises InvalidError."""
    columns = {_COLUMNS.get(name, name): value for name, value in sent.items()}
    plan = models.Plan
    if "name" in columns:
        name = check_name(str(columns["name"]))
        taken = select(plan.id).where(plan.name == name, plan.plan_id.is_distinct_from(plan_id))
        if await conn.scalar(taken) is not None:
            raise ConflictError("PLAN_NAME_TAKEN", "Another plan has this name.")
        columns["name"] = name
    chains = columns.get("chains")
    if isinstance(chains, tuple):
        columns["chains"] = _chains(registry, chains)
    if (price := columns.get("price_usd")) is not None:
        try:
            parse_fiat(str(price), "usd")
        except AmountError as error:
            raise InvalidError.field("priceUsd", str(error)) from None
    if columns.get("is_default"):
        await conn.execute(update(plan).where(plan.is_default).values(is_default=False, version=plan.version + 1))
    return columns


_COLUMNS = {"max_webhooks": "webhooks_max", "max_addresses": "addresses_max"}


def _chains(registry: Registry, chains: Chains) -> list[str]:
    if not chains:
        raise InvalidError.field("chains", "must name a chain, or be null for every chain")
    found: list[ChainInfo] = [
        find_chain(registry.chains, chain, f"chains[{number}]", _WORDING) for number, chain in enumerate(chains)
    ]
    return list(dict.fromkeys(chain.id for chain in found))


def _no_such_plan() -> NotFoundError:
    return NotFoundError("PLAN_NOT_FOUND", "There is no such plan.")
