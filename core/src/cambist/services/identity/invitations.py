"""Invitations to a merchant's team: made, listed, taken back, and accepted.

Whoever is invited gets a link, which whoever invites hands over; the password is set by it, once. An invitation goes
with the member who made it, and with the role by which it was made.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct
from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import columns_of, to_struct
from cambist.ports import Ids
from cambist.services.errors import ConflictError, InvalidError, NotFoundError
from cambist.services.listing import Listed, ListOf, Part, read_list

from .members import Member
from .merchants import lock_merchant
from .sessions import MemberRole, SessionPrincipal, token_hash
from .team import MEMBERS_MAX, Share, acting, project_ids_of, project_pks_of, roles_given_by

TOKEN_PREFIX = "inv_"  # noqa: S105  of tokens


class InvitationView(Struct, frozen=True, kw_only=True, rename="camel"):
    """Somebody who is invited. The link is shown once, when the invitation is made."""

    invitation_id: str
    email: str
    name: str
    role: MemberRole
    project_ids: Sequence[str] | None
    invited_by: str
    expires_at: datetime
    created_at: datetime


class Invited(Struct, frozen=True, kw_only=True):
    """To what somebody is invited, as the link's bearer sees it. ``merchant_id`` is for the audit log."""

    merchant_name: str
    merchant_id: str
    merchant_pk: int
    email: str
    name: str
    role: MemberRole
    expires_at: datetime


_INVITED_BY = (
    select(models.Member.member_id)
    .where(models.Member.id == models.MemberInvitation.invited_by_pk)
    .correlate(models.MemberInvitation)
    .scalar_subquery()
)
_INVITATION = columns_of(
    InvitationView,
    models.MemberInvitation,
    project_ids=project_ids_of(models.MemberInvitation),
    invited_by=_INVITED_BY,
)


_LIST = ListOf(models.MemberInvitation.id)


async def list_open(conn: AsyncConnection, merchant_pk: int, part: Part, *, now: datetime) -> Listed[InvitationView]:
    """Return one part of the invitations of a merchant that are still good."""
    table = models.MemberInvitation
    good = table.merchant_pk == merchant_pk, table.expires_at > now
    listed = select(*_INVITATION).where(*good)
    return await read_list(conn, listed, partial(to_struct, InvitationView), _LIST, part)


async def make(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    by: SessionPrincipal,
    share: Share,
    *,
    email: str,
    name: str,
    ids: Ids,
    now: datetime,
    lifetime_s: int,
) -> tuple[InvitationView, str]:
    """Invite somebody; return the invitation and its token. An earlier invitation of the same address is replaced.

    Raises ForbiddenError for a role that whoever invites may not give, InvalidError for projects that the merchant
    does not have, and ConflictError where the address is a member's, or the team is full.
    """
    by = await acting(conn, by, share.role)
    project_pks = await project_pks_of(conn, by.merchant_pk, share)
    if await conn.scalar(select(models.Member.id).where(models.Member.email == email)) is not None:
        raise _email_taken()
    table = models.MemberInvitation
    gone = (table.email == email) | (table.expires_at <= now)
    await conn.execute(delete(table).where(table.merchant_pk == by.merchant_pk, gone))
    people = select(func.count()).where(models.Member.merchant_pk == by.merchant_pk).scalar_subquery()
    invited = select(func.count()).where(table.merchant_pk == by.merchant_pk).scalar_subquery()
    if (await conn.execute(select(people + invited))).scalar_one() >= MEMBERS_MAX:
        words = f"A merchant can have {MEMBERS_MAX} members, with those who are invited."
        raise ConflictError("TOO_MANY_MEMBERS", words)
    invitation_id, token = ids.new("inv"), ids.secret(TOKEN_PREFIX)
    await conn.execute(
        insert(table).values(
            invitation_id=invitation_id,
            merchant_pk=by.merchant_pk,
            invited_by_pk=by.member_pk,
            email=email,
            name=name,
            role=share.role,
            project_pks=project_pks,
            token_hash=token_hash(token),
            expires_at=now + timedelta(seconds=lifetime_s),
            created_at=now,
        )
    )
    row = (await conn.execute(select(*_INVITATION).where(table.invitation_id == invitation_id))).one()
    return to_struct(InvitationView, row), token


async def revoke(conn: AsyncConnection, by: SessionPrincipal, invitation_id: str) -> str:
    """Take an invitation back, and return whose address it was for. Raises NotFoundError where it is no more."""
    by = await acting(conn, by)
    table = models.MemberInvitation
    revoked = delete(table).where(table.merchant_pk == by.merchant_pk, table.invitation_id == invitation_id)
    email: str | None = await conn.scalar(revoked.returning(table.email))
    if email is None:
        raise NotFoundError("INVITATION_NOT_FOUND", "There is no such invitation.")
    return email


async def of_token(conn: AsyncConnection, token: str, *, now: datetime) -> Invited:
    """Return to what a token invites. Raises InvalidError for one that is used, old, taken back or unknown."""
    table, merchant = models.MemberInvitation, models.Merchant
    columns = columns_of(Invited, table, merchant_name=merchant.name, merchant_id=merchant.merchant_id)
    wanted = select(*columns).join(merchant, merchant.id == table.merchant_pk)
    row = (
        await conn.execute(wanted.where(table.token_hash == token_hash(token), table.expires_at > now))
    ).one_or_none()
    if row is None:
        raise _bad_invitation()
    return to_struct(Invited, row)


async def accept(conn: AsyncConnection, token: str, *, password_hash: str, ids: Ids, now: datetime) -> Member:
    """Make the bearer of a token a member. The token is used up.

    Raises what ``of_token`` raises, also where who invited may not give the role by now, and ConflictError where the
    address became a member's since.
    """
    invited = await of_token(conn, token, now=now)
    # Behind the lock of whoever changes the team: what was taken from the inviter meanwhile is seen.
    await lock_merchant(conn, invited.merchant_pk)
    table, inviter = models.MemberInvitation, models.Member
    by = select(inviter.role).where(inviter.id == table.invited_by_pk).correlate(table).scalar_subquery()
    used = delete(table).where(table.token_hash == token_hash(token))
    row = (await conn.execute(used.returning(table.role, table.project_pks, by.label("by")))).one_or_none()
    if row is None or row.role not in roles_given_by(row.by):
        raise _bad_invitation()
    member_id = ids.new("mem")
    stored = {"member_id": member_id, "email": invited.email, "name": invited.name, "role": row.role}
    stored |= {"merchant_pk": invited.merchant_pk, "project_pks": row.project_pks}
    made = (
        insert(models.Member)
        .values(**stored, password_hash=password_hash, created_at=now)
        .on_conflict_do_nothing(index_elements=[models.Member.email])
    )
    pk = await conn.scalar(made.returning(models.Member.id))
    if pk is None:
        raise _email_taken()
    return Member(
        pk=pk,
        member_id=member_id,
        email=invited.email,
        name=invited.name,
        merchant_pk=invited.merchant_pk,
        merchant_id=invited.merchant_id,
    )


def _email_taken() -> ConflictError:
    return ConflictError("EMAIL_TAKEN", "Somebody with this e-mail address signs in here already.")


def _bad_invitation() -> InvalidError:
    return InvalidError("INVITATION_INVALID", "This invitation was used already, was taken back, or has expired.")
