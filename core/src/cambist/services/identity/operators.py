"""Operators: people who run the gateway, each with a role. What a role may do stands in ``cambist_web/permissions.py``.

An operator is invited by a one-time link, sets a password by it, and enrols an authenticator at the first sign-in: no
session is opened before. There is always an owner left who can sign in. Links, also those for members of merchants, go
with the operator who issued them, and with the role by which they were issued.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Literal, get_args

from msgspec import Struct
from sqlalchemy import Select, and_, delete, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import InstrumentedAttribute, aliased

from cambist.db import models
from cambist.db.structs import columns_of, to_struct
from cambist.ports import Ids
from cambist.services.errors import ConflictError, ForbiddenError, NotFoundError
from cambist.services.listing import Listed, ListOf, Part, read_list
from cambist.settings import WebSettings

from . import credentials, sessions, two_factor
from .people import People, Person, Principal

Role = Literal["owner", "operator", "support", "auditor"]
"""From the one who may do everything to the one who only reads."""

ROLES: Sequence[Role] = get_args(Role)

LET_MERCHANTS_IN: Sequence[Role] = ("owner", "operator")
"""Who makes merchants, and lets their members back in."""

PASSWORD_PATH = "/operator/set-password"  # noqa: S105  a path
"""Where the page is that a one-time link leads to: among what is operators' alone."""


class Operator(Person, frozen=True, kw_only=True):
    """One who runs the gateway."""

    operator_id: str
    role: Role

    @property
    def person_id(self) -> str:
        return self.operator_id


class OperatorPrincipal(Principal, frozen=True, kw_only=True):
    """An operator in person, with the role of this moment."""

    operator_pk: int
    operator_id: str
    role: Role

    @property
    def person_pk(self) -> int:
        return self.operator_pk

    @property
    def person_id(self) -> str:
        return self.operator_id


class OperatorView(Struct, frozen=True, kw_only=True, rename="camel"):
    """An operator, as other operators see them. `hasTwoFactor` is false until the first sign-in."""

    operator_id: str
    email: str
    name: str
    role: Role
    has_two_factor: bool
    disabled_at: datetime | None
    created_at: datetime


def _no_such_email() -> NotFoundError:
    return NotFoundError("OPERATOR_NOT_FOUND", "There is no operator with this e-mail address.")


_ENABLED = models.Operator.disabled_at.is_(None)
_HAS_TWO_FACTOR = (
    select(models.OperatorTwoFactor.person_pk)
    .where(
        models.OperatorTwoFactor.person_pk == models.Operator.id,
        models.OperatorTwoFactor.secret_encrypted.is_not(None),
    )
    .exists()
)

_ISSUER = aliased(models.Operator)
_LINK = models.OperatorLink


def issued(by: InstrumentedAttribute[int | None], roles: Sequence[Role]) -> Select[int]:
    """Select the operator who issued a link, if that operator is still let in and has one of the roles."""
    return select(_ISSUER.id).where(_ISSUER.id == by, _ISSUER.role.in_(roles), _ISSUER.disabled_at.is_(None))


OPERATORS = People(
    kind="operator",
    table=models.Operator,
    public_id=models.Operator.operator_id,
    view=Operator,
    principal=OperatorPrincipal,
    principal_columns=columns_of(
        OperatorPrincipal,
        models.OperatorSession,
        operator_pk=models.OperatorSession.person_pk,
        operator_id=models.Operator.operator_id,
        role=models.Operator.role,
    ),
    session=models.OperatorSession,
    link=_LINK,
    two_factor=models.OperatorTwoFactor,
    recovery_code=models.OperatorRecoveryCode,
    may_sign_in=_ENABLED,
    may_have_session=and_(_ENABLED, _HAS_TWO_FACTOR),
    needs_two_factor=True,
    issuer="Cambist admin",
    step_up_path="/api/admin/auth/step-up",
    link_prefix="opl_",
    link_holds=or_(_LINK.issued_by_pk.is_(None), issued(_LINK.issued_by_pk, ["owner"]).correlate(_LINK).exists()),
    no_such_email=_no_such_email,
)

_VIEW = columns_of(OperatorView, models.Operator, has_two_factor=_HAS_TWO_FACTOR)


def base_url(web: WebSettings) -> str:
    """Return where operators' links point: ``admin_url``, the address of their own, or where everybody else's point."""
    if web.admin_url is not None or web.admin_port is None:
        return (web.admin_url or web.base_url).rstrip("/")
    host = f"[{web.admin_host}]" if ":" in web.admin_host else web.admin_host
    return f"http://{host}:{web.admin_port}"


def password_link(web: WebSettings, token: str) -> str:
    """Return where an operator sets a password. No browser sends what is behind the #, so no server logs it."""
    return f"{base_url(web)}{PASSWORD_PATH}#{token}"


async def add(  # noqa: PLR0913  each by name
    conn: AsyncConnection, *, email: str, name: str, role: Role, password_hash: str, ids: Ids, now: datetime
) -> Operator:
    """Add an operator. Raises ConflictError for an address that is taken."""
    operator_id = ids.new("opr")
    table = models.Operator
    stored = {"operator_id": operator_id, "email": email, "name": name, "role": role}
    pk = await conn.scalar(
        insert(table)
        .values(**stored, password_hash=password_hash, created_at=now)
        .on_conflict_do_nothing(index_elements=[table.email])
        .returning(table.id)
    )
    if pk is None:
        raise ConflictError("EMAIL_TAKEN", "An operator with this e-mail address exists already.")
    return Operator(pk=pk, operator_id=operator_id, email=email, name=name, role=role)


_LIST = ListOf(models.Operator.id)


async def list_operators(conn: AsyncConnection, part: Part) -> Listed[OperatorView]:
    """Return one part of all operators."""
    return await read_list(conn, select(*_VIEW), partial(to_struct, OperatorView), _LIST, part)


async def read(conn: AsyncConnection, operator_id: str) -> OperatorView:
    """Return an operator. Raises NotFoundError."""
    row = (await conn.execute(select(*_VIEW).where(models.Operator.operator_id == operator_id))).one_or_none()
    if row is None:
        raise NotFoundError("OPERATOR_NOT_FOUND", "There is no such operator.")
    return to_struct(OperatorView, row)


async def id_of(conn: AsyncConnection, email: str) -> str:
    """Return the identifier of the operator with this address. Raises NotFoundError."""
    table = models.Operator
    operator_id: str | None = await conn.scalar(select(table.operator_id).where(table.email == email))
    if operator_id is None:
        raise _no_such_email()
    return operator_id


async def acting(conn: AsyncConnection, by: str | None, session_id: str | None = None) -> None:
    """Let one change of the operators happen at a time, by an owner who is one still: ``by`` is an operator's id.

    None stands for who has the admin key or the command line. An owner whom another one demotes or disables, or whose
    session is ended, while the owner's act waits for that is refused. Raises ForbiddenError and UnauthenticatedError.
    """
    owners = await _lock_owners(conn)
    if by is not None and by not in owners:
        raise ForbiddenError("ROLE_NOT_ALLOWED", "Only owners manage operators.")
    if session_id is not None:
        await sessions.check_going_on(conn, OPERATORS, session_id)


async def set_role(conn: AsyncConnection, operator_id: str, role: Role) -> tuple[OperatorView, Role]:
    """Give an operator another role, which holds from the next request on; return the one before, too.

    Links that the operator has issued, nobody has used, and the role may not issue are gone. Raises NotFoundError, and
    ConflictError for the last owner.
    """
    if role != "owner":
        await _keep_an_owner(conn, operator_id)
    table = models.Operator
    locked = select(table.role).where(table.operator_id == operator_id).with_for_update(key_share=True)
    former: Role = await conn.scalar(locked)
    changed = update(table).where(table.operator_id == operator_id).values(role=role)
    pk = await conn.scalar(changed.returning(table.id))
    if pk is not None:
        await _take_issued_back(conn, pk, role)
    return await read(conn, operator_id), former


async def disable(conn: AsyncConnection, operator_id: str, *, now: datetime) -> OperatorView:
    """Let an operator in no more, end all sessions, and take links back: those for the operator and from the operator.

    Doing it again changes nothing. Raises NotFoundError, and ConflictError for the last owner.
    """
    await _keep_an_owner(conn, operator_id)
    table = models.Operator
    changed = update(table).where(table.operator_id == operator_id, table.disabled_at.is_(None))
    pk = await conn.scalar(changed.values(disabled_at=now).returning(table.id))
    if pk is not None:
        await credentials.take_links_back(conn, OPERATORS, pk)
        await _take_issued_back(conn, pk, None)
        await sessions.revoke_all(conn, OPERATORS, pk, now=now)
    return await read(conn, operator_id)


async def enable(conn: AsyncConnection, operator_id: str) -> OperatorView:
    """Let an operator in again. Raises NotFoundError."""
    await conn.execute(
        update(models.Operator).where(models.Operator.operator_id == operator_id).values(disabled_at=None)
    )
    return await read(conn, operator_id)


async def issue_link(  # noqa: PLR0913  each by name
    conn: AsyncConnection, email: str, *, ids: Ids, now: datetime, lifetime_s: int, by: str | None = None
) -> str:
    """Return a token that lets an operator set a password, once and soon. ``by`` is the id of the owner who issues it.

    It works as long as that is one. None stands for who has the admin key or the command line. Raises NotFoundError
    where nobody has the address.
    """
    table = models.Operator
    pk = None if by is None else (await conn.execute(select(table.id).where(table.operator_id == by))).scalar_one()
    issued_by = None if pk is None else {"issued_by_pk": pk}
    return await credentials.issue_link(
        conn, OPERATORS, email, ids=ids, now=now, lifetime_s=lifetime_s, issued_by=issued_by
    )


async def letting_merchants_in(
    conn: AsyncConnection, by: str | None, session_id: str | None
) -> Mapping[str, int] | None:
    """Return what a link for a member says of the operator who issues it, and keep that operator so meanwhile.

    None stands for who has the admin key. An operator who is demoted, disabled or signed out while this waits is
    refused. Raises ForbiddenError and UnauthenticatedError.
    """
    if by is None:
        return None
    table = models.Operator
    kept = select(table.id).where(table.operator_id == by, table.role.in_(LET_MERCHANTS_IN), _ENABLED)
    pk = await conn.scalar(kept.with_for_update(read=True))
    if pk is None:
        raise ForbiddenError("ROLE_NOT_ALLOWED", "Only owners and operators let merchants in.")
    if session_id is not None:
        await sessions.check_going_on(conn, OPERATORS, session_id)
    return {"issued_by_operator_pk": pk}


async def reset_two_factor(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    email: str,
    *,
    password_hash: str,
    ids: Ids,
    now: datetime,
    lifetime_s: int,
    by: str | None = None,
) -> str:
    """Take authenticator and password from an operator, end all sessions, and return the token of a new link.

    The password goes because it alone would enrol another authenticator, and whoever stole it may be the faster one.
    ``password_hash`` is of one that nobody knows, and ``by`` who issues the link. Raises NotFoundError where nobody
    has the address.
    """
    await two_factor.reset(conn, OPERATORS, email, now=now)
    await conn.execute(
        update(models.Operator).where(models.Operator.email == email).values(password_hash=password_hash)
    )
    return await issue_link(conn, email, ids=ids, now=now, lifetime_s=lifetime_s, by=by)


async def _take_issued_back(conn: AsyncConnection, pk: int, role: Role | None) -> None:
    """Let no link do anything that an operator has issued and may not issue with this role, or with none."""
    of_member = models.PasswordReset
    if role != "owner":
        await conn.execute(delete(_LINK).where(_LINK.issued_by_pk == pk, _LINK.used_at.is_(None)))
    if role not in LET_MERCHANTS_IN:
        issued_by_him = of_member.issued_by_operator_pk == pk, of_member.used_at.is_(None)
        await conn.execute(delete(of_member).where(*issued_by_him))


async def _keep_an_owner(conn: AsyncConnection, operator_id: str) -> None:
    """Raise ConflictError where this operator is an owner, and there is no other who can sign in."""
    table, found = models.Operator, await _lock_owners(conn)
    if operator_id not in found:
        return
    others = select(table.id).where(table.operator_id.in_(found), table.operator_id != operator_id, _HAS_TWO_FACTOR)
    if await conn.scalar(others.limit(1)) is None:
        words = "This is the last owner who can sign in. Another owner must have signed in before."
        raise ConflictError("LAST_OWNER", words)


async def _lock_owners(conn: AsyncConnection) -> Sequence[str]:
    """Return the owners who are enabled, locked, so that one change of them happens at a time.

    Of two owners who demote each other at once, one is left: who waits for the lock reads what is true after it.
    """
    table = models.Operator
    owners = select(table.operator_id).where(table.role == "owner", _ENABLED).order_by(table.id)
    return (await conn.execute(owners.with_for_update(key_share=True))).scalars().all()
