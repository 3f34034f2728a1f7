"""Signing secrets of projects, their endpoints and trackers: sealed in the database, opened to sign."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType

from sqlalchemy import case

from cambist.db.structs import Column
from cambist.secrets import SecretsBox

FIELD = "projects.webhook_secret_encrypted"
TRACKER_FIELD = "trackers.secret_encrypted"
ENDPOINT_FIELD = "webhook_endpoints.secret_encrypted"
"""The secret before is bound to the same name as the present one: it is moved as it is."""
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
