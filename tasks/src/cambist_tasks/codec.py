"""How a job is written into Redis: its function's name and a row id, in JSON, and nothing else.

arq pickles by default, so that whoever can write to Redis could run code beside the keys. What does not have exactly
this shape is refused, and arq drops it.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

RowId = Annotated[int, Meta(ge=1, le=2**63 - 1)]


class Message(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A job as arq names its parts: function, arguments, tries and the moment it was queued, in milliseconds."""

    f: Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[a-z_]+(:[a-z0-9_]+){0,3}$")]
    a: Annotated[list[RowId], Meta(max_length=1)]
    k: Annotated[dict[str, int], Meta(max_length=0)]
    t: Annotated[int, Meta(ge=0, le=1_000)] | None
    et: Annotated[int, Meta(ge=0, le=2**53)]


_decoder = msgspec.json.Decoder(Message)


def encode(job: dict[str, Any]) -> bytes:
    """Write a job. Raises msgspec.ValidationError for anything but a row id."""
    if "r" in job:
        return b""  # a result, of which none is ever kept
    return msgspec.json.encode(msgspec.convert({**job, "a": list(job["a"])}, Message))


def decode(data: bytes) -> dict[str, Any]:
    """Read a job. Raises msgspec.DecodeError for what ``encode`` would not have written."""
    return msgspec.structs.asdict(_decoder.decode(data))
