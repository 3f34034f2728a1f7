"""The platform settings as they are stored, also where this version cannot read them, as after a downgrade.

What cannot be read has everything fail that needs the settings, since it may be what restricts where money goes. Only a
person can decide that it is not needed any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec import Struct, structs
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models

from .errors import InvalidError
from .platform import PlatformSettings

UNKNOWN = "This version does not know it."


class StoredValue(Struct, frozen=True, kw_only=True):
    """One value that is stored: where in the settings, and, where this version does not read it, why."""

    path: tuple[str, ...]
    value: Any
    problem: str | None = None

    @property
    def name(self) -> str:
        """What people call it: ``collection.minValueUsd``."""
        return ".".join(self.path)


async def list_stored(conn: AsyncConnection) -> Sequence[StoredValue]:
    """Return what is stored by name, in that order. What is not stored has its default."""
    return _sorted(await conn.scalar(select(models.PlatformSettings.settings)) or {})


async def remove(conn: AsyncConnection, name: str, now: datetime) -> StoredValue:
    """Remove what this version does not read, and return what it was.

    Raises InvalidError where nothing of that name is stored that this version does not read: the rest is changed by
    ``platform.save()``, which checks it.
    """
    table = models.PlatformSettings
    row = (await conn.execute(select(table.settings, table.version).with_for_update())).one_or_none()
    stored = {} if row is None else row.settings
    unread = [one for one in _sorted(stored) if one.problem is not None]
    found = next((one for one in unread if one.name == name), None)
    if row is None or found is None:
        named = ", ".join(one.name for one in unread)
        words = f"What is stored and not read is {named}." if unread else "Everything that is stored is read."
        raise InvalidError.field("name", f"{name} is nothing that could be removed. {words}")
    changed = {"settings": _without(stored, found.path), "version": row.version + 1, "updated_at": now}
    await conn.execute(update(table).values(changed))
    return found


def _sorted(stored: Mapping[str, Any]) -> Sequence[StoredValue]:
    return sorted(_values((), stored, PlatformSettings), key=lambda one: one.path)


def _values(path: tuple[str, ...], stored: Any, kind: Any) -> Iterator[StoredValue]:  # noqa: ANN401  any type
    """Yield what is stored, field by field. Of what is not read, the smallest part with a name tells why."""
    problem, parts = _problem(stored, kind), _parts(stored, kind)
    if parts is None or (problem is None and not _is_group(kind)):
        yield StoredValue(path=path, value=stored, problem=problem)
        return
    found: list[StoredValue] = []
    for name, value in stored.items():
        if name in parts:
            found += _values((*path, name), value, parts[name])
        else:
            found.append(StoredValue(path=(*path, name), value=value, problem=UNKNOWN))
    if problem is None or any(one.problem is not None for one in found):
        yield from found
    else:
        yield StoredValue(path=path, value=stored, problem=problem)


def _problem(stored: object, kind: Any) -> str | None:  # noqa: ANN401  any type
    try:
        msgspec.convert(stored, kind)
    except msgspec.ValidationError as error:
        return str(error)
    return None


def _plain(kind: Any) -> Any:  # noqa: ANN401  any type
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _is_group(kind: Any) -> bool:  # noqa: ANN401  any type
    plain = _plain(kind)
    return isinstance(plain, type) and issubclass(plain, Struct)


def _parts(stored: object, kind: Any) -> Mapping[str, Any] | None:  # noqa: ANN401  any type
    """Return the types of the parts by the names that are known; None of what has no parts with names."""
    plain = _plain(kind)
    if not isinstance(stored, Mapping):
        return None
    if _is_group(plain):
        return {one.encode_name: one.type for one in structs.fields(plain)}
    if get_origin(plain) is Mapping:
        names, values = get_args(plain)
        return {name: values for name in stored if _problem(name, names) is None}
    return None


def _without(stored: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    first, *rest = path
    if not rest:
        return {name: value for name, value in stored.items() if name != first}
    return {**stored, first: _without(stored[first], rest)}
