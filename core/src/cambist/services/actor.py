"""Who asks: every use case of a project is told."""

from __future__ import annotations

from msgspec import Struct


class Actor(Struct, frozen=True, kw_only=True):
    """Who acts for a project: a program with its key, or a merchant in person, whose ``key_pk`` is None."""

    merchant_pk: int
    merchant_id: str
    project_pk: int
    project_id: str
    mode: str
    key_pk: int | None = None
