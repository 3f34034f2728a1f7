"""A tracker's token and signing secret: told once, kept sealed. Whoever shows the token is found by its hash."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, CursorResult, bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import AnySelect
from cambist.ports import Ids
from cambist.secrets import SecretsBox
from cambist.services.actor import Actor
from cambist.services.errors import UnauthenticatedError
from cambist.services.identity.api_keys import key_hash
from cambist.services.identity.plans import plan_pk_in_force
from cambist.services.webhooks.secrets import TRACKER_FIELD, SigningSecrets

TOKEN_FIELD = "trackers.token_encrypted"  # noqa: S105  a column
PREFIX = "tok_"

_TOKEN = re.compile(r"tok_[0-9a-hjkmnp-tv-z]{52}")


class TrackerAccess(Struct, frozen=True, kw_only=True):
    """A tracker, for whoever may act for it. ``actor`` is its project; ``scope`` is 0 for the live chain.

    ``suspended`` says whether the operator has suspended its merchant.
    ``requests_per_minute`` is what the merchant's plan says of each token, as of each API key.
    """

    pk: int
    webhook_id: str
    chain: str
    mode: str
    scope: int
    token_hash: bytes
    actor: Actor
    suspended: bool
    requests_per_minute: int | None = None


class Credentials(Struct, frozen=True, kw_only=True):
    """A new token and a new signing secret, which are told once."""

    auth_token: str
    secret_key: str


class TrackerSecrets:
    """Makes, seals and opens the credentials of trackers, each bound to its tracker's public id."""

    def __init__(self, box: SecretsBox) -> None:
        self._box = box
        self._signing = SigningSecrets(box)

    def columns(self, webhook_id: str, credentials: Credentials) -> dict[str, bytes]:
        """Return what is stored of the credentials."""
        token = credentials.auth_token.encode()
        return {
            "token_hash": key_hash(credentials.auth_token),
            "token_encrypted": self._box.encrypt(token, field=TOKEN_FIELD, row=webhook_id),
            "secret_encrypted": self._signing.seal(webhook_id, credentials.secret_key, field=TRACKER_FIELD),
        }

    def reveal_token(self, webhook_id: str, sealed: bytes) -> str:
        """Return the token. Raises SecretsError."""
        return self._box.decrypt(sealed, field=TOKEN_FIELD, row=webhook_id).decode()

    def reveal_secret(self, webhook_id: str, sealed: bytes) -> str | None:
        """Return the signing secret. Raises SecretsError."""
        return self._signing.reveal(webhook_id, sealed, field=TRACKER_FIELD)


def new_credentials(ids: Ids) -> Credentials:
    """Return a token and a secret that nobody has."""
    return Credentials(auth_token=ids.secret(PREFIX), secret_key=ids.hex_secret())


def is_token(text: str) -> bool:
    """Say whether a text has the shape of a token."""
    return _TOKEN.fullmatch(text) is not None


def no_such_token() -> UnauthenticatedError:
    """Return the refusal of a token that is nobody's, or not any more."""
    words = "This tracker token does not exist, or was replaced by regenerate-secret."
    return UnauthenticatedError("AUTH_TOKEN_INVALID", words)


async def find_access(conn: AsyncConnection, hashed: bytes) -> TrackerAccess | None:
    """Return the tracker whose token this is the hash of. One that was switched off is there, a deleted one is not."""
    return _access(await conn.execute(_BY_TOKEN, {"hashed": hashed}))


async def find_in_project(conn: AsyncConnection, project: Actor, webhook_id: str) -> TrackerAccess | None:
    """Return one of the project's trackers by its public id."""
    return _access(await conn.execute(_BY_ID, {"project_pk": project.project_pk, "webhook_id": webhook_id}))


def _which(*which: ColumnElement[bool]) -> AnySelect:
    tracker, project, merchant = models.Tracker, models.Project, models.Merchant
    return (
        select(
            *(tracker.id, tracker.webhook_id, tracker.chain, tracker.mode, tracker.scope, tracker.token_hash),
            *(project.merchant_pk, project.project_id, project.is_active, tracker.project_pk, merchant.merchant_id),
            models.Plan.requests_per_minute,
            merchant.suspended_at.is_not(None).label("suspended"),
        )
        .select_from(tracker)
        .join(project)
        .join(merchant)
        .outerjoin(models.Plan, models.Plan.id == plan_pk_in_force())
        .where(*which, tracker.deleted_at.is_(None))
    )


_BY_TOKEN = _which(models.Tracker.token_hash == bindparam("hashed"))
_BY_ID = _which(
    models.Tracker.project_pk == bindparam("project_pk"), models.Tracker.webhook_id == bindparam("webhook_id")
)


def _access(found: CursorResult[Any]) -> TrackerAccess | None:
    row = found.one_or_none()
    if row is None:
        return None
    actor = Actor(
        merchant_pk=row.merchant_pk,
        merchant_id=row.merchant_id,
        project_pk=row.project_pk,
        project_id=row.project_id,
        mode=row.mode,
        is_active=row.is_active,
    )
    return TrackerAccess(
        pk=row.id,
        webhook_id=row.webhook_id,
        chain=row.chain,
        mode=row.mode,
        scope=row.scope,
        token_hash=row.token_hash,
        actor=actor,
        suspended=row.suspended,
        requests_per_minute=row.requests_per_minute,
    )


async def regenerate(
    conn: AsyncConnection, tracker: TrackerAccess, secrets: TrackerSecrets, ids: Ids, now: datetime
) -> Credentials:
    """Replace token and secret; the old ones are invalid from the commit on.

    Of two who replace the same token at once the second is refused: raises UnauthenticatedError.
    """
    fresh = new_credentials(ids)
    columns = secrets.columns(tracker.webhook_id, fresh) | {"credentials_rotated_at": now, "updated_at": now}
    mine = models.Tracker.id == tracker.pk, models.Tracker.token_hash == tracker.token_hash
    replaced = update(models.Tracker).where(*mine, models.Tracker.deleted_at.is_(None)).values(columns)
    if await conn.scalar(replaced.returning(models.Tracker.id)) is None:
        raise no_such_token()
    return fresh
