"""One key, one effect: the key's row comes first, so that a concurrent twin waits for it instead of running too.

The statement that does the work inserts the row itself (``payments/create.py`` shows how). What is here reads
the key of a request, and decides what a key that was used before means.
"""

from __future__ import annotations

import hashlib

import msgspec
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from .errors import ConflictError, InvalidError

KEY_CHARS_MAX = 255


class Claim(Struct, frozen=True, kw_only=True):
    """A key as one request uses it. ``request_hash`` is of everything that was asked, but for the key itself."""

    merchant_row: int
    project_row: int
    mode: str
    operation: str
    key: str
    request_hash: bytes


def choose_key(header: str | None, body: str | None) -> str | None:
    """Return the key of a request that may carry it in its header, in its body, or not at all."""
    if header is not None and body is not None and header != body:
        raise InvalidError(
            "IDEMPOTENCY_KEY_MISMATCH", "The header Idempotency-Key and the field idempotencyKey are not the same."
        )
    key, field = (header, "Idempotency-Key") if header is not None else (body, "idempotencyKey")
    if key is None:
        return None
    if not 1 <= len(key) <= KEY_CHARS_MAX:
        raise InvalidError.field(field, f"must have 1 to {KEY_CHARS_MAX} characters")
    if header is not None and not header.isascii():
        # Nobody can tell how it was encoded, so the same key in a body could look like another one.
        raise InvalidError.field(field, "must be ASCII text; in the body, it can be any text")
    if "\0" in key:
        raise InvalidError.field(field, "must not contain the character NUL")
    return key


def hash_request(request: object) -> bytes:
    """Digest a decoded request: the order and spacing of its JSON do not matter."""
    return hashlib.sha256(msgspec.json.encode(request, order="deterministic")).digest()


async def find_replayed(conn: AsyncConnection, claim: Claim) -> str | None:
    """Return what the key led to before, or None where it is free.

    Raises ConflictError where it was used for something else.
    """
    found = await conn.exec_driver_sql(
        "SELECT project_id, request_hash, resource_id FROM idempotency_keys"
        " WHERE merchant_id = $1 AND mode = $2 AND operation = $3 AND key = $4",
        (claim.merchant_row, claim.mode, claim.operation, claim.key),
    )
    row = found.first()
    return None if row is None else refuse_other_use(claim, (row.project_id, row.request_hash, row.resource_id))


def refuse_other_use(claim: Claim, used: tuple[int, bytes, str]) -> str:
    """Return what a used key led to: ``used`` is its project, the digest of its request, and the resource.

    Raises ConflictError where it was used for something else.
    """
    project_row, request_hash, resource_id = used
    if project_row != claim.project_row:
        raise ConflictError(
            "IDEMPOTENCY_KEY_OTHER_PROJECT", "This idempotency key is already bound to a different project."
        )
    if request_hash != claim.request_hash:
        raise ConflictError(
            "IDEMPOTENCY_KEY_REUSED", "This idempotency key was already used for a request with another content."
        )
    return resource_id
