"""Merchants: who is paid. The people who sign in for one are in ``members.py``."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import columns_of, to_struct
from cambist.ports import Ids
from cambist.services.accounting import usage
from cambist.services.addresses.account_keys import claim_accounts
from cambist.services.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    merchant_suspended,
)
from cambist.services.outgoing_limits import MerchantLimit
from cambist.services.versions import check_version

EMAIL_CHARS_MAX = 254

Name = Annotated[str, Meta(min_length=1, max_length=100)]

_EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]{1,64}@[^@\s\x00-\x1f\x7f]+")


class Merchant(Struct, frozen=True, kw_only=True):
    """One who is paid. ``live`` says whether the operator has granted live mode. ``pk`` is for statements."""

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


async def add(  # noqa: PLR0913  each by name
    conn: AsyncConnection, *, email: str, name: str, ids: Ids, now: datetime, live: bool
) -> Merchant:
    """Add a merchant for which nobody can sign in yet: see ``members.register()``. ``live`` grants live mode at once.

    Raises ConflictError for an address that is taken.
    """
    merchant_id = ids.new("mer")
    pk = await conn.scalar(
        insert(models.Merchant)
        .values(merchant_id=merchant_id, email=email, name=name, live=live, created_at=now)
        .on_conflict_do_nothing(index_elements=[models.Merchant.email])
        .returning(models.Merchant.id)
    )
    if pk is None:
        raise ConflictError("EMAIL_TAKEN", "A merchant with this e-mail address exists already.")
    return Merchant(pk=pk, merchant_id=merchant_id, email=email, name=name, live=live)


async def equip(conn: AsyncConnection, merchant_pk: int) -> None:
    """Let a new merchant claim the account keys that the addresses will be derived from, and give it usage credits.

    Raises UnavailableError when no keys are in stock.
    """
    await claim_accounts(conn, merchant_pk)
    await usage.grant_allowances(conn, [merchant_pk])


async def grant_live(conn: AsyncConnection, merchant_id: str, *, live: bool) -> Merchant:
    """Grant a merchant live mode, or take it back. Raises NotFoundError."""
    changed = update(models.Merchant).where(models.Merchant.merchant_id == merchant_id).values(live=live)
    row = (await conn.execute(changed.returning(*_COLUMNS))).one_or_none()
    if row is None:
        raise no_such_merchant()
    return to_struct(Merchant, row)


def live_not_granted() -> ForbiddenError:
    """Return the refusal of live mode to a merchant who has not been granted it."""
    words = "The operator has not granted live mode to this merchant. Sandbox projects need no grant."
    return ForbiddenError("LIVE_NOT_GRANTED", words)


async def find_pk(conn: AsyncConnection, merchant_id: str) -> int:
    """Return a merchant's primary key. Raises NotFoundError."""
    pk = await conn.scalar(select(models.Merchant.id).where(models.Merchant.merchant_id == merchant_id))
    if pk is None:
        raise no_such_merchant()
    return pk


def no_such_merchant() -> NotFoundError:
    """Return the refusal for a merchant that does not exist."""
    return NotFoundError("MERCHANT_NOT_FOUND", "There is no such merchant.")


async def set_limits(
    conn: AsyncConnection, merchant_id: str, limits: Mapping[str, MerchantLimit], *, version: int
) -> int:
    """Replace the limits that hold for a merchant alone, which are still of this version; return the new one.

    Whoever sets them has checked them. Raises NotFoundError, ConflictError.
    """
    merchant = models.Merchant
    locked = select(merchant.limits_version).where(merchant.merchant_id == merchant_id)
    now = await conn.scalar(locked.with_for_update(key_share=True))
    if now is None:
        raise no_such_merchant()
    check_version(version, now)
    changed = update(merchant).where(merchant.merchant_id == merchant_id)
    await conn.execute(changed.values(limits=msgspec.to_builtins(limits), limits_version=now + 1))
    return now + 1


async def lock_merchant(conn: AsyncConnection, merchant_pk: int) -> None:
    """Let one transaction at a time change what a merchant has, until this one ends."""
    locked = select(models.Merchant.id).where(models.Merchant.id == merchant_pk)
    await conn.execute(locked.with_for_update(key_share=True))


async def is_live(conn: AsyncConnection, merchant_pk: int) -> bool:
    """Return whether the operator has granted a merchant that exists live mode."""
    found = await conn.execute(select(models.Merchant.live).where(models.Merchant.id == merchant_pk))
    return found.scalar_one()


async def refuse_suspended(conn: AsyncConnection, merchant_pk: int) -> None:
    """Refuse a merchant that the operator has suspended. Raises ForbiddenError."""
    suspended = models.Merchant.id == merchant_pk, models.Merchant.suspended_at.is_not(None)
    if await conn.scalar(select(models.Merchant.id).where(*suspended)) is not None:
        raise merchant_suspended()


def check_name(text: str) -> str:
    """Return a name for people without space around it. Raises InvalidError for one that is blank."""
    name = text.strip()
    if not name or not name.isprintable():
        raise InvalidError.field("name", "must be printable text")
    return name
