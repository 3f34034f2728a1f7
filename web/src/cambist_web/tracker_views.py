"""What is answered of a tracker's credentials, which are shown once."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from cambist.services.trackers.create import CreatedTracker

from .schemas import Answer

SHOWN_ONCE = (
    "Keep authToken and secretKey in a safe place: this answer is the only one that shows secretKey. "
    "Whoever has authToken can change this webhook and its list."
)


class IssuedTracker(Struct, frozen=True, kw_only=True, rename="camel"):
    """A new tracker with its credentials: `authToken` manages it, `secretKey` verifies its deliveries."""

    webhook_id: str
    auth_token: str
    secret_key: str
    url: str
    name: str
    chain: str
    start_block: int
    max_addresses: int
    project_id: str


class TrackerMade(Answer, frozen=True, kw_only=True):
    """A new tracker. Its credentials are shown this once."""

    webhook: IssuedTracker
    warning: str


class FreshCredentials(Struct, frozen=True, kw_only=True, rename="camel"):
    """The credentials of a tracker from now on."""

    webhook_id: str
    auth_token: str
    secret_key: str
    rotated_at: datetime


class CredentialsReplaced(Answer, frozen=True, kw_only=True):
    """New credentials, shown this once. The old ones are invalid."""

    webhook: FreshCredentials
    warning: str


def issued(made: CreatedTracker) -> IssuedTracker:
    return IssuedTracker(
        webhook_id=made.tracker.webhook_id,
        auth_token=made.credentials.auth_token,
        secret_key=made.credentials.secret_key,
        url=made.url,
        name=made.name,
        chain=made.tracker.chain,
        start_block=made.start_block,
        max_addresses=made.max_addresses,
        project_id=made.tracker.actor.project_id,
    )
