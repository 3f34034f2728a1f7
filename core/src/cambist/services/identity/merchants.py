"""Merchants: who they are, and how they come in."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from typing import Annotated

from msgspec import Meta
from sqlalchemy import select, true, update
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
)

from . import people
from .people import People, Person
from .sessions import SessionPrincipal

EMAIL_CHARS_MAX = 254

Name = Annotated[str, Meta(min_length=1, max_length=100)]

_EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]{1,64}@[^@\s\x00-\x1f\x7f]+")


class Merchant(Person, frozen=True, kw_only=True):
    """One who is paid. ``live`` says whether the operator has granted live mode."""

    merchant_id: str
    live: bool

    @property
    def person_id(self) -> str:
        return self.merchant_id


def _no_such_email() -> NotFoundError:
    return NotFoundError("MERCHANT_NOT_FOUND", "There is no merchant with this e-mail address.")


MERCHANTS = People(
    kind="merchant",
    table=models.Merchant,
    public_id=models.Merchant.merchant_id,
    view=Merchant,
    principal=SessionPrincipal,
    principal_columns=columns_of(
        SessionPrincipal,
        models.Session,
        merchant_pk=models.Session.person_pk,
        merchant_id=models.Merchant.merchant_id,
        live=models.Merchant.live,
    ),
    session=models.Session,
    link=models.PasswordReset,
    two_factor=models.TwoFactorState,
    recovery_code=models.RecoveryCode,
    may_sign_in=true(),
    may_have_session=true(),
    needs_two_factor=False,
    issuer="Cambist",
    step_up_path="/api/auth/step-up",
    link_prefix="pwr_",
    no_such_email=_no_such_email,
)

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


async def find_pk(conn: AsyncConnection, merchant_id: str) -> int:
    """Return a merchant's primary key. Raises NotFoundError."""
    pk = await conn.scalar(select(models.Merchant.id).where(models.Merchant.merchant_id == merchant_id))
    if pk is None:
        raise _no_such_merchant()
    return pk


def _no_such_merchant() -> NotFoundError:
    return NotFoundError("MERCHANT_NOT_FOUND", "There is no such merchant.")


async def lock_merchant(conn: AsyncConnection, merchant_pk: int) -> None:
    """Let one transaction at a time change what a merchant has, until this one ends."""
    await people.lock(conn, MERCHANTS, merchant_pk)


def check_name(text: str) -> str:
    """Return a name for people without space around it. Raises InvalidError for one that is blank."""
    name = text.strip()
    if not name or not name.isprintable():
        raise InvalidError.field("name", "must be printable text")
    return name
