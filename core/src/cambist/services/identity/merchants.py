"""Merchants: registering, signing in, and the way back in for who forgot the password."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Meta, Struct
from sqlalchemy import ColumnElement, delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.engine import Database
from cambist.db.structs import columns_of, to_struct
from cambist.ports import Ids
from cambist.services.accounting import usage
from cambist.services.addresses.account_keys import claim_accounts
from cambist.services.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnauthenticatedError,
)

from . import sessions
from .passwords import Passwords

EMAIL_CHARS_MAX = 254

Name = Annotated[str, Meta(min_length=1, max_length=100)]

_EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]{1,64}@[^@\s\x00-\x1f\x7f]+")


class Merchant(Struct, frozen=True, kw_only=True):
    """One who is paid. ``pk`` is for statements, ``merchant_id`` for everybody else.

    ``live`` says whether the operator has granted live mode.
    """

    pk: int
    merchant_id: str
    email: str
    name: str
    live: bool


_COLUMNS = columns_of(Merchant, models.Merchant)


def spelling_of(text: str) -> str:
    """Return the spelling under which the text would be stored, if it is an address: it is typed in several."""
    return unicodedata.normalize("NFC", text.strip()).lower()


def is_email(email: str) -> bool:
    """Say whether a spelling is that of an e-mail address."""
    return len(email) <= EMAIL_CHARS_MAX and _EMAIL.fullmatch(email) is not None


def normalize_email(text: str) -> str:
    """Return the one spelling under which an address is stored. Raises InvalidError for what is none."""
    email = spelling_of(text)
    if not is_email(email):
        raise InvalidError.field("email", "must be an e-mail address")
    return email


async def register(  # noqa: PLR0913  each by name
    conn: AsyncConnection, *, email: str, name: str, password_hash: str, ids: Ids, now: datetime, live: bool = False
) -> Merchant:
    """Add a merchant, who claims the account keys that the addresses will be derived from, and is given usage credits.

    ``live`` grants live mode at once. Raises ConflictError for an address that is taken, UnavailableError when no keys
    are in stock.
    """
    merchant_id = ids.new("mer")
    pk = await conn.scalar(
        insert(models.Merchant)
        .values(merchant_id=merchant_id, email=email, name=name, password_hash=password_hash, live=live, created_at=now)
        .on_conflict_do_nothing(index_elements=[models.Merchant.email])
        .returning(models.Merchant.id)
    )
    if pk is None:
        raise ConflictError("EMAIL_TAKEN", "A merchant with this e-mail address exists already.")
    await claim_accounts(conn, pk)
    await usage.grant_allowances(conn, [pk])
    return Merchant(pk=pk, merchant_id=merchant_id, email=email, name=name, live=live)


async def grant_live(conn: AsyncConnection, merchant_id: str, *, live: bool) -> Merchant:
    """Grant a merchant live mode, or take it back. Raises NotFoundError."""
    changed = update(models.Merchant).where(models.Merchant.merchant_id == merchant_id).values(live=live)
    row = (await conn.execute(changed.returning(*_COLUMNS))).one_or_none()
    if row is None:
        raise _no_such_merchant()
    return to_struct(Merchant, row)


def live_not_granted() -> ForbiddenError:
    """Return the refusal of live mode to a merchant who has not been granted it."""
    words = "The operator has not granted live mode to this merchant. Sandbox projects need no grant."
    return ForbiddenError("LIVE_NOT_GRANTED", words)


class SignIn(Struct, frozen=True, kw_only=True):
    """Somebody who knew the password that was in force a moment ago."""

    merchant: Merchant
    password_hash: str


async def check_password(db: Database, *, email: str, password: str, passwords: Passwords) -> SignIn:
    """Say whose password it is. No connection is held while it is verified.

    Raises UnauthenticatedError, the same and as slowly for an unknown address as for a wrong password.
    """
    async with db.autocommit() as conn:
        wanted = select(*_COLUMNS, models.Merchant.password_hash).where(models.Merchant.email == email)
        found = (await conn.execute(wanted)).one_or_none()
    if not await passwords.verify(None if found is None else found.password_hash, password) or found is None:
        raise _wrong_password()
    return SignIn(merchant=to_struct(Merchant, found), password_hash=found.password_hash)


async def lock_password(conn: AsyncConnection, sign_in: SignIn) -> None:
    """Keep the password as it is until the transaction ends, so that a reset ends the session opened in it too.

    Raises UnauthenticatedError where it was changed since it was verified.
    """
    merchant = models.Merchant
    verified = merchant.id == sign_in.merchant.pk, merchant.password_hash == sign_in.password_hash
    if await conn.scalar(select(merchant.id).where(*verified).with_for_update(read=True)) is None:
        raise _wrong_password()


def _wrong_password() -> UnauthenticatedError:
    return UnauthenticatedError("INVALID_CREDENTIALS", "E-mail address or password is wrong.")


async def find_pk(conn: AsyncConnection, merchant_id: str) -> int:
    """Return a merchant's primary key. Raises NotFoundError."""
    pk = await conn.scalar(select(models.Merchant.id).where(models.Merchant.merchant_id == merchant_id))
    if pk is None:
        raise _no_such_merchant()
    return pk


def _no_such_merchant() -> NotFoundError:
    return NotFoundError("MERCHANT_NOT_FOUND", "There is no such merchant.")


async def get(conn: AsyncConnection, merchant_pk: int) -> Merchant:
    """Return a merchant that exists."""
    found = await conn.execute(select(*_COLUMNS).where(models.Merchant.id == merchant_pk))
    return to_struct(Merchant, found.one())


async def lock_merchant(conn: AsyncConnection, merchant_pk: int) -> None:
    """Let one transaction at a time change what a merchant has, until this one ends."""
    locked = select(models.Merchant.id).where(models.Merchant.id == merchant_pk)
    await conn.execute(locked.with_for_update(key_share=True))


async def issue_reset(conn: AsyncConnection, email: str, *, ids: Ids, now: datetime, lifetime_s: int) -> str:
    """Return a token that lets its bearer set a new password, once and soon. For the operator to hand over.

    Raises NotFoundError where nobody has the address. An earlier token of the same merchant stops working.
    """
    merchant_pk = await conn.scalar(select(models.Merchant.id).where(models.Merchant.email == email))
    if merchant_pk is None:
        raise NotFoundError("MERCHANT_NOT_FOUND", "There is no merchant with this e-mail address.")
    reset, token = models.PasswordReset, ids.secret("pwr_")
    await conn.execute(delete(reset).where(reset.merchant_pk == merchant_pk, reset.used_at.is_(None)))
    expires_at = now + timedelta(seconds=lifetime_s)
    await conn.execute(
        insert(reset).values(token_hash=sessions.token_hash(token), merchant_pk=merchant_pk, expires_at=expires_at)
    )
    return token


async def of_reset(conn: AsyncConnection, token: str, *, now: datetime) -> Merchant:
    """Return whose password a token can set. Raises InvalidError for one that is used, old or unknown."""
    wanted = select(*_COLUMNS).join(models.PasswordReset).where(*_good_reset(token, now))
    row = (await conn.execute(wanted)).one_or_none()
    if row is None:
        raise _bad_reset()
    return to_struct(Merchant, row)


async def reset_password(conn: AsyncConnection, token: str, password_hash: str, *, now: datetime) -> str:
    """Set a new password, end every session, and return the merchant's id.

    Raises InvalidError for a token that is used, old or unknown.
    """
    merchant = await of_reset(conn, token, now=now)
    await lock_merchant(conn, merchant.pk)
    reset = models.PasswordReset
    used = update(reset).where(*_good_reset(token, now)).values(used_at=now)
    if await conn.scalar(used.returning(reset.merchant_pk)) is None:
        raise _bad_reset()
    return await _set_password(conn, merchant.pk, password_hash, now)


def _good_reset(token: str, now: datetime) -> Sequence[ColumnElement[bool]]:
    reset = models.PasswordReset
    return reset.token_hash == sessions.token_hash(token), reset.used_at.is_(None), reset.expires_at > now


def _bad_reset() -> InvalidError:
    return InvalidError("RESET_TOKEN_INVALID", "This reset link was used already or has expired.")


async def change_password(conn: AsyncConnection, sign_in: SignIn, password_hash: str, *, now: datetime) -> None:
    """Set a new password in the place of the one that was verified, and end every session.

    A way back in that the operator handed out before stops working. Raises UnauthenticatedError where the password
    was changed since it was verified.
    """
    await lock_merchant(conn, sign_in.merchant.pk)
    await lock_password(conn, sign_in)
    reset = models.PasswordReset
    await conn.execute(delete(reset).where(reset.merchant_pk == sign_in.merchant.pk, reset.used_at.is_(None)))
    await _set_password(conn, sign_in.merchant.pk, password_hash, now)


async def _set_password(conn: AsyncConnection, merchant_pk: int, password_hash: str, now: datetime) -> str:
    merchant = models.Merchant
    changed = update(merchant).where(merchant.id == merchant_pk).values(password_hash=password_hash)
    merchant_id: str = (await conn.execute(changed.returning(merchant.merchant_id))).scalar_one()
    await sessions.revoke_all(conn, merchant_pk, now=now)
    return merchant_id


def check_name(text: str) -> str:
    """Return a name for people without space around it. Raises InvalidError for one that is blank."""
    name = text.strip()
    if not name or not name.isprintable():
        raise InvalidError.field("name", "must be printable text")
    return name
