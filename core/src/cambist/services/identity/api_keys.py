"""API keys: how they are made, kept as hashes, looked up once per request, and taken back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.ports import Ids
from cambist.services.actor import Actor
from cambist.services.errors import ConflictError, NotFoundError

KEYS_MAX = 50
"""Active keys of one project."""

HINT_CHARS = 12
PREFIXES = {"live": "ck_live_", "sandbox": "ck_test_"}


class ApiKey(Struct, frozen=True, kw_only=True):
    """What is known of a key. ``hint`` is its beginning; the rest is known to its owner alone."""

    key_id: str
    name: str
    hint: str
    created_at: datetime


class IssuedKey(Struct, frozen=True, kw_only=True):
    """A new key, and its secret, which is told once."""

    key: ApiKey
    secret: str


def key_hash(secret: str) -> bytes:
    """Return what a key is stored and found by. A key has 256 random bits, so a fast hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


async def find_actor(conn: AsyncConnection, hashed: bytes) -> Actor | None:
    """Return for whom the key acts, or None where it was revoked, its project is switched off, or never was."""
    result = await conn.exec_driver_sql(
        "SELECT k.id AS key_pk, p.id AS project_pk, p.project_id, p.mode, m.id AS merchant_pk, m.merchant_id"
        " FROM api_keys k JOIN projects p ON p.id = k.project_pk JOIN merchants m ON m.id = p.merchant_pk"
        " WHERE k.key_hash = $1 AND k.revoked_at IS NULL AND p.is_active",
        (hashed,),
    )
    row = result.one_or_none()
    return None if row is None else Actor(**row._mapping)  # noqa: SLF001  SQLAlchemy's public name for it


async def issue(conn: AsyncConnection, project: Actor, name: str, *, ids: Ids, now: datetime) -> IssuedKey:
    """Make a key for the project. Raises ConflictError when it has as many as it may."""
    # The lock lets a project's keys be counted one creation at a time.
    await conn.exec_driver_sql("SELECT FROM projects WHERE id = $1 FOR NO KEY UPDATE", (project.project_pk,))
    if len(await list_keys(conn, project.project_pk)) >= KEYS_MAX:
        raise ConflictError("TOO_MANY_API_KEYS", f"A project can have {KEYS_MAX} API keys. Delete one first.")
    secret = ids.secret(PREFIXES[project.mode])
    key = ApiKey(key_id=ids.new("key"), name=name, hint=secret[:HINT_CHARS], created_at=now)
    await conn.exec_driver_sql(
        "INSERT INTO api_keys (key_id, project_pk, name, hint, key_hash, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
        (key.key_id, project.project_pk, key.name, key.hint, key_hash(secret), now),
    )
    return IssuedKey(key=key, secret=secret)


async def list_keys(conn: AsyncConnection, project_pk: int) -> Sequence[ApiKey]:
    """Return the project's keys that still work, oldest first."""
    rows = await conn.exec_driver_sql(
        "SELECT key_id, name, hint, created_at FROM api_keys WHERE project_pk = $1 AND revoked_at IS NULL ORDER BY id",
        (project_pk,),
    )
    return [ApiKey(**row._mapping) for row in rows]  # noqa: SLF001  SQLAlchemy's public name for it


async def revoke(conn: AsyncConnection, project_pk: int, key_id: str, *, now: datetime) -> None:
    """Take a key back for good. Raises NotFoundError where there is no such working key."""
    result = await conn.exec_driver_sql(
        "UPDATE api_keys SET revoked_at = $3 WHERE project_pk = $1 AND key_id = $2 AND revoked_at IS NULL RETURNING id",
        (project_pk, key_id, now),
    )
    if result.one_or_none() is None:
        raise NotFoundError("API_KEY_NOT_FOUND", "There is no such API key.")
