"""Merchants as operators see them: all of them, and one with its people, projects, plan, money and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import AnySelect, columns_of, one_of, to_struct
from cambist.domain.plans import BUILT_IN
from cambist.services.identity import merchants, team
from cambist.services.identity.plans import plan_pk_in_force
from cambist.services.identity.team import MEMBERS_MAX, MemberView
from cambist.services.listing import Listed, ListOf, Part, Period, Sort, read_list
from cambist.services.outgoing_limits import MerchantLimit
from cambist.services.paging import read_one

from .finding import owner_of

_LIKE = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})


class MerchantRow(Struct, frozen=True, kw_only=True, rename="camel"):
    """A merchant in the list. Without a `planId` it has the default plan, or the built-in one.

    `lastActiveAt` is when a member or a key of it asked for something last, noted about once a minute.
    """

    merchant_id: str
    email: str
    name: str
    live: bool
    suspended_at: datetime | None
    suspension_reason: str | None
    plan_id: str | None
    plan_name: str
    projects: int
    members: int
    last_active_at: datetime | None
    created_at: datetime


class ProjectRow(Struct, frozen=True, kw_only=True, rename="camel"):
    """A project of a merchant, as operators see it."""

    project_id: str
    name: str
    mode: str
    is_active: bool
    created_at: datetime


class MerchantDetail(Struct, frozen=True, kw_only=True):
    """A merchant with its people and projects; ``limits`` are what was set for it alone, as of ``limits_version``.

    ``pk`` is for statements.
    """

    pk: int
    row: MerchantRow
    members: Sequence[MemberView]
    projects: Sequence[ProjectRow]
    limits: Mapping[str, MerchantLimit]
    limits_version: int


class Wanted(Struct, frozen=True, kw_only=True):
    """Which merchants are wanted; None is no filter.

    ``search`` is an identifier of the merchant, of a project or a member, or a part of a name or an e-mail address.
    """

    search: str | None = None
    live: bool | None = None
    suspended: bool | None = None
    plan_id: str | None = None
    period: Period = Period()


_merchant, _member, _project = models.Merchant, models.Member, models.Project

_LIST = ListOf(_merchant.id, _merchant.created_at)


def _last_active() -> ColumnElement[datetime | None]:
    session = select(func.max(models.Session.last_used_at)).join(_member, _member.id == models.Session.person_pk)
    key = select(func.max(models.ApiKey.last_used_at)).join(_project, _project.id == models.ApiKey.project_pk)
    return func.greatest(
        session.where(_member.merchant_pk == _merchant.id).correlate(_merchant).scalar_subquery(),
        key.where(_project.merchant_pk == _merchant.id).correlate(_merchant).scalar_subquery(),
    )


def _counted(table: type[models.Member | models.Project]) -> ColumnElement[int]:
    owned = select(func.count()).select_from(table).where(table.merchant_pk == _merchant.id)
    return owned.correlate(_merchant).scalar_subquery()


_COLUMNS = columns_of(
    MerchantRow,
    _merchant,
    plan_id=models.Plan.plan_id,
    plan_name=func.coalesce(models.Plan.name, BUILT_IN.name),
    projects=_counted(_project),
    members=_counted(_member),
    last_active_at=_last_active(),
)


def _rows() -> AnySelect:
    return select(*_COLUMNS).outerjoin(models.Plan, models.Plan.id == plan_pk_in_force())


async def list_merchants(conn: AsyncConnection, wanted: Wanted, part: Part) -> Listed[MerchantRow]:
    """Return one part of the list of merchants."""
    also: list[ColumnElement[bool]] = []
    if wanted.live is not None:
        also.append(_merchant.live.is_(wanted.live))
    if wanted.suspended is not None:
        is_suspended = _merchant.suspended_at.is_not(None)
        also.append(is_suspended if wanted.suspended else ~is_suspended)
    # What names one merchant exactly finds it however many there are; parts of names are looked for among some at once.
    owner = None if wanted.search is None else await owner_of(conn, wanted.search)
    if wanted.search is not None and owner is None:
        also.append(_found_by(wanted.search))
    return await read_list(
        conn,
        _rows(),
        partial(to_struct, MerchantRow),
        _LIST,
        part,
        where=[] if owner is None else [_merchant.id == owner.merchant_pk],
        filters={models.Plan.plan_id: wanted.plan_id},
        also=also,
        period=wanted.period,
    )


def _found_by(text: str) -> ColumnElement[bool]:
    part = f"%{text.strip().translate(_LIKE)}%"
    member = select(_member.merchant_pk).where(or_(_member.member_id == text, _member.email.ilike(part)))
    project = select(_project.merchant_pk).where(or_(_project.project_id == text, _project.name.ilike(part)))
    return or_(
        _merchant.merchant_id == text,
        _merchant.email.ilike(part),
        _merchant.name.ilike(part),
        _merchant.id.in_(member),
        _merchant.id.in_(project),
    )


async def read_merchant(conn: AsyncConnection, merchant_id: str) -> MerchantDetail:
    """Return a merchant, with all of its members and projects: a hundred of each at most. Raises NotFoundError."""
    more = _merchant.id.label("pk"), _merchant.limits, _merchant.limits_version
    one = _rows().add_columns(*more).where(_merchant.merchant_id == merchant_id)
    row = await read_one(conn, one, merchants.no_such_merchant())
    members = await team.list_members(conn, row.pk, Part(limit=MEMBERS_MAX, sort=Sort.OLDEST))
    owned = select(*columns_of(ProjectRow, _project)).where(_project.merchant_pk == row.pk).order_by(_project.id)
    return MerchantDetail(
        pk=row.pk,
        row=to_struct(MerchantRow, row),
        members=members.items,
        projects=[to_struct(ProjectRow, project) for project in await conn.execute(owned)],
        limits=msgspec.convert(row.limits, dict[str, MerchantLimit]),
        limits_version=row.limits_version,
    )


async def names_of(conn: AsyncConnection, merchant_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the names of merchants by their ids; one that is not there is in none of it."""
    named = select(_merchant.merchant_id, _merchant.name).where(one_of(_merchant.merchant_id, merchant_ids))
    return {row.merchant_id: row.name for row in await conn.execute(named)}
