"""Bodies and answers of API keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from cambist.services.identity.api_keys import ApiKey
from cambist_web.schemas import Answer, Body, Name


class CreateKey(Body, frozen=True, kw_only=True):
    """A new key."""

    name: Name = "API key"


class KeyView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A key as it is shown later: `hint` is its beginning."""

    key_id: str
    name: str
    hint: str
    created_at: datetime


class KeyIssued(Answer, frozen=True, kw_only=True):
    """A new key. `apiKey` is shown this once."""

    key: KeyView
    api_key: str


class KeyList(Answer, frozen=True, kw_only=True):
    """A project's keys that work."""

    keys: Sequence[KeyView]


def key_view(key: ApiKey) -> KeyView:
    return KeyView(key_id=key.key_id, name=key.name, hint=key.hint, created_at=key.created_at)
