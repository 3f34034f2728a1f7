"""Passwords of people who sign in, and the links by which one is set without the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Generic

from msgspec import Struct
from sqlalchemy import ColumnElement, and_, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.structs import to_struct
from cambist.ports import Ids
from cambist.services.errors import InvalidError, UnauthenticatedError

from . import people as persons
from . import sessions
from .passwords import Passwords
from .people import P, People, V


class SignIn(Struct, Generic[V], frozen=True, kw_only=True):
    """Somebody who knew the password that was in force a moment ago."""

    person: V
    password_hash: str


async def check_password(
    people: People[V, P], db: Database, *, email: str, password: str, passwords: Passwords
) -> SignIn[V]:
    """Say whose password it is. No connection is held while it is verified.

    Raises UnauthenticatedError, the same and as slowly for an unknown address as for a wrong password.
    """
    async with db.autocommit() as conn:
        wanted = select(*people.columns, people.table.password_hash).where(people.table.email == email)
        found = (await conn.execute(wanted.where(people.may_sign_in))).one_or_none()
    if not await passwords.verify(None if found is None else found.password_hash, password) or found is None:
        raise _wrong_password()
    return SignIn(person=to_struct(people.view, found), password_hash=found.password_hash)


async def lock_password(conn: AsyncConnection, people: People[V, P], sign_in: SignIn[V]) -> None:
    """Keep the password as it is until the transaction ends, so that a reset ends the session opened in it too.

    Raises UnauthenticatedError where it was changed since it was verified, or its person may not sign in any more.
    """
    person = people.table
    verified = person.id == sign_in.person.pk, person.password_hash == sign_in.password_hash, people.may_sign_in
    if await conn.scalar(select(person.id).where(*verified).with_for_update(read=True)) is None:
        raise _wrong_password()


async def lock_person(conn: AsyncConnection, people: People[V, P], pk: int, sign_in: SignIn[V] | None) -> None:
    """Let one transaction at a time change what a person has and, with ``sign_in``, keep the password as it is.

    Raises what ``lock_password`` raises.
    """
    await persons.lock(conn, people, pk)
    if sign_in is not None:
        await lock_password(conn, people, sign_in)


def _wrong_password() -> UnauthenticatedError:
    return UnauthenticatedError("INVALID_CREDENTIALS", "E-mail address or password is wrong.")


async def issue_link(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    people: People[V, P],
    email: str,
    *,
    ids: Ids,
    now: datetime,
    lifetime_s: int,
    issued_by: Mapping[str, int] | None = None,
) -> str:
    """Return a token that lets its bearer set a new password, once and soon. For whoever issues it to hand over.

    ``issued_by`` is the column of the link that names who does, with the primary key; None for the command line and the
    admin key. Raises NotFoundError where nobody has the address. An earlier token of the same person stops working.
    """
    # Locked, so that of two links issued at once, and of one issued while the password is set, the later one is left.
    wanted = select(people.table.id).where(people.table.email == email)
    pk = await conn.scalar(wanted.with_for_update(key_share=True))
    if pk is None:
        raise people.no_such_email()
    token = ids.secret(people.link_prefix)
    await take_links_back(conn, people, pk)
    expires_at = now + timedelta(seconds=lifetime_s)
    stored = {"token_hash": sessions.token_hash(token), "person_pk": pk, "expires_at": expires_at}
    await conn.execute(insert(people.link).values(stored | dict(issued_by or {})))
    return token


async def of_link(conn: AsyncConnection, people: People[V, P], token: str, *, now: datetime) -> V:
    """Return whose password a token can set.

    Raises InvalidError for one that is used, old or unknown, of somebody who may not sign in, or issued by somebody
    who may not issue it any more.
    """
    belongs = and_(people.table.id == people.link.person_pk, people.may_sign_in)
    wanted = select(*people.columns).join(people.link, belongs).where(*_good(people, token, now))
    row = (await conn.execute(wanted)).one_or_none()
    if row is None:
        raise _bad_link()
    return to_struct(people.view, row)


async def set_by_link(
    conn: AsyncConnection, people: People[V, P], token: str, password_hash: str, *, now: datetime
) -> V:
    """Set a new password, end every session, and return whose it is. Any other link of the same person stops working.

    Raises InvalidError for what ``of_link`` refuses.
    """
    person = await of_link(conn, people, token, now=now)
    if people.lock_issuers is not None:
        await people.lock_issuers(conn, person)
    await persons.lock(conn, people, person.pk)
    used = update(people.link).where(*_good(people, token, now)).values(used_at=now)
    if await conn.scalar(used.returning(people.link.person_pk)) is None:
        raise _bad_link()
    await take_links_back(conn, people, person.pk)
    await _set_password(conn, people, person.pk, password_hash, now)
    return person


def _good(people: People[V, P], token: str, now: datetime) -> Sequence[ColumnElement[bool]]:
    link = people.link
    return (
        link.token_hash == sessions.token_hash(token),
        link.used_at.is_(None),
        link.expires_at > now,
        people.link_holds,
    )


def _bad_link() -> InvalidError:
    return InvalidError("RESET_TOKEN_INVALID", "This reset link was used already or has expired.")


async def change_password(
    conn: AsyncConnection, people: People[V, P], sign_in: SignIn[V], password_hash: str, *, now: datetime
) -> None:
    """Set a new password in the place of the one that was verified, and end every session.

    A way back in that an operator handed out before stops working. Raises UnauthenticatedError where the password
    was changed since it was verified.
    """
    await lock_person(conn, people, sign_in.person.pk, sign_in)
    await take_links_back(conn, people, sign_in.person.pk)
    await _set_password(conn, people, sign_in.person.pk, password_hash, now)


async def take_links_back(conn: AsyncConnection, people: People[V, P], pk: int) -> None:
    """Let no link set this person's password that has not done so."""
    await conn.execute(delete(people.link).where(people.link.person_pk == pk, people.link.used_at.is_(None)))


async def _set_password(
    conn: AsyncConnection, people: People[V, P], pk: int, password_hash: str, now: datetime
) -> None:
    await conn.execute(update(people.table).where(people.table.id == pk).values(password_hash=password_hash))
    await sessions.revoke_all(conn, people, pk, now=now)
