"""Operators' lists over all merchants: filtered, searched, part by part."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import one_of
from cambist.registry import Registry
from cambist.services.errors import InvalidError
from cambist.services.listing import Listed, Part, Period, Sort, read_list
from cambist.services.paging import TOTAL_MAX, read_one

from .finding import Owners, find, no_such_merchant, owner_of
from .kinds import KINDS, Name
from .rows import Owned, shown

RowT = TypeVar("RowT", bound=Owned)

SEARCHED_MAX = 10
"""Of each kind that a text names are shown."""


class Found(Struct, frozen=True, kw_only=True, rename="camel"):
    """One thing that a text names. `kind` is its list, and `id` what it is read by there."""

    kind: str
    id: str
    merchant_id: str | None
    merchant_name: str | None
    status: str | None
    created_at: datetime


class Wanted(Struct, frozen=True, kw_only=True):
    """What of a list is wanted. ``merchant`` is an id or an e-mail address, ``search`` a text that names something."""

    status: str | None = None
    chain: str | None = None
    token: str | None = None
    mode: str | None = None
    merchant: str | None = None
    project: str | None = None
    search: str | None = None
    period: Period = Period()


async def list_of(  # noqa: PLR0913  which list, which part, for whom
    conn: AsyncConnection, registry: Registry, name: Name, wanted: Wanted, part: Part, *, with_people: bool
) -> Listed[Owned]:
    """Return one part of a list: of what a text names, the newest, which are then filtered and sorted.

    Where it names more than ``find`` returns, the part is not exact. Raises InvalidError for a merchant or project that
    there is not, and for a file (``Part``) that would not hold all that the text names.
    """
    kind, owner = KINDS[name], await _owner(conn, wanted)
    values = {"status": wanted.status, "chain": wanted.chain, "token": wanted.token, "mode": wanted.mode, **owner}
    kind.check({"status": wanted.status, "chain": wanted.chain, "token": wanted.token})
    where, own, is_all = list(kind.where), dict[Any, object](), True
    if wanted.search is not None and (named := await owner_of(conn, wanted.search)) is not None:
        values |= _narrowed(owner, named)
    elif wanted.search is not None:
        narrow = Owners(merchant_pk=owner.get("merchant"), project_pk=owner.get("project"))
        found = await find(conn, registry, name, wanted.search, with_people=with_people, owners=narrow)
        is_all = found.is_all
        where.append(one_of(kind.spec.pk, found.pks))
    for field, column in kind.owners.items():
        if values.get(field) is not None and not own and len(where) == len(kind.where):
            own = {column: values.pop(field)}
    columns: dict[str, Any] = {**kind.owners, **kind.filters}
    filters = {columns[field]: value for field, value in values.items() if field in columns}
    if not is_all and part.count_max > TOTAL_MAX:
        words = "More are called that than a search looks through. Search for something narrower, or name a merchant."
        raise InvalidError("EXPORT_TOO_LARGE", words)
    listed = await read_list(
        conn,
        kind.statement,
        partial(shown, kind.row),
        kind.spec,
        part,
        own=own,
        where=where,
        filters=filters,
        period=wanted.period,
    )
    return listed if is_all else replace(listed, exact=False)


async def _owner(conn: AsyncConnection, wanted: Wanted) -> dict[str, int | None]:
    """Return the primary key of the merchant or the project that was named. Raises InvalidError."""
    merchant = None if wanted.merchant is None else await owner_of(conn, wanted.merchant)
    project = None if wanted.project is None else await owner_of(conn, wanted.project)
    if wanted.merchant is not None and (merchant is None or merchant.project_pk is not None):
        raise no_such_merchant()
    if wanted.project is not None and (project is None or project.project_pk is None):
        raise InvalidError.field("project", "there is no such project")
    if project is not None and merchant is not None and project.merchant_pk != merchant.merchant_pk:
        raise InvalidError.field("project", "is not this merchant's")
    if project is not None:
        return {"project": project.project_pk}
    return {} if merchant is None else {"merchant": merchant.merchant_pk}


def _narrowed(owner: dict[str, int | None], named: Owners) -> dict[str, int | None]:
    """Return what is wanted of an owner when the text that is looked for names one, too."""
    mine: dict[str, int | None] = (
        {"merchant": named.merchant_pk} if named.project_pk is None else {"project": named.project_pk}
    )
    return mine | owner if all(owner.get(field, pk) == pk for field, pk in mine.items()) else {"merchant": 0}


async def read_row(conn: AsyncConnection, name: Name, public_id: str, into: type[RowT]) -> RowT:
    """Return one thing as its list shows it. Raises NotFoundError."""
    kind = KINDS[name]
    row = await read_one(conn, kind.statement.where(kind.public_id == public_id, *kind.where), kind.missing())
    return shown(into, row)


async def search(conn: AsyncConnection, registry: Registry, text: str, *, with_people: bool) -> Sequence[Found]:
    """Return what a text names: the newest of each kind, after the merchant or project that it is itself."""
    found = [Found(**row._mapping) for row in await conn.exec_driver_sql(_NAMED, (text,))]  # noqa: SLF001
    for name, kind in KINDS.items():
        pks = (await find(conn, registry, name, text, with_people=with_people)).pks
        if not pks:
            continue
        named = kind.statement.add_columns(kind.public_id.label("found_id")).where(
            one_of(kind.spec.pk, pks), *kind.where
        )
        newest = named.order_by(kind.spec.by(Sort.NEWEST).desc(), kind.spec.pk.desc()).limit(SEARCHED_MAX)
        found += [
            Found(
                kind=name,
                id=row.found_id,
                merchant_id=row.merchant_id,
                merchant_name=row.merchant_name,
                status=row._mapping.get("status"),  # noqa: SLF001  SQLAlchemy's public name for it
                created_at=row.created_at,
            )
            for row in await conn.execute(newest)
        ]
    return found


class OwnFound(Struct, frozen=True, kw_only=True, rename="camel"):
    """One thing of a project's that a text names.

    `kind` is its list, and `id` what it is read by there. A deposit has none: it is read with its payment or account.
    """

    kind: str
    id: str
    status: str | None
    created_at: datetime
    payment_id: str | None
    account_id: str | None


async def search_project(
    conn: AsyncConnection, registry: Registry, project_pk: int, text: str, *, without: Collection[Name] = ()
) -> Sequence[OwnFound]:
    """Return what of one project a text names: up to so many of each kind, the newest first."""
    found, owners = list[OwnFound](), Owners(project_pk=project_pk)
    for name, kind in KINDS.items():
        if name in without:
            continue
        pks = (await find(conn, registry, name, text, with_people=True, owners=owners)).pks
        if not pks:
            continue
        project = kind.filters["project"] if "project" in kind.filters else kind.owners["project"]
        named = kind.statement.add_columns(kind.public_id.label("found_id")).where(
            one_of(kind.spec.pk, pks), project == project_pk, *kind.where
        )
        newest = named.order_by(kind.spec.by(Sort.NEWEST).desc(), kind.spec.pk.desc()).limit(SEARCHED_MAX)
        for row in await conn.execute(newest):
            values = row._mapping  # noqa: SLF001  SQLAlchemy's public name for it
            found.append(
                OwnFound(
                    kind=name,
                    id=row.found_id,
                    status=values.get("status"),
                    created_at=row.created_at,
                    payment_id=values.get("payment_id"),
                    account_id=values.get("account_id"),
                )
            )
    return found


_NAMED = """
SELECT 'merchants' AS kind, merchant_id AS id, merchant_id, name AS merchant_name, NULL AS status, created_at
FROM merchants WHERE merchant_id = $1
UNION ALL SELECT 'merchants', merchant_id, merchant_id, name, NULL, created_at FROM merchants WHERE email = lower($1)
UNION ALL SELECT 'merchants', m.merchant_id, m.merchant_id, m.name, NULL, m.created_at
FROM members p JOIN merchants m ON m.id = p.merchant_pk WHERE p.email = lower($1) AND m.email <> lower($1)
UNION ALL SELECT 'projects', p.project_id, m.merchant_id, m.name, p.mode, p.created_at
FROM projects p JOIN merchants m ON m.id = p.merchant_pk WHERE p.project_id = $1
"""
