"""Signing secrets of projects, their endpoints and trackers: sealed in the database, opened to sign."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType

from msgspec import Struct
from sqlalchemy import case
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import AnySelect, Column
from cambist.secrets import SecretsBox

FIELD = "projects.webhook_secret_encrypted"
TRACKER_FIELD = "trackers.secret_encrypted"
ENDPOINT_FIELD = "webhook_endpoints.secret_encrypted"
"""The secret before is bound to the same name as the present one: it is moved as it is."""
OF_KEY_PURPOSE = "signing secret of an idempotency key"
CACHE_MAX = 10_000
OVERLAP_MINUTES_MAX = 1_440

NO_CHECK: Mapping[str, object] = MappingProxyType({"signature_check": None, "signature_checked_at": None})
"""What is set where URL or secret become others: nobody knows what the receiver does with those."""
NO_PREVIOUS: Mapping[str, object] = MappingProxyType({"previous_secret_encrypted": None, "previous_secret_until": None})


def previous_secret(present: Column, overlap: timedelta, now: datetime) -> Mapping[str, object]:
    """Return what a rotation sets beside the new secret: what keeps the present one in use until the overlap ends."""
    if not overlap:
        return NO_PREVIOUS
    return {"previous_secret_encrypted": present, "previous_secret_until": case((present.is_not(None), now + overlap))}


class Rotation(Struct, frozen=True, kw_only=True):
    """A secret that replaced another one, which signs beside it until ``previous_until`` where that is set.

    ``replayed`` says that an earlier request under the same key did so.
    """

    secret: str
    rotated_at: datetime
    previous_until: datetime | None
    replayed: bool = False


class SigningSecrets:
    """Seals and opens signing secrets, each bound to the public id of whose it is, and to ``field``, its column.

    What was opened is remembered by what was sealed, so a rotated secret is in force with the next row read.
    """

    def __init__(self, box: SecretsBox) -> None:
        self._box = box

        @lru_cache(CACHE_MAX)
        def opened(owner_id: str, sealed: bytes, field: str) -> str:
            return box.decrypt(sealed, field=field, row=owner_id).decode()

        self._opened = opened

    def seal(self, owner_id: str, secret: str, *, field: str = FIELD) -> bytes:
        """Return what is stored."""
        return self._box.encrypt(secret.encode(), field=field, row=owner_id)

    def reveal(self, owner_id: str, sealed: bytes | None, *, field: str = FIELD) -> str | None:
        """Return the secret; None where there is none. Raises SecretsError."""
        return None if sealed is None else self._opened(owner_id, sealed, field)

    def of_key(self, owner_id: str, key: str, at: datetime, *, field: str = FIELD) -> str:
        """Return the secret of a rotation at this time under this key: always the same one, as an answer may be lost.

        Nobody can make it without the application key, by which secrets are sealed as well. By its time, no key brings
        back a secret that was replaced.
        """
        message = f"{field}\n{owner_id}\n{at.astimezone(UTC).isoformat()}\n{key}".encode()
        return self._box.mac(message, purpose=OF_KEY_PURPOSE).removeprefix(self._box.mac_prefix).hex()

    async def replayed(
        self, conn: AsyncConnection, present: AnySelect, owner_id: str, key: str, *, field: str = FIELD
    ) -> Rotation | None:
        """Return the rotation under this key that made the present secret, or None where another one made it.

        ``present`` selects what is sealed, since when, and until when the one before is in use; the row is locked.
        """
        sealed, rotated_at, until = (await conn.execute(present)).one()
        secret = self.reveal(owner_id, sealed, field=field)
        if secret is None or secret != self.of_key(owner_id, key, rotated_at, field=field):
            return None
        return Rotation(secret=secret, rotated_at=rotated_at, previous_until=until, replayed=True)
