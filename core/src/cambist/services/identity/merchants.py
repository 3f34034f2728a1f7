"""Merchants: registering, signing in, and the way back in for who forgot the password."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from datetime import datetime, timedelta

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.ports import Ids
from cambist.services.accounting import usage
from cambist.services.addresses.account_keys import claim_accounts
from cambist.services.errors import ConflictError, InvalidError, NotFoundError, UnauthenticatedError

from . import sessions
from .passwords import Passwords

EMAIL_CHARS_MAX = 254

_EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]{1,64}@[^@\s\x00-\x1f\x7f]+")


class Merchant(Struct, frozen=True, kw_only=True):
    """One who is paid. ``pk`` is for statements, ``merchant_id`` for everybody else."""

    pk: int
    merchant_id: str
    email: str
    name: str


def spelling_of(text: str) -> str:
    """Return the spelling under which the text would be stored, if it is an address: it is typed in several."""
    return unicodedata.normalize("NFC", text.strip()).lower()


def normalize_email(text: str) -> str:
    """Return the one spelling under which an address is stored. Raises InvalidError for what is none."""
    email = spelling_of(text)
    if len(email) > EMAIL_CHARS_MAX or _EMAIL.fullmatch(email) is None:
        raise InvalidError.field("email", "must be an e-mail address")
    return email


async def register(  # noqa: PLR0913  each by name
    conn: AsyncConnection, *, email: str, name: str, password_hash: str, ids: Ids, now: datetime
) -> Merchant:
    """Add a merchant, who claims the account keys that the addresses will be derived from, and gets his credits.

    Raises ConflictError for an address that is taken, UnavailableError when no keys are in stock.
    """
    merchant_id = ids.new("mer")
    result = await conn.exec_driver_sql(
        "INSERT INTO merchants (merchant_id, email, name, password_hash, created_at) VALUES ($1, $2, $3, $4, $5)"
        " ON CONFLICT (email) DO NOTHING RETURNING id",
        (merchant_id, email, name, password_hash, now),
    )
    pk = result.scalar_one_or_none()
    if pk is None:
        raise ConflictError("EMAIL_TAKEN", "A merchant with this e-mail address exists already.")
    await claim_accounts(conn, pk)
    await usage.grant_allowances(conn, [pk])
    return Merchant(pk=pk, merchant_id=merchant_id, email=email, name=name)


class SignIn(Struct, frozen=True, kw_only=True):
    """Somebody who knew the password that was in force a moment ago."""

    merchant: Merchant
    password_hash: str


async def check_password(db: Database, *, email: str, password: str, passwords: Passwords) -> SignIn:
    """Say whose password it is. No connection is held while it is verified.

    Raises UnauthenticatedError, the same and as slowly for an unknown address as for a wrong password.
    """
    async with db.autocommit() as conn:
        result = await conn.exec_driver_sql(
            "SELECT id AS pk, merchant_id, email, name, password_hash FROM merchants WHERE email = $1", (email,)
        )
        found = result.one_or_none()
    if not await passwords.verify(None if found is None else found.password_hash, password) or found is None:
        raise _wrong_password()
    merchant = Merchant(pk=found.pk, merchant_id=found.merchant_id, email=found.email, name=found.name)
    return SignIn(merchant=merchant, password_hash=found.password_hash)


async def lock_password(conn: AsyncConnection, sign_in: SignIn) -> None:
    """Keep the password as it is until the transaction ends, so that a reset ends the session opened in it too.

    Raises UnauthenticatedError where it was changed since it was verified.
    """
    result = await conn.exec_driver_sql(
        "SELECT id FROM merchants WHERE id = $1 AND password_hash = $2 FOR SHARE",
        (sign_in.merchant.pk, sign_in.password_hash),
    )
    if result.one_or_none() is None:
        raise _wrong_password()


def _wrong_password() -> UnauthenticatedError:
    return UnauthenticatedError("INVALID_CREDENTIALS", "E-mail address or password is wrong.")


async def find_pk(conn: AsyncConnection, merchant_id: str) -> int:
    """Return a merchant's primary key. Raises NotFoundError."""
    result = await conn.exec_driver_sql("SELECT id FROM merchants WHERE merchant_id = $1", (merchant_id,))
    pk: int | None = result.scalar_one_or_none()
    if pk is None:
        raise NotFoundError("MERCHANT_NOT_FOUND", "There is no such merchant.")
    return pk


async def get(conn: AsyncConnection, merchant_pk: int) -> Merchant:
    """Return a merchant that exists."""
    result = await conn.exec_driver_sql(
        "SELECT id AS pk, merchant_id, email, name FROM merchants WHERE id = $1", (merchant_pk,)
    )
    return Merchant(**result.one()._mapping)  # noqa: SLF001  SQLAlchemy's public name for it


def _reset_hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


async def issue_reset(conn: AsyncConnection, email: str, *, ids: Ids, now: datetime, lifetime_s: int) -> str:
    """Return a token that lets its bearer set a new password, once and soon. For the operator to hand over.

    Raises NotFoundError where nobody has the address. An earlier token of the same merchant stops working.
    """
    result = await conn.exec_driver_sql("SELECT id FROM merchants WHERE email = $1", (email,))
    merchant_pk = result.scalar_one_or_none()
    if merchant_pk is None:
        raise NotFoundError("MERCHANT_NOT_FOUND", "There is no merchant with this e-mail address.")
    await conn.exec_driver_sql("DELETE FROM password_resets WHERE merchant_pk = $1 AND used_at IS NULL", (merchant_pk,))
    token = ids.secret("pwr_")
    await conn.exec_driver_sql(
        "INSERT INTO password_resets (token_hash, merchant_pk, expires_at) VALUES ($1, $2, $3)",
        (_reset_hash(token), merchant_pk, now + timedelta(seconds=lifetime_s)),
    )
    return token


async def reset_password(conn: AsyncConnection, token: str, password_hash: str, *, now: datetime) -> None:
    """Set a new password and end every session. Raises InvalidError for a token that is used, old or unknown."""
    result = await conn.exec_driver_sql(
        "UPDATE password_resets SET used_at = $2 WHERE token_hash = $1 AND used_at IS NULL AND expires_at > $2"
        " RETURNING merchant_pk",
        (_reset_hash(token), now),
    )
    merchant_pk = result.scalar_one_or_none()
    if merchant_pk is None:
        raise InvalidError("RESET_TOKEN_INVALID", "This reset link was used already or has expired.")
    await conn.exec_driver_sql("UPDATE merchants SET password_hash = $2 WHERE id = $1", (merchant_pk, password_hash))
    await sessions.revoke_all(conn, merchant_pk, now=now)


def check_name(text: str) -> str:
    """Return a name for people without space around it. Raises InvalidError for one that is blank."""
    name = text.strip()
    if not name or not name.isprintable():
        raise InvalidError.field("name", "must be printable text")
    return name
