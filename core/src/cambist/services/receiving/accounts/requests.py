"""What a merchant says to make an account, and to have it take deposits on more chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from cambist.services.errors import check_text
from cambist.services.metadata import metadata_text
from cambist.services.pricing.quotes import Name

CHAINS_MAX = 64
EXTERNAL_ID_CHARS_MAX = 255

Chains = Annotated[Sequence[Name], Meta(min_length=1, max_length=CHAINS_MAX)]
ExternalId = Annotated[str, Meta(min_length=1, max_length=EXTERNAL_ID_CHARS_MAX)]


class CreateAccount(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/account``."""

    external_id: ExternalId
    chains: Chains
    metadata: dict[str, Any] | None = None


class AddChains(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/account/{accountId}/chains``."""

    chains: Chains


def check(request: CreateAccount) -> str | None:
    """Refuse what types alone cannot; return the metadata as JSON text. Raises InvalidError."""
    check_text(request.external_id, "externalId")
    return None if request.metadata is None else metadata_text(request.metadata)
