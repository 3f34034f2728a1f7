"""A merchant's team: who belongs to it, with which role, for which projects, and who is invited.

Whoever is invited gets a link, which whoever invites hands over; the password is set by it, once. There is always an
owner left. Owners alone make owners, change them and let them go. What else a role may do is in
``cambist_web/permissions.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, get_args

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace
from sqlalchemy import ColumnElement, case, delete, func, null, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import AnyRow, columns_of, to_struct
from cambist.ports import Ids
from cambist.services.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from cambist.services.listing import Listed, ListOf, Part, read_list
from cambist.services.versions import check_version, need_version

from . import credentials, two_factor
from .members import MEMBERS, has_two_factor
from .merchants import lock_merchant
from .sessions import MemberRole, SessionPrincipal, check_going_on

MEMBER_ROLES: Sequence[MemberRole] = get_args(MemberRole)
WHOLE_ROLES: Sequence[MemberRole] = ("owner", "admin")
"""Whoever has one of these acts in every project, and manages the team."""

MEMBERS_MAX = 100
"""Members of one merchant, and people who are invited."""


class MemberView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A member, as the others see each other. Without `projectIds` every project is open to them."""

    member_id: str
    email: str
    name: str
    role: MemberRole
    project_ids: Sequence[str] | None
    has_two_factor: bool
    version: int
    created_at: datetime


class Share(NamedTuple):
    """What is somebody's in the team: the role, and the projects by their public ids. None stands for all of them."""

    role: MemberRole
    project_ids: Sequence[str] | None


def project_ids_of(table: type[models.Member | models.MemberInvitation]) -> ColumnElement[Any]:
    listed = select(models.Project.project_id).where(models.Project.id == func.any(table.project_pks))
    listed = listed.order_by(models.Project.id).correlate(table)
    return case((table.project_pks.is_(None), null()), else_=func.array(listed.scalar_subquery()))


_MEMBER = columns_of(
    MemberView, models.Member, project_ids=project_ids_of(models.Member), has_two_factor=has_two_factor()
)


_LIST = ListOf(models.Member.id)


async def list_members(conn: AsyncConnection, merchant_pk: int, part: Part) -> Listed[MemberView]:
    """Return one part of a merchant's members."""
    listed = select(*_MEMBER).where(models.Member.merchant_pk == merchant_pk)
    return await read_list(conn, listed, partial(to_struct, MemberView), _LIST, part)


async def read(conn: AsyncConnection, merchant_pk: int, member_id: str) -> MemberView:
    """Return a member. Raises NotFoundError for one that is another merchant's, or nobody's."""
    wanted = select(*_MEMBER).where(models.Member.merchant_pk == merchant_pk, models.Member.member_id == member_id)
    row = (await conn.execute(wanted)).one_or_none()
    if row is None:
        raise NotFoundError("MEMBER_NOT_FOUND", "There is no such member.")
    return to_struct(MemberView, row)


async def change(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    by: SessionPrincipal,
    member_id: str,
    *,
    role: MemberRole | UnsetType,
    project_ids: Sequence[str] | UnsetType | None,
    version: int | UnsetType = UNSET,
) -> tuple[MemberView, MemberView]:
    """Give a member another role, or other projects, which hold from the next request on; return before and after.

    Invitations to what the member may not give any more are gone, and ways back in that one has issued who is no owner
    any more. A list of projects replaces what is there, so it needs the ``version`` that was read. Raises
    ForbiddenError for a role that whoever changes it may not give, InvalidError for projects that the merchant does not
    have, NotFoundError, and ConflictError for the last owner and for a member who was changed since.
    """
    if project_ids is not UNSET:
        need_version(version, "projectIds")
    by = await acting(conn, by, None if role is UNSET else role)
    member = await _find(conn, by, member_id)
    before = await read(conn, by.merchant_pk, member_id)
    check_version(version, before.version)
    share = Share(before.role if role is UNSET else role, before.project_ids if project_ids is UNSET else project_ids)
    if project_ids is UNSET and share.role in WHOLE_ROLES:
        share = share._replace(project_ids=None)
    project_pks = await project_pks_of(conn, by.merchant_pk, share)
    if share.role != "owner":
        await _keep_an_owner(conn, member)
        invitation, link = models.MemberInvitation, models.PasswordReset
        made = invitation.invited_by_pk == member.id, ~invitation.role.in_(roles_given_by(share.role))
        await conn.execute(delete(invitation).where(*made))
        await conn.execute(delete(link).where(link.issued_by_pk == member.id, link.used_at.is_(None)))
    changed = update(models.Member).where(models.Member.id == member.id)
    values = {"role": share.role, "project_pks": project_pks, "version": models.Member.version + 1}
    await conn.execute(changed.values(values))
    return before, await read(conn, by.merchant_pk, member_id)


async def remove(
    conn: AsyncConnection, by: SessionPrincipal, member_id: str, *, with_keys: bool, now: datetime
) -> tuple[MemberView, int]:
    """Let a member go: with sessions, second factor and invitations; return who it was.

    With ``with_keys`` the API keys that the member made are revoked, too; the number says how many. Raises
    NotFoundError, ForbiddenError for an owner whom somebody else lets go, and ConflictError for the last owner.
    """
    by = await acting(conn, by)
    member = await _find(conn, by, member_id)
    view = await _remove(conn, by, member)
    if not with_keys:
        return view, 0
    key, project = models.ApiKey, models.Project
    owned = select(project.id).where(project.merchant_pk == by.merchant_pk)
    made = key.created_by == member_id, key.project_pk.in_(owned), key.revoked_at.is_(None)
    revoked = await conn.execute(update(key).where(*made).values(revoked_at=now))
    return view, revoked.rowcount


async def leave(conn: AsyncConnection, by: SessionPrincipal) -> MemberView:
    """Let a member go who wishes to, whatever the role. Raises ConflictError for the last owner."""
    await _lock_team(conn, by)
    member = await _find(conn, by, by.member_id)
    return await _remove(conn, by, member)


async def recover(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    by: SessionPrincipal,
    member_id: str,
    *,
    password_hash: str,
    ids: Ids,
    now: datetime,
    lifetime_s: int,
) -> tuple[MemberView, str]:
    """Take authenticator and password from another member, end all sessions, and return the token of a new link.

    The password goes because whoever stole it might enrol the next authenticator. ``password_hash`` is of one that
    nobody knows. The link works as long as whoever asks for it is an owner. Raises NotFoundError, and ForbiddenError
    for oneself: no session alone takes a second factor away.
    """
    by = await acting(conn, by)
    member = await _find(conn, by, member_id)
    if member.id == by.member_pk:
        raise ForbiddenError("NOT_YOURSELF", "Another owner lets you back in, or a recovery code of yours.")
    view = await read(conn, by.merchant_pk, member_id)
    await two_factor.reset(conn, MEMBERS, view.email, now=now)
    changed = update(models.Member).where(models.Member.id == member.id)
    await conn.execute(changed.values(password_hash=password_hash))
    issued_by = {"issued_by_pk": by.member_pk}
    issue = partial(credentials.issue_link, ids=ids, now=now, lifetime_s=lifetime_s, issued_by=issued_by)
    token = await issue(conn, MEMBERS, view.email)
    return await read(conn, by.merchant_pk, member_id), token


def roles_given_by(role: MemberRole) -> Sequence[MemberRole]:
    """Return the roles that somebody with this one may give: owners all, and who else manages the team all but that."""
    if role not in WHOLE_ROLES:
        return ()
    return [given for given in MEMBER_ROLES if given != "owner" or role == "owner"]


async def acting(conn: AsyncConnection, by: SessionPrincipal, gives: MemberRole | None = None) -> SessionPrincipal:
    """Let one such change of a team happen at a time, by a member who still manages it; return that member as of now.

    Two owners who demote each other at once do so one after the other, and the second is refused; so is who was signed
    out meanwhile.
    """
    await _lock_team(conn, by)
    role: MemberRole | None = await conn.scalar(select(models.Member.role).where(models.Member.id == by.member_pk))
    if role is None or role not in WHOLE_ROLES:
        raise ForbiddenError("ROLE_NOT_ALLOWED", "Only owners and admins manage the team.")
    if gives is not None and gives not in roles_given_by(role):
        raise _owners_only("makes somebody an owner")
    return replace(by, role=role)


async def _lock_team(conn: AsyncConnection, by: SessionPrincipal) -> None:
    """Let one change of a team happen at a time. Raises UnauthenticatedError for a session that has ended by then."""
    await lock_merchant(conn, by.merchant_pk)
    # The demo's month is told without sessions.
    if by.session_id:
        await check_going_on(conn, MEMBERS, by.session_id)


async def _find(conn: AsyncConnection, by: SessionPrincipal, member_id: str) -> AnyRow:
    """Return a member as the merchant's lock keeps it. Raises NotFoundError, and ForbiddenError for an owner."""
    table = models.Member
    wanted = select(table.id, table.member_id, table.role).where(
        table.merchant_pk == by.merchant_pk, table.member_id == member_id
    )
    row = (await conn.execute(wanted)).one_or_none()
    if row is None:
        raise NotFoundError("MEMBER_NOT_FOUND", "There is no such member.")
    if row.role == "owner" and by.role != "owner":
        raise _owners_only("changes an owner, or lets one go")
    return row


def _owners_only(act: str) -> ForbiddenError:
    return ForbiddenError("ROLE_NOT_ALLOWED", f"Only an owner {act}.")


async def _keep_an_owner(conn: AsyncConnection, member: AnyRow) -> None:
    if member.role != "owner":
        return
    table, own = models.Member, models.Member.id == member.id
    merchant_pk = select(table.merchant_pk).where(own).scalar_subquery()
    others = select(table.id).where(table.merchant_pk == merchant_pk, table.role == "owner", table.id != member.id)
    if await conn.scalar(others.limit(1)) is None:
        raise ConflictError("LAST_OWNER", "This is the last owner. Make somebody else an owner first.")


async def _remove(conn: AsyncConnection, by: SessionPrincipal, member: AnyRow) -> MemberView:
    await _keep_an_owner(conn, member)
    view = await read(conn, by.merchant_pk, member.member_id)
    await conn.execute(delete(models.Member).where(models.Member.id == member.id))
    return view


async def project_pks_of(conn: AsyncConnection, merchant_pk: int, share: Share) -> Sequence[int] | None:
    """Return the primary keys of the projects. Raises InvalidError for what the merchant does not have."""
    if share.project_ids is None:
        return None
    if share.role in WHOLE_ROLES:
        raise InvalidError.field("projectIds", f"must be left out: every project is open to {share.role}s")
    project = models.Project
    owned = select(project.id, project.project_id).where(
        project.merchant_pk == merchant_pk, project.project_id.in_(share.project_ids)
    )
    found = {row.project_id: row.id for row in await conn.execute(owned)}
    if unknown := sorted(set(share.project_ids) - set(found)):
        raise InvalidError.field("projectIds", f"must be projects of this merchant; {unknown[0]} is none")
    return sorted(found.values())
