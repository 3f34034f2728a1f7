"""API keys: how they are made, kept as hashes, looked up once per request, and taken back.

What a key may do is in its ``scopes``; from where it may come, in its ``allowed_ips``; how long, in ``expires_at``.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict
from sqlalchemy import ColumnElement, bindparam, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import AnySelect, columns_of, to_struct
from cambist.networks import Network, plain
from cambist.ports import Ids
from cambist.services.actor import Actor
from cambist.services.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from cambist.services.listing import Listed, ListOf, Part, read_list

from .merchants import Name, check_name
from .plans import plan_pk_in_force

Scope = Literal["read", "payments", "refunds", "payouts", "exchange", "accounts", "trackers"]
"""What a key may do: read everything of its project, or write what the word says."""

SCOPES: tuple[Scope, ...] = get_args(Scope)


KEYS_MAX = 50
"""Active keys of one project."""

HINT_CHARS = 12
PREFIXES = {"live": "ck_live_", "sandbox": "ck_test_"}

_KEY = re.compile(r"ck_(?:live|test)_[0-9a-hjkmnp-tv-z]{52}")

IPS_MAX = 50
"""Addresses and networks of one key."""

LIFETIME_MAX = timedelta(days=3_650)
NOTE_USE_AFTER = timedelta(seconds=60)
"""How old the note of a key's last use gets before it is renewed: a busy key is not written at every request."""


class NewKey(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new key. Without `scopes` it may do all that its maker may.

    Without `expiresAt` it works until it is taken back. `allowedIps` are the addresses and networks that it may be
    used from, such as `203.0.113.7` or `10.0.0.0/8`.
    """

    name: Name = "API key"
    scopes: Annotated[tuple[Scope, ...], Meta(min_length=1, max_length=20)] | UnsetType = UNSET
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None
    allowed_ips: Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(max_length=IPS_MAX)] = ()


class KeyView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A key as it is shown later: `hint` is its beginning, `createdBy` the member who made it.

    What was used last is noted about once a minute.
    """

    key_id: str
    name: str
    hint: str
    scopes: Sequence[str]
    allowed_ips: Sequence[str]
    expires_at: datetime | None
    last_used_at: datetime | None = None
    last_used_ip: str | None = None
    created_by: str | None
    created_at: datetime


class IssuedKey(Struct, frozen=True, kw_only=True):
    """A new key, and its secret, which is told once."""

    key: KeyView
    secret: str


def is_key(secret: str) -> bool:
    """Say whether a text has the shape of a key: one of the prefixes, and as many characters as Ids makes."""
    return _KEY.fullmatch(secret) is not None


def key_hash(secret: str) -> bytes:
    """Return what a key is stored and found by. A key has 256 random bits, so a fast hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


class KeyAccess(Struct, frozen=True, kw_only=True):
    """For whom a key acts, and what it may do. With no ``networks`` it may be used from every address.

    ``live`` says whether its merchant has been granted live mode, ``suspended`` whether it may do nothing at all.
    ``requests_per_minute`` is what the merchant's plan says; None leaves it to the operator's settings.
    """

    actor: Actor
    scopes: frozenset[str]
    networks: tuple[Network, ...]
    expires_at: datetime | None
    last_used_at: datetime | None
    live: bool
    suspended: bool
    requests_per_minute: int | None

    def allows_ip(self, ip: str) -> bool:
        """Return whether the key may be used from this address. An address that cannot be read is none of them."""
        if not self.networks:
            return True
        try:
            address = ipaddress.ip_address(ip)
        except ValueError:
            return False
        return any(address in network for network in self.networks)


def _access_by_hash() -> AnySelect:
    key, project, merchant = models.ApiKey, models.Project, models.Merchant
    return (
        select(
            *columns_of(Actor, project, key_pk=key.id, project_pk=project.id, merchant_id=merchant.merchant_id),
            *(key.scopes, key.allowed_ips, key.expires_at, key.last_used_at, merchant.live),
            merchant.suspended_at.is_not(None).label("suspended"),
            models.Plan.requests_per_minute,
        )
        .select_from(key)
        .join(project)
        .join(merchant)
        .outerjoin(models.Plan, models.Plan.id == plan_pk_in_force())
        .where(key.key_hash == bindparam("hashed"), key.revoked_at.is_(None))
    )


_ACCESS = _access_by_hash()
"""Made once: every request may need it, and making it takes longer than PostgreSQL does."""


async def find_access(conn: AsyncConnection, hashed: bytes) -> KeyAccess | None:
    """Return what the key may do, or None where it was revoked, or never was.

    Whether it has expired is for the caller to see, at each request.
    """
    found = await conn.execute(_ACCESS, {"hashed": hashed})
    row = found.one_or_none()
    if row is None:
        return None
    return KeyAccess(
        actor=to_struct(Actor, row),
        scopes=frozenset(row.scopes),
        networks=tuple(ipaddress.ip_network(text) for text in row.allowed_ips),
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        live=row.live,
        suspended=row.suspended,
        requests_per_minute=row.requests_per_minute,
    )


async def note_use(conn: AsyncConnection, key_pk: int, ip: str, *, now: datetime) -> None:
    """Write down when and from where the key was used, unless somebody did a moment ago."""
    key = models.ApiKey
    old = or_(key.last_used_at.is_(None), key.last_used_at <= now - NOTE_USE_AFTER)
    await conn.execute(update(key).where(key.id == key_pk, old).values(last_used_at=now, last_used_ip=ip))


async def issue(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    project: Actor,
    new: NewKey,
    *,
    may: Sequence[Scope] = SCOPES,
    created_by: str | None = None,
    ids: Ids,
    now: datetime,
) -> IssuedKey:
    """Make a key for the project, with scopes out of those which its maker ``may`` give: all of them by default.

    Raises InvalidError, ForbiddenError, and ConflictError when the project has as many keys as it may.
    """
    name, scopes = check_name(new.name), may if new.scopes is UNSET else new.scopes
    if beyond := [scope for scope in scopes if scope not in may]:
        words = f"You may not do what the scope {beyond[0]} lets a key do, so you cannot give it to one."
        raise ForbiddenError("SCOPE_NOT_ALLOWED", words)
    if new.expires_at is not None and not now < new.expires_at <= now + LIFETIME_MAX:
        raise InvalidError.field("expiresAt", f"must be in the future, at most {LIFETIME_MAX.days} days from now")
    # The lock lets a project's keys be counted one creation at a time.
    locked = select(models.Project.id).where(models.Project.id == project.project_pk)
    await conn.execute(locked.with_for_update(key_share=True))
    working = select(func.count()).where(*_working(project.project_pk))
    if (await conn.execute(working)).scalar_one() >= KEYS_MAX:
        raise ConflictError("TOO_MANY_API_KEYS", f"A project can have {KEYS_MAX} API keys. Delete one first.")
    secret = ids.secret(PREFIXES[project.mode])
    key = KeyView(
        key_id=ids.new("key"),
        name=name,
        hint=secret[:HINT_CHARS],
        scopes=[scope for scope in SCOPES if scope in scopes],
        allowed_ips=[_network(text) for text in new.allowed_ips],
        expires_at=new.expires_at,
        created_by=created_by,
        created_at=now,
    )
    stored = asdict(key) | {"project_pk": project.project_pk, "key_hash": key_hash(secret)}
    await conn.execute(insert(models.ApiKey).values(stored))
    return IssuedKey(key=key, secret=secret)


def _network(text: str) -> str:
    """Return the one spelling of an address or a network: the one in which whoever asks is compared with it.

    Raises InvalidError, also for an address with a zone, which says nothing to anybody but its own machine.
    """
    words = "must be IP addresses or networks, such as 203.0.113.7 or 10.0.0.0/8"
    if "%" in text:
        raise InvalidError.field("allowedIps", words)
    try:
        return str(plain(ipaddress.ip_network(text)))
    except ValueError:
        raise InvalidError.field("allowedIps", words) from None


_LIST = ListOf(models.ApiKey.id)


async def list_keys(conn: AsyncConnection, project_pk: int, part: Part) -> Listed[KeyView]:
    """Return one page of the project's keys that still work, oldest first."""
    listed = select(*columns_of(KeyView, models.ApiKey)).where(*_working(project_pk))
    return await read_list(conn, listed, partial(to_struct, KeyView), _LIST, part)


async def revoke(conn: AsyncConnection, project_pk: int, key_id: str, *, now: datetime) -> None:
    """Take a key back for good. Raises NotFoundError where there is no such working key."""
    key = models.ApiKey
    working = *_working(project_pk), key.key_id == key_id
    if await conn.scalar(update(key).where(*working).values(revoked_at=now).returning(key.id)) is None:
        raise NotFoundError("API_KEY_NOT_FOUND", "There is no such API key.")


def _working(project_pk: int) -> tuple[ColumnElement[bool], ...]:
    return models.ApiKey.project_pk == project_pk, models.ApiKey.revoked_at.is_(None)
