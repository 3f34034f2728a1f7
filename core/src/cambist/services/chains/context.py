"""What changing chains takes."""

from __future__ import annotations

from msgspec import Struct

from cambist.ports import Ids
from cambist.registry import Registry
from cambist.secrets import SecretsBox


class ChainContext(Struct, frozen=True, kw_only=True):
    """The chains of this process, the box for endpoints' addresses, and identifiers."""

    registry: Registry
    secrets: SecretsBox
    ids: Ids
