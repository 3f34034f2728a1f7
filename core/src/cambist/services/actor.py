"""Who asks: every use case of a project is told."""

from __future__ import annotations

from msgspec import Struct

from cambist.domain.intents import AskedBy


class Actor(Struct, frozen=True, kw_only=True):
    """Who acts for a project: a program with its key, or a merchant in person, whose ``key_pk`` is None.

    ``is_active`` is False for a project that was switched off: it can be read, and nothing else.
    """

    merchant_pk: int
    merchant_id: str
    project_pk: int
    project_id: str
    mode: str
    is_active: bool = True
    key_pk: int | None = None

    @property
    def asked_by(self) -> AskedBy:
        """What the signer is told of who asks."""
        return AskedBy.SESSION if self.key_pk is None else AskedBy.KEY
