"""Dashboard sessions: one chain of refresh tokens each, of which only the newest is good.

A token that was already exchanged and comes again was stolen, or its thief was faster: the session ends.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from sqlalchemy import ColumnElement, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Merchant, Session
from cambist.db.structs import columns_of, to_struct
from cambist.ports import Ids

TOKEN_CHARS_MAX = 256


class SessionPrincipal(Struct, frozen=True, kw_only=True):
    """A merchant in person."""

    merchant_pk: int
    merchant_id: str
    session_id: str


_PRINCIPAL = columns_of(SessionPrincipal, Session, merchant_id=Merchant.merchant_id)


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


async def open_session(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    *,
    merchant_pk: int,
    merchant_id: str,
    tokens: RefreshTokens,
    ids: Ids,
    now: datetime,
    lifetime_s: int,
) -> OpenSession:
    """Begin a session of a merchant who has signed in. It ends after ``lifetime_s``, however it is used."""
    await conn.execute(delete(Session).where(Session.merchant_pk == merchant_pk, Session.expires_at <= now))
    session_id = ids.new("ses")
    token = tokens.new(session_id)
    expires_at = now + timedelta(seconds=lifetime_s)
    await conn.execute(
        insert(Session).values(
            session_id=session_id,
            merchant_pk=merchant_pk,
            refresh_hash=token_hash(token),
            created_at=now,
            expires_at=expires_at,
        )
    )
    principal = SessionPrincipal(merchant_pk=merchant_pk, merchant_id=merchant_id, session_id=session_id)
    return OpenSession(principal=principal, refresh_token=token, expires_at=expires_at)


async def rotate(
    conn: AsyncConnection, token: str, *, tokens: RefreshTokens, now: datetime
) -> OpenSession | Replayed | None:
    """Exchange a refresh token for the next. None where it is no good; a used one revokes its session.

    Returns rather than raises, because the revocation must be committed.
    """
    session_id = tokens.session_of(token)
    if session_id is None:
        return None
    following = tokens.new(session_id)
    exchanged = await conn.execute(
        update(Session)
        .where(*_open(session_id, now), Session.refresh_hash == token_hash(token), Merchant.id == Session.merchant_pk)
        .values(previous_hash=Session.refresh_hash, refresh_hash=token_hash(following))
        .returning(*_PRINCIPAL, Session.expires_at)
    )
    row = exchanged.one_or_none()
    if row is None:
        merchant_id = await revoke(conn, session_id, now=now)
        return None if merchant_id is None else Replayed(merchant_id=merchant_id, session_id=session_id)
    principal = to_struct(SessionPrincipal, row)
    return OpenSession(principal=principal, refresh_token=following, expires_at=row.expires_at)


async def find_principal(conn: AsyncConnection, session_id: str, *, now: datetime) -> SessionPrincipal | None:
    """Return whose session it is, or None when it has ended."""
    found = await conn.execute(select(*_PRINCIPAL).join(Merchant).where(*_open(session_id, now)))
    row = found.one_or_none()
    return None if row is None else to_struct(SessionPrincipal, row)


def _open(session_id: str, now: datetime) -> Sequence[ColumnElement[bool]]:
    return Session.session_id == session_id, Session.revoked_at.is_(None), Session.expires_at > now


async def revoke(conn: AsyncConnection, session_id: str, *, now: datetime) -> str | None:
    """End one session at once, and return its merchant's id. Doing it again changes nothing, and returns None."""
    ended = update(Session).where(*_open(session_id, now), Merchant.id == Session.merchant_pk).values(revoked_at=now)
    merchant_id: str | None = await conn.scalar(ended.returning(Merchant.merchant_id))
    return merchant_id


async def revoke_all(conn: AsyncConnection, merchant_pk: int, *, now: datetime, but: str = "") -> None:
    """End every session of a merchant at once, ``but`` one where it is named."""
    going_on = Session.merchant_pk == merchant_pk, Session.revoked_at.is_(None), Session.session_id != but
    await conn.execute(update(Session).where(*going_on).values(revoked_at=now))
