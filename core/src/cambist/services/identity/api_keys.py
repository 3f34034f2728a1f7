"""API keys: how they are made, kept as hashes, looked up once per request, and taken back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import columns_of, to_struct
from cambist.ports import Ids
from cambist.services.actor import Actor
from cambist.services.errors import ConflictError, NotFoundError

KEYS_MAX = 50
"""Active keys of one project."""

HINT_CHARS = 12
PREFIXES = {"live": "ck_live_", "sandbox": "ck_test_"}

_KEY = re.compile(r"ck_(?:live|test)_[0-9a-hjkmnp-tv-z]{52}")


class KeyView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A key as it is shown later: `hint` is its beginning."""

    key_id: str
    name: str
    hint: str
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


async def find_actor(conn: AsyncConnection, hashed: bytes) -> Actor | None:
    """Return for whom the key acts, or None where it was revoked, its project is switched off, or never was."""
    key, project, merchant = models.ApiKey, models.Project, models.Merchant
    found = await conn.execute(
        select(*columns_of(Actor, project, key_pk=key.id, project_pk=project.id, merchant_id=merchant.merchant_id))
        .select_from(key)
        .join(project)
        .join(merchant)
        .where(key.key_hash == hashed, key.revoked_at.is_(None), project.is_active)
    )
    row = found.one_or_none()
    return None if row is None else to_struct(Actor, row)


async def issue(conn: AsyncConnection, project: Actor, name: str, *, ids: Ids, now: datetime) -> IssuedKey:
    """Make a key for the project. Raises ConflictError when it has as many as it may."""
    # The lock lets a project's keys be counted one creation at a time.
    locked = select(models.Project.id).where(models.Project.id == project.project_pk)
    await conn.execute(locked.with_for_update(key_share=True))
    if len(await list_keys(conn, project.project_pk)) >= KEYS_MAX:
        raise ConflictError("TOO_MANY_API_KEYS", f"A project can have {KEYS_MAX} API keys. Delete one first.")
    secret = ids.secret(PREFIXES[project.mode])
    key = KeyView(key_id=ids.new("key"), name=name, hint=secret[:HINT_CHARS], created_at=now)
    stored = asdict(key) | {"project_pk": project.project_pk, "key_hash": key_hash(secret)}
    await conn.execute(insert(models.ApiKey).values(stored))
    return IssuedKey(key=key, secret=secret)


async def list_keys(conn: AsyncConnection, project_pk: int) -> Sequence[KeyView]:
    """Return the project's keys that still work, oldest first."""
    key = models.ApiKey
    working = select(*columns_of(KeyView, key)).where(key.project_pk == project_pk, key.revoked_at.is_(None))
    return [to_struct(KeyView, row) for row in await conn.execute(working.order_by(key.id))]


async def revoke(conn: AsyncConnection, project_pk: int, key_id: str, *, now: datetime) -> None:
    """Take a key back for good. Raises NotFoundError where there is no such working key."""
    key = models.ApiKey
    working = key.project_pk == project_pk, key.key_id == key_id, key.revoked_at.is_(None)
    if await conn.scalar(update(key).where(*working).values(revoked_at=now).returning(key.id)) is None:
        raise NotFoundError("API_KEY_NOT_FOUND", "There is no such API key.")
