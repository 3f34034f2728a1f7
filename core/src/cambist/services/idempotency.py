"""One key, one effect: the key's row comes first, so that a concurrent twin waits for it instead of running too.

Reads the key of a request, takes it, and decides what a key that was used before means. A payment's key is taken by
the statement that stores the payment (``payments/create.py``), the keys of a batch's rows together (``batch_rows.py``).
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct, structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.named import Statement
from cambist.domain.money import same_value

from .actor import Actor
from .errors import ConflictError, InvalidError, check_text

KEY_CHARS_MAX = 255
AMOUNTS = ("amount", "src_amount")
"""The fields of requests that hold amounts."""

_encoder = msgspec.json.Encoder(order="deterministic", decimal_format="number")

Asked = TypeVar("Asked", bound=Struct)
Resource = TypeVar("Resource")


class Claim(Struct, frozen=True, kw_only=True):
    """A key as one request uses it. ``request_hash`` is of everything that was asked, but for the key itself."""

    merchant_pk: int
    project_pk: int
    mode: str
    operation: str
    key: str
    request_hash: bytes


class Made(Struct, Generic[Resource], frozen=True):
    """What a request has led to, and whether the same key had made it before."""

    resource: Resource
    replayed: bool


class UsedKey(Protocol):
    """What a row of a key that was used before says."""

    @property
    def project_pk(self) -> int: ...
    @property
    def request_hash(self) -> bytes: ...
    @property
    def resource_id(self) -> str: ...


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
    check_text(key, field)
    return key


def by_value(request: Asked, **changed: Any) -> Asked:  # noqa: ANN401  fields of the request, of any type
    """Return what a request asks for, however it is spelled: without its key, and ``12.50`` as ``12.5``."""
    for name in AMOUNTS:
        if isinstance(text := getattr(request, name, None), str):
            changed[name] = same_value(text)
    return structs.replace(request, idempotency_key=None, **changed)


def hash_request(request: object) -> bytes:
    """Digest a decoded request: the order and spacing of its JSON do not matter."""
    return hashlib.sha256(_encoder.encode(request)).digest()


def claim_of(actor: Actor, operation: str, key: str | None, asked: object) -> Claim | None:
    """Return the key, if there is one, as this request uses it. ``asked`` is all else that was asked for."""
    if key is None:
        return None
    return Claim(
        merchant_pk=actor.merchant_pk,
        project_pk=actor.project_pk,
        mode=actor.mode,
        operation=operation,
        key=key,
        request_hash=hash_request(asked),
    )


TAKE_KEY = """
INSERT INTO idempotency_keys (merchant_pk, mode, operation, key, project_pk, request_hash, resource_id, created_at)
SELECT :merchant_pk, :mode, :operation, :key, :project_pk, :request_hash, :resource_id, :now{source}
ON CONFLICT DO NOTHING RETURNING key
"""
"""Takes a key where ``source`` lets it; no row comes back where it was taken before."""
IS_KEY = "merchant_pk = :merchant_pk AND mode = :mode AND operation = :operation AND key = :key"

_TAKE = Statement(TAKE_KEY.format(source=""))
_LEAD = Statement(f"UPDATE idempotency_keys SET resource_id = :resource_id WHERE {IS_KEY}")  # noqa: S608  constants
_FIND = Statement(f"SELECT project_pk, request_hash, resource_id FROM idempotency_keys WHERE {IS_KEY}")  # noqa: S608


async def take_key(conn: AsyncConnection, claim: Claim | None, resource_id: str, now: datetime) -> str | None:
    """Take the key, if there is one, for a new resource, and return None; or what it led to where it was taken before.

    Waits for a twin that is taking it. Raises ConflictError where it was used for something else.
    """
    if claim is None:
        return None
    taken = await _TAKE.run(conn, structs.asdict(claim) | {"resource_id": resource_id, "now": now})
    if taken.one_or_none() is not None:
        return None
    before = await find_replayed(conn, claim)
    if before is None:
        raise AssertionError("the key is there: that is why it could not be inserted")
    return before


async def lead_to(conn: AsyncConnection, claim: Claim | None, resource_id: str) -> None:
    """Have a key that this transaction took lead to something that was there before."""
    if claim is None:
        return
    await _LEAD.run(conn, structs.asdict(claim) | {"resource_id": resource_id})


async def find_replayed(conn: AsyncConnection, claim: Claim) -> str | None:
    """Return what the key led to before, or None where it is free.

    Raises ConflictError where it was used for something else.
    """
    used = (await _FIND.run(conn, structs.asdict(claim))).one_or_none()
    return None if used is None else refuse_other_use(claim, used)


def refuse_other_use(claim: Claim, used: UsedKey) -> str:
    """Return what a used key led to, from its row. Raises ConflictError where it was used for something else."""
    if used.project_pk != claim.project_pk:
        raise ConflictError(
            "IDEMPOTENCY_KEY_OTHER_PROJECT", "This idempotency key is already bound to a different project."
        )
    refuse_other_content(claim.request_hash, used.request_hash)
    return used.resource_id


def refuse_other_content(asked: bytes, used: bytes) -> None:
    """Raise ConflictError where a key was used for a request of another hash."""
    if asked != used:
        raise ConflictError(
            "IDEMPOTENCY_KEY_REUSED", "This idempotency key was already used for a request with another content."
        )
