"""Dashboard sessions: one chain of refresh tokens each, of which only the newest is good.

A token that was already exchanged and comes again was stolen, or its thief was faster: the session ends. It also
ends after its lifetime, after so long without any request, and when its person ends it. What is here is for every
kind of ``People``: members of merchants, and operators.

**The same question again**: for ``SAME_AGAIN_S`` after it was exchanged, the token before the newest gets the newest
once more, and nothing changes. Its owner asks twice where an answer was lost on its way, and where two tabs are
restored over plain HTTP, which has no locks for them to take turns by. Each token's successor is made of it, so both
answers carry the same one, whichever reaches the browser last. A thief gains nothing that lasts: thief and owner then
hold one token, and whoever exchanges it more than ``SAME_AGAIN_S`` after the other ends the session, as ever. The time
begins with the exchange, asking again does not prolong it, and a token older than the one before ends the session at
once. It must come from the same address and the same kind of browser: to stay unseen a thief would have to have both,
and exchange within seconds of the owner each time.

**Step-up**: a session alone, which can be stolen, moves no live money and opens no access to it. For ``STEP_UP_S``
after a code of the second factor it may; ``step_up()`` says so, for this one session.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any, Generic, Literal

from msgspec import Struct
from sqlalchemy import ColumnElement, and_, bindparam, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import PersonSession
from cambist.db.structs import AnyRow, AnySelect, columns_of, one_of, to_struct
from cambist.ports import Ids
from cambist.services.errors import NotFoundError, UnauthenticatedError
from cambist.services.listing import Listed, ListOf, Part, read_list

from .people import P, People, Principal, V, having_session

TOKEN_CHARS_MAX = 256
STEP_UP_S = 300
SAME_AGAIN_S = 10
"""Pages ask again for a lost answer within less than half of it: ``ASK_AGAIN_MS`` in the dashboard's ``session.ts``."""

SESSIONS_MAX = 100
"""Open sessions of one person. With one more, the one ends that was not used for longest."""

NOTE_USE_AFTER = timedelta(seconds=60)
USER_AGENT_CHARS_MAX = 200


MemberRole = Literal["owner", "admin", "finance", "developer", "viewer"]
"""Of a merchant's members. What each may do stands in ``cambist_web/permissions.py``."""


class SessionPrincipal(Principal, frozen=True, kw_only=True):
    """A member of a merchant in person. ``live`` says whether the operator has granted live mode.

    ``role`` and ``project_pks`` are those of this moment; without the latter every project is open to the member.
    """

    member_pk: int
    member_id: str
    merchant_pk: int
    merchant_id: str
    role: MemberRole
    project_pks: Sequence[int] | None
    live: bool

    @property
    def person_pk(self) -> int:
        return self.member_pk

    @property
    def person_id(self) -> str:
        return self.member_id


class Visitor(Struct, frozen=True, kw_only=True):
    """Where a session is used from: an IP address, and what the browser calls itself."""

    ip: str
    user_agent: str | None


class SessionView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A session, for its person to recognise."""

    session_id: str
    ip: str | None
    user_agent: str | None
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime


class OpenSession(Struct, Generic[P], frozen=True, kw_only=True):
    """A session as it was just opened or prolonged, with the refresh token to use next."""

    principal: P
    refresh_token: str
    expires_at: datetime


class Replayed(Struct, frozen=True, kw_only=True):
    """A session that was going on, and has ended because a used refresh token of it was presented."""

    person_id: str
    session_id: str


class RefreshTokens:
    """Makes refresh tokens that prove where they come from, so that a used one is told from an invented one."""

    def __init__(self, key: bytes, ids: Ids) -> None:
        """Sign with ``key``, which is used for nothing else."""
        self._key = key
        self._ids = ids

    def new(self, session_id: str) -> str:
        """Return a token of this session that never was before."""
        return self._signed(session_id, self._ids.hex_secret())

    def after(self, token: str) -> str:
        """Return the token that follows one of ours: always the same, and nobody without the key can tell which."""
        # No session's identifier begins so: this is never what proves where a token comes from.
        return self._signed(token.partition(".")[0], self._mac(f"after.{token}"))

    def session_of(self, token: str) -> str | None:
        """Return the session that the token was made for, or None where we did not make it."""
        unsigned, _, mac = token.rpartition(".")
        if not token.isascii() or len(token) > TOKEN_CHARS_MAX or not hmac.compare_digest(mac, self._mac(unsigned)):
            return None
        return unsigned.partition(".")[0]

    def _signed(self, session_id: str, secret: str) -> str:
        unsigned = f"{session_id}.{secret}"
        return f"{unsigned}.{self._mac(unsigned)}"

    def _mac(self, unsigned: str) -> str:
        return hmac.digest(self._key, unsigned.encode(), "sha256").hex()


def token_hash(token: str) -> bytes:
    """Return what a token is stored and found by. It has 256 random bits, so a fast hash is enough."""
    return hashlib.sha256(token.encode()).digest()


@cache
def _used(people: People[V, P]) -> AnySelect:
    session = people.session
    which = session.session_id == bindparam("session_id"), _is_open(session, bindparam("now"), bindparam("since"))
    return having_session(people).add_columns(session.last_used_at).where(*which)


class Sessions(Generic[V, P]):
    """The use cases of one kind of people's sessions, with what they need besides a connection.

    A session ends ``lifetime_s`` after signing in, however it is used, and ``idle_s`` after it was used last.
    """

    def __init__(self, people: People[V, P], tokens: RefreshTokens, ids: Ids, *, lifetime_s: int, idle_s: int) -> None:
        self._people = people
        self._tokens = tokens
        self._ids = ids
        self._lifetime = timedelta(seconds=lifetime_s)
        self._idle = timedelta(seconds=idle_s)
        self._principal, self._used = having_session(people), _used(people)

    async def open(self, conn: AsyncConnection, person_pk: int, visitor: Visitor, *, now: datetime) -> OpenSession[P]:
        """Begin a session of somebody who has signed in. Raises UnauthenticatedError for who may have none by now."""
        session = self._people.session
        await conn.execute(delete(session).where(session.person_pk == person_pk, session.expires_at <= now))
        session_id = self._ids.new("ses")
        token = self._tokens.new(session_id)
        expires_at = now + self._lifetime
        await conn.execute(
            insert(session).values(
                session_id=session_id,
                person_pk=person_pk,
                refresh_hash=token_hash(token),
                ip=visitor.ip,
                user_agent=visitor.user_agent,
                created_at=now,
                last_used_at=now,
                expires_at=expires_at,
            )
        )
        await self._end_surplus(conn, person_pk, now)
        found = await conn.execute(self._principal.where(session.session_id == session_id))
        row = found.one_or_none()
        if row is None:
            raise session_ended()
        principal = to_struct(self._people.principal, row)
        return OpenSession(principal=principal, refresh_token=token, expires_at=expires_at)

    async def rotate(
        self, conn: AsyncConnection, token: str, visitor: Visitor, *, now: datetime
    ) -> OpenSession[P] | Replayed | None:
        """Exchange a refresh token for the next. None where it is no good; a used one revokes its session.

        But for ``SAME_AGAIN_S`` after it was exchanged, the one before the newest gets the newest again.
        Returns rather than raises, because the revocation must be committed.
        """
        session = self._people.session
        session_id = self._tokens.session_of(token)
        if session_id is None:
            return None
        following = self._tokens.after(token)
        going_on = session.session_id == session_id, self._open(now), self._people.may_have_session
        exchanged = await conn.execute(
            update(session)
            .where(*going_on, session.refresh_hash == token_hash(token), self._people.table.id == session.person_pk)
            .values(
                previous_hash=session.refresh_hash,
                refresh_hash=token_hash(following),
                rotated_at=now,
                last_used_at=now,
                ip=visitor.ip,
                user_agent=visitor.user_agent,
            )
            .returning(*self._people.principal_columns, session.expires_at)
        )
        row = exchanged.one_or_none() or await self._same_again(conn, session_id, token, visitor, now)
        if row is None:
            whose = await _revoke(conn, self._people, now, *going_on)
            return None if whose is None else Replayed(person_id=whose, session_id=session_id)
        principal = to_struct(self._people.principal, row)
        return OpenSession(principal=principal, refresh_token=following, expires_at=row.expires_at)

    async def _same_again(
        self, conn: AsyncConnection, session_id: str, token: str, visitor: Visitor, now: datetime
    ) -> AnyRow | None:
        """Return the session, to which the same is answered again, where its token was exchanged a moment ago.

        By the same browser at the same address alone: from elsewhere it is a token that somebody else has, too.
        """
        session = self._people.session
        a_moment_ago = session.rotated_at > now - timedelta(seconds=SAME_AGAIN_S)
        wanted = self._principal.add_columns(session.expires_at).where(session.session_id == session_id)
        same_visitor = session.ip == visitor.ip, session.user_agent.is_not_distinct_from(visitor.user_agent)
        exchanged = self._open(now), session.previous_hash == token_hash(token), a_moment_ago, *same_visitor
        return (await conn.execute(wanted.where(*exchanged))).one_or_none()

    async def use(self, conn: AsyncConnection, session_id: str, ip: str, *, now: datetime) -> P | None:
        """Return whose session it is, or None when it has ended. Notes about once a minute that it is used."""
        session = self._people.session
        given = {"session_id": session_id, "now": now, "since": now - self._idle}
        row = (await conn.execute(self._used, given)).one_or_none()
        if row is None:
            return None
        if row.last_used_at <= now - NOTE_USE_AFTER:
            still = session.session_id == session_id, session.last_used_at <= now - NOTE_USE_AFTER
            await conn.execute(update(session).where(*still).values(last_used_at=now, ip=ip))
        return to_struct(self._people.principal, row)

    async def open_ones(self, conn: AsyncConnection, session_ids: Sequence[str], *, now: datetime) -> Mapping[str, P]:
        """Return whose those of these sessions are that are open. That does not count as using them."""
        wanted = self._principal.where(one_of(self._people.session.session_id, session_ids), self._open(now))
        found = [to_struct(self._people.principal, row) for row in await conn.execute(wanted)]
        return {principal.session_id: principal for principal in found}

    async def list(self, conn: AsyncConnection, person_pk: int, part: Part, *, now: datetime) -> Listed[SessionView]:
        """Return one part of a person's open sessions, by when they were made (``createdAt``) or ``lastUsedAt``."""
        session = self._people.session
        wanted = select(*columns_of(SessionView, session)).where(session.person_pk == person_pk, self._open(now))
        spec = ListOf(session.id, session.created_at, orders={"lastUsedAt": session.last_used_at})
        return await read_list(conn, wanted, partial(to_struct, SessionView), spec, part)

    async def end(self, conn: AsyncConnection, person_pk: int, session_id: str, *, now: datetime) -> None:
        """End one of a person's sessions. Raises NotFoundError where there is no such open one."""
        session = self._people.session
        wanted = session.person_pk == person_pk, session.session_id == session_id, self._open(now)
        if await conn.scalar(update(session).where(*wanted).values(revoked_at=now).returning(session.id)) is None:
            raise NotFoundError("SESSION_NOT_FOUND", "There is no such open session.")

    async def _end_surplus(self, conn: AsyncConnection, person_pk: int, now: datetime) -> None:
        session = self._people.session
        going_on = session.person_pk == person_pk, self._open(now)
        newest_first = select(session.id).where(*going_on).order_by(session.last_used_at.desc(), session.id.desc())
        surplus = session.id.in_(newest_first.offset(SESSIONS_MAX))
        await conn.execute(update(session).where(surplus).values(revoked_at=now))

    def _open(self, now: datetime) -> ColumnElement[bool]:
        return _is_open(self._people.session, now, now - self._idle)


def _is_open(session: type[PersonSession], now: Any, since: Any) -> ColumnElement[bool]:  # noqa: ANN401  a parameter, too
    """Return the condition that a session has neither ended nor been unused ``since`` then."""
    return and_(session.revoked_at.is_(None), session.expires_at > now, session.last_used_at > since)


async def check_going_on(conn: AsyncConnection, people: People[V, P], session_id: str) -> None:
    """Raise UnauthenticatedError for a session that was ended meanwhile: for an act that has waited for a lock."""
    session, person = people.session, people.table
    going_on = session.session_id == session_id, session.revoked_at.is_(None), people.may_have_session
    found = select(session.id).join(person, person.id == session.person_pk).where(*going_on)
    if await conn.scalar(found) is None:
        raise session_ended()


def session_ended() -> UnauthenticatedError:
    """Return what says that a session is no good any more."""
    return UnauthenticatedError("SESSION_ENDED", "This session has ended. Sign in again.")


async def step_up(conn: AsyncConnection, people: People[V, P], session_id: str, *, until: datetime) -> None:
    """Let a session do what needs a second factor for a while. A code was shown for it."""
    session = people.session
    await conn.execute(update(session).where(session.session_id == session_id).values(step_up_until=until))


async def end_step_ups(conn: AsyncConnection, people: People[V, P], person_pk: int) -> None:
    """Take every step-up of a person back: there is no second factor any more that it could stand for."""
    session = people.session
    stepped_up = session.person_pk == person_pk, session.step_up_until.is_not(None)
    await conn.execute(update(session).where(*stepped_up).values(step_up_until=None))


async def has_come_from(conn: AsyncConnection, people: People[V, P], email: str, ip: str) -> bool:
    """Return whether this person had a session that was last used from this address."""
    session, person = people.session, people.table
    used = select(session.id).join(person, person.id == session.person_pk).where(person.email == email)
    return await conn.scalar(used.where(session.ip == ip).limit(1)) is not None


async def revoke(conn: AsyncConnection, people: People[V, P], session_id: str, *, now: datetime) -> str | None:
    """End one session at once, and return its person's identifier. Doing it again changes nothing, and returns None."""
    session = people.session
    going_on = session.revoked_at.is_(None), session.expires_at > now
    return await _revoke(conn, people, now, session.session_id == session_id, *going_on)


async def _revoke(
    conn: AsyncConnection, people: People[V, P], now: datetime, *which: ColumnElement[bool]
) -> str | None:
    of_person = people.table.id == people.session.person_pk
    ended = update(people.session).where(*which, of_person).values(revoked_at=now)
    person_id: str | None = await conn.scalar(ended.returning(people.public_id))
    return person_id


async def revoke_all(
    conn: AsyncConnection, people: People[V, P], person_pk: int, *, now: datetime, but: str = ""
) -> None:
    """End every session of a person at once, ``but`` one where it is named."""
    session = people.session
    going_on = session.person_pk == person_pk, session.revoked_at.is_(None), session.session_id != but
    await conn.execute(update(session).where(*going_on).values(revoked_at=now))
