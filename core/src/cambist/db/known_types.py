"""Connections that know PostgreSQL's own array types, which the driver asks the server about on each new connection.

It asks as soon as a statement takes or gives an array, and about each type anew. One of its two queries goes through
the catalogue: 3 ms of a core, where all else of opening a connection takes 5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import asyncpg

from .vanished import notice

_ARRAYS = (
    (199, "_json", 114, "json"),
    (1000, "_bool", 16, "boolean"),
    (1001, "_bytea", 17, "bytea"),
    (1005, "_int2", 21, "smallint"),
    (1007, "_int4", 23, "integer"),
    (1015, "_varchar", 1043, "character varying"),
    (1016, "_int8", 20, "bigint"),
    (1022, "_float8", 701, "double precision"),
    (1182, "_date", 1082, "date"),
    (1185, "_timestamptz", 1184, "timestamp with time zone"),
    (1187, "_interval", 1186, "interval"),
    (1231, "_numeric", 1700, "numeric"),
    (2951, "_uuid", 2950, "uuid"),
    (3807, "_jsonb", 3802, "jsonb"),
)
"""Identifier and name of each, and of what it holds: the same in every PostgreSQL, whatever its version."""

KNOWN: Mapping[int, Mapping[str, Any]] = {
    oid: {
        "oid": oid,
        "ns": "pg_catalog",
        "name": name,
        "kind": b"b",
        "basetype": None,
        "elemtype": element,
        "elemdelim": b",",
        "range_subtype": None,
        "attrtypoids": None,
        "attrnames": None,
        "elemtype_name": element_name,
    }
    for oid, name, element, element_name in _ARRAYS
}
"""What the driver's query would tell, by identifier."""
_NOTHING_SENT = SimpleNamespace(name="none")
"""In place of the query's statement. Without a name it would have taken the place of another without one."""


class KnowingConnection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg ships no types
    """A connection that asks about other types alone, and notices when its server has vanished."""

    def __init__(self, protocol: object, transport: asyncio.BaseTransport, *rest: object) -> None:
        """Take what the driver gives to each connection that it has opened."""
        super().__init__(protocol, transport, *rest)
        notice(transport)

    async def _introspect_types(
        self,
        typeoids: Collection[int],
        timeout: float | None,  # noqa: ASYNC109  the driver's own
    ) -> tuple[Sequence[Mapping[str, Any]], Any]:
        """Return what is to be known of these types, and the statement that was sent for it."""
        if all(oid in KNOWN for oid in typeoids):
            return [KNOWN[oid] for oid in typeoids], _NOTHING_SENT
        told: tuple[Sequence[Mapping[str, Any]], Any] = await super()._introspect_types(typeoids, timeout)
        return told
