"""Dashboard sessions: one chain of refresh tokens each, of which only the newest is good.

A token that was already exchanged and comes again was stolen, or its thief was faster: the session ends. It also
ends after its lifetime, after so long without any request, and when its merchant ends it.

**Step-up**: a session alone, which can be stolen, moves no live money and opens no live access. For ``STEP_UP_S`` after
a code of the second factor it may; ``step_up()`` says so, for this one session.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct
from sqlalchemy import ColumnElement, and_, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Merchant, Session
from cambist.db.structs import columns_of, to_struct
from cambist.ports import Ids
from cambist.services.errors import NotFoundError
from cambist.services.paging import Page, read_page

TOKEN_CHARS_MAX = 256
STEP_UP_S = 300

SESSIONS_MAX = 100
"""Open sessions of one merchant. With one more, the one ends that was not used for longest."""

NOTE_USE_AFTER = timedelta(seconds=60)
USER_AGENT_CHARS_MAX = 200


class SessionPrincipal(Struct, frozen=True, kw_only=True):
    """A merchant in person. ``live`` says whether the operator has granted live mode."""

    merchant_pk: int
    merchant_id: str
    session_id: str
    live: bool
    step_up_until: datetime | None = None

    def has_stepped_up(self, now: datetime) -> bool:
        return self.step_up_until is not None and now < self.step_up_until


class Visitor(Struct, frozen=True, kw_only=True):
    """Where a session is used from: an IP address, and what the browser calls itself."""

    ip: str
    user_agent: str | None


class SessionView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A session, for its merchant to recognise."""

    session_id: str
    ip: str | None
    user_agent: str | None
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime


_PRINCIPAL = columns_of(SessionPrincipal, Session, merchant_id=Merchant.merchant_id, live=Merchant.live)


class OpenSession(Struct, frozen=True, kw_only=True):
    """A session as it was just opened or prolonged, with the refresh token to use next."""

    principal: SessionPrincipal
    refresh_token: str
    expires_at: datetime


class Replayed(Struct, frozen=True, kw_only=True):
    """A session that was going on, and has ended because a used refresh token of it was presented."""

    merchant_id: str
    session_id: str


class RefreshTokens:
    """Makes refresh tokens that prove where they come from, so that a used one is told from an invented one."""

    def __init__(self, key: bytes, ids: Ids) -> None:
        """Sign with ``key``, which is used for nothing else."""
        self._key = key
        self._ids = ids

    def new(self, session_id: str) -> str:
        """Return a token of this session that never was before."""
        unsigned = f"{session_id}.{self._ids.hex_secret()}"
        return f"{unsigned}.{self._mac(unsigned)}"

    def session_of(self, token: str) -> str | None:
        """Return the session that the token was made for, or None where we did not make it."""
        unsigned, _, mac = token.rpartition(".")
        if not token.isascii() or len(token) > TOKEN_CHARS_MAX or not hmac.compare_digest(mac, self._mac(unsigned)):
            return None
        return unsigned.partition(".")[0]

    def _mac(self, unsigned: str) -> str:
        return hmac.digest(self._key, unsigned.encode(), "sha256").hex()


def token_hash(token: str) -> bytes:
    """Return what a token is stored and found by. It has 256 random bits, so a fast hash is enough."""
    return hashlib.sha256(token.encode()).digest()


class Sessions:
    """The use cases of sessions, with what they need besides a connection.

    A session ends ``lifetime_s`` after signing in, however it is used, and ``idle_s`` after it was used last.
    """

    def __init__(self, tokens: RefreshTokens, ids: Ids, *, lifetime_s: int, idle_s: int) -> None:
        self._tokens = tokens
        self._ids = ids
        self._lifetime = timedelta(seconds=lifetime_s)
        self._idle = timedelta(seconds=idle_s)

    async def open(
        self, conn: AsyncConnection, merchant_pk: int, merchant_id: str, visitor: Visitor, *, now: datetime
    ) -> OpenSession:
        """Begin a session of a merchant who has signed in."""
        await conn.execute(delete(Session).where(Session.merchant_pk == merchant_pk, Session.expires_at <= now))
        session_id = self._ids.new("ses")
        token = self._tokens.new(session_id)
        expires_at = now + self._lifetime
        live = await conn.scalar(
            insert(Session)
            .values(
                session_id=session_id,
                merchant_pk=merchant_pk,
                refresh_hash=token_hash(token),
                ip=visitor.ip,
                user_agent=visitor.user_agent,
                created_at=now,
                last_used_at=now,
                expires_at=expires_at,
            )
            .returning(select(Merchant.live).where(Merchant.id == merchant_pk).scalar_subquery())
        )
        await self._end_surplus(conn, merchant_pk, now)
        principal = SessionPrincipal(
            merchant_pk=merchant_pk, merchant_id=merchant_id, session_id=session_id, live=bool(live)
        )
        return OpenSession(principal=principal, refresh_token=token, expires_at=expires_at)

    async def rotate(
        self, conn: AsyncConnection, token: str, visitor: Visitor, *, now: datetime
    ) -> OpenSession | Replayed | None:
        """Exchange a refresh token for the next. None where it is no good; a used one revokes its session.

        Returns rather than raises, because the revocation must be committed.
        """
        session_id = self._tokens.session_of(token)
        if session_id is None:
            return None
        following = self._tokens.new(session_id)
        newest = Session.refresh_hash == token_hash(token), Merchant.id == Session.merchant_pk
        exchanged = await conn.execute(
            update(Session)
            .where(Session.session_id == session_id, self._open(now), *newest)
            .values(
                previous_hash=Session.refresh_hash,
                refresh_hash=token_hash(following),
                last_used_at=now,
                ip=visitor.ip,
                user_agent=visitor.user_agent,
            )
            .returning(*_PRINCIPAL, Session.expires_at)
        )
        row = exchanged.one_or_none()
        if row is None:
            merchant_id = await _revoke(conn, now, Session.session_id == session_id, self._open(now))
            return None if merchant_id is None else Replayed(merchant_id=merchant_id, session_id=session_id)
        principal = to_struct(SessionPrincipal, row)
        return OpenSession(principal=principal, refresh_token=following, expires_at=row.expires_at)

    async def use(self, conn: AsyncConnection, session_id: str, ip: str, *, now: datetime) -> SessionPrincipal | None:
        """Return whose session it is, or None when it has ended. Notes about once a minute that it is used."""
        wanted = select(*_PRINCIPAL, Session.last_used_at).join(Merchant)
        found = await conn.execute(wanted.where(Session.session_id == session_id, self._open(now)))
        row = found.one_or_none()
        if row is None:
            return None
        if row.last_used_at <= now - NOTE_USE_AFTER:
            still = Session.session_id == session_id, Session.last_used_at <= now - NOTE_USE_AFTER
            await conn.execute(update(Session).where(*still).values(last_used_at=now, ip=ip))
        return to_struct(SessionPrincipal, row)

    async def list(
        self, conn: AsyncConnection, merchant_pk: int, *, now: datetime, page: int, limit: int
    ) -> Page[SessionView]:
        """Return one page of a merchant's open sessions, the one used last first."""
        wanted = select(*columns_of(SessionView, Session)).where(Session.merchant_pk == merchant_pk, self._open(now))
        listed = wanted.order_by(Session.last_used_at.desc(), Session.id.desc())
        return await read_page(conn, listed, partial(to_struct, SessionView), page=page, limit=limit)

    async def end(self, conn: AsyncConnection, merchant_pk: int, session_id: str, *, now: datetime) -> None:
        """End one of a merchant's sessions. Raises NotFoundError where there is no such open one."""
        wanted = Session.merchant_pk == merchant_pk, Session.session_id == session_id, self._open(now)
        if await conn.scalar(update(Session).where(*wanted).values(revoked_at=now).returning(Session.id)) is None:
            raise NotFoundError("SESSION_NOT_FOUND", "There is no such open session.")

    async def _end_surplus(self, conn: AsyncConnection, merchant_pk: int, now: datetime) -> None:
        going_on = Session.merchant_pk == merchant_pk, self._open(now)
        newest_first = select(Session.id).where(*going_on).order_by(Session.last_used_at.desc(), Session.id.desc())
        surplus = Session.id.in_(newest_first.offset(SESSIONS_MAX))
        await conn.execute(update(Session).where(surplus).values(revoked_at=now))

    def _open(self, now: datetime) -> ColumnElement[bool]:
        return and_(Session.revoked_at.is_(None), Session.expires_at > now, Session.last_used_at > now - self._idle)


async def step_up(conn: AsyncConnection, session_id: str, *, until: datetime) -> None:
    """Let a session do what needs a second factor for a while. A code was shown for it."""
    await conn.execute(update(Session).where(Session.session_id == session_id).values(step_up_until=until))


async def end_step_ups(conn: AsyncConnection, merchant_pk: int) -> None:
    """Take every step-up of a merchant back: there is no second factor any more that it could stand for."""
    stepped_up = Session.merchant_pk == merchant_pk, Session.step_up_until.is_not(None)
    await conn.execute(update(Session).where(*stepped_up).values(step_up_until=None))


async def has_come_from(conn: AsyncConnection, email: str, ip: str) -> bool:
    """Return whether this merchant had a session that was last used from this address."""
    used = select(Session.id).join(Merchant).where(Merchant.email == email, Session.ip == ip)
    return await conn.scalar(used.limit(1)) is not None


async def revoke(conn: AsyncConnection, session_id: str, *, now: datetime) -> str | None:
    """End one session at once, and return its merchant's id. Doing it again changes nothing, and returns None."""
    going_on = Session.revoked_at.is_(None), Session.expires_at > now
    return await _revoke(conn, now, Session.session_id == session_id, *going_on)


async def _revoke(conn: AsyncConnection, now: datetime, *which: ColumnElement[bool]) -> str | None:
    ended = update(Session).where(*which, Merchant.id == Session.merchant_pk).values(revoked_at=now)
    merchant_id: str | None = await conn.scalar(ended.returning(Merchant.merchant_id))
    return merchant_id


async def revoke_all(conn: AsyncConnection, merchant_pk: int, *, now: datetime, but: str = "") -> None:
    """End every session of a merchant at once, ``but`` one where it is named."""
    going_on = Session.merchant_pk == merchant_pk, Session.revoked_at.is_(None), Session.session_id != but
    await conn.execute(update(Session).where(*going_on).values(revoked_at=now))
