"""Versions of what operators change: who decides by what was read says which version that was.

Each change adds one. So nobody takes back what another has changed meanwhile, without having seen it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from .errors import ConflictError, InvalidError

Version = Annotated[int, Meta(ge=0, lt=2**53)]


def check_version(read: int | UnsetType, now: int) -> None:
    """Refuse a change of what was changed since it was read. Where no version was sent, nothing is compared.

    Raises ConflictError. The caller holds the row's lock.
    """
    if read is not UNSET and read != now:
        raise ConflictError("VERSION_MISMATCH", "It has been changed since it was read: read it again.")


def need_version(read: int | UnsetType, replaced: str) -> None:
    """Refuse to replace a list or a map, which ``replaced`` names, without the version that was read.

    Raises InvalidError.
    """
    if read is UNSET:
        raise InvalidError.field("version", f"is needed where {replaced} is replaced as a whole: send the one you read")


def check_replaced(patch: Struct, read: int | UnsetType) -> None:
    """Refuse a patch that replaces a list or a map without the version that was read. Raises InvalidError."""
    for path in _replaced(patch):
        need_version(read, path)


def _replaced(patch: Struct, above: str = "") -> Iterator[str]:
    for attribute, name in zip(patch.__struct_fields__, patch.__struct_encode_fields__, strict=True):
        value = getattr(patch, attribute)
        if isinstance(value, Struct):
            yield from _replaced(value, f"{above}{name}.")
        elif isinstance(value, Mapping | tuple):
            yield f"{above}{name}"
