"""Members: the people who sign in for a merchant. Who signs up is the first."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace
from sqlalchemy import ColumnElement, and_, or_, select, true, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import aliased

from cambist.db import models
from cambist.db.structs import columns_of
from cambist.ports import Ids
from cambist.services.errors import ConflictError, NotFoundError

from . import merchants, operators
from .people import People, Person
from .sessions import SessionPrincipal, check_going_on, session_ended


class Member(Person, frozen=True, kw_only=True):
    """One who signs in for a merchant."""

    member_id: str
    merchant_pk: int
    merchant_id: str

    @property
    def person_id(self) -> str:
        return self.member_id


def _no_such_email() -> NotFoundError:
    return NotFoundError("MERCHANT_NOT_FOUND", "There is no merchant with this e-mail address.")


_OF_MEMBER = models.Merchant.id == models.Member.merchant_pk
_MERCHANT_ID = select(models.Merchant.merchant_id).where(_OF_MEMBER).correlate(models.Member).scalar_subquery()
_LIVE = select(models.Merchant.live).where(_OF_MEMBER).correlate(models.Member).scalar_subquery()
_SUSPENDED = select(models.Merchant.id).where(_OF_MEMBER, models.Merchant.suspended_at.is_not(None))

_ISSUER = aliased(models.Member)
_LINK = models.PasswordReset
_ISSUED_BY_OWNER = select(_ISSUER.id).where(_ISSUER.id == _LINK.issued_by_pk, _ISSUER.role == "owner").correlate(_LINK)
_ISSUED_BY_OPERATOR = operators.issued(_LINK.issued_by_operator_pk, operators.LET_MERCHANTS_IN).correlate(_LINK)


async def _lock_issuers(conn: AsyncConnection, member: Member) -> None:
    """Keep every role in the member's team as it is until the transaction ends."""
    await merchants.lock_merchant(conn, member.merchant_pk)


MEMBERS = People(
    kind="member",
    table=models.Member,
    public_id=models.Member.member_id,
    view=Member,
    more_columns={"merchant_id": _MERCHANT_ID},
    principal=SessionPrincipal,
    principal_columns=columns_of(
        SessionPrincipal,
        models.Session,
        member_pk=models.Session.person_pk,
        member_id=models.Member.member_id,
        merchant_pk=models.Member.merchant_pk,
        merchant_id=_MERCHANT_ID,
        role=models.Member.role,
        project_pks=models.Member.project_pks,
        live=_LIVE,
    ),
    session=models.Session,
    link=_LINK,
    two_factor=models.TwoFactorState,
    recovery_code=models.RecoveryCode,
    may_sign_in=true(),
    may_have_session=~_SUSPENDED.correlate(models.Member).exists(),
    needs_two_factor=False,
    issuer="Cambist",
    step_up_path="/api/auth/step-up",
    link_prefix="pwr_",
    link_holds=and_(
        or_(_LINK.issued_by_pk.is_(None), _ISSUED_BY_OWNER.exists()),
        or_(_LINK.issued_by_operator_pk.is_(None), _ISSUED_BY_OPERATOR.exists()),
    ),
    lock_issuers=_lock_issuers,
    no_such_email=_no_such_email,
)


async def register(  # noqa: PLR0913  each by name
    conn: AsyncConnection, *, email: str, name: str, password_hash: str, ids: Ids, now: datetime, live: bool = False
) -> Member:
    """Add a merchant, and the member who signs in for it.

    Raises ConflictError for an address that is taken by a merchant or a member, and what ``merchants.equip`` raises.
    """
    merchant = await merchants.add(conn, email=email, name=name, ids=ids, now=now, live=live)
    member_id = ids.new("mem")
    stored = {"member_id": member_id, "merchant_pk": merchant.pk, "email": email, "name": name}
    pk = await conn.scalar(
        insert(models.Member)
        .values(**stored, password_hash=password_hash, created_at=now)
        .on_conflict_do_nothing(index_elements=[models.Member.email])
        .returning(models.Member.id)
    )
    if pk is None:
        raise ConflictError("EMAIL_TAKEN", "A merchant with this e-mail address exists already.")
    await merchants.equip(conn, merchant.pk)
    return Member(
        pk=pk,
        member_id=member_id,
        email=email,
        name=name,
        merchant_pk=merchant.pk,
        merchant_id=merchant.merchant_id,
    )


def has_two_factor() -> ColumnElement[bool]:
    """Return the condition on a member that an authenticator is in force."""
    state = models.TwoFactorState
    enrolled = state.person_pk == models.Member.id, state.secret_encrypted.is_not(None)
    return select(state.person_pk).where(*enrolled).correlate(models.Member).exists()


async def merchant_of(conn: AsyncConnection, member_id: str) -> str:
    """Return the identifier of the merchant whose member this is. The member exists."""
    wanted = select(models.Merchant.merchant_id).join(models.Member, _OF_MEMBER)
    merchant_id: str = (await conn.execute(wanted.where(models.Member.member_id == member_id))).scalar_one()
    return merchant_id


async def lock_member(conn: AsyncConnection, by: SessionPrincipal) -> SessionPrincipal:
    """Return a member as read after a lock that an act has waited for; nobody changes it until the transaction ends.

    For acts that leave access behind: whoever ends the session, changes the role or removes the member meanwhile waits,
    and then finds what was made. Raises UnauthenticatedError where that is done already.
    """
    member, session = models.Member, models.Session
    # The member first, as everybody locks both.
    kept = select(member.role, member.project_pks).where(member.id == by.member_pk)
    row = (await conn.execute(kept.with_for_update(read=True))).one_or_none()
    if row is None:
        raise session_ended()
    await conn.execute(select(session.id).where(session.session_id == by.session_id).with_for_update(read=True))
    await check_going_on(conn, MEMBERS, by.session_id)
    return replace(by, role=row.role, project_pks=row.project_pks)


async def sign_out_all(conn: AsyncConnection, merchant_pk: int, *, now: datetime) -> None:
    """End every session of every member of a merchant at once."""
    whose = select(models.Member.id).where(models.Member.merchant_pk == merchant_pk)
    going_on = models.Session.person_pk.in_(whose), models.Session.revoked_at.is_(None)
    await conn.execute(update(models.Session).where(*going_on).values(revoked_at=now))
