"""The columns of a file of items: one for each field that JSON has but secrets, of inner objects by their path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, inspect

from cambist.domain.moments import moment
from cambist.services.csv_lines import harmless

from .schemas import with_moments

LEFT_OUT = frozenset({"authToken"})
"""What JSON has and no file: secrets, since files are kept and passed on."""


class Column(Struct, frozen=True):
    """One column: its name, and the attributes that lead to its value."""

    name: str
    path: Sequence[str]

    def text(self, item: object) -> str:
        """Return the value as a spreadsheet shows it, with nothing in it that one would run. Nothing is empty."""
        value: object = item
        for attribute in self.path:
            value = None if value is None or value is UNSET else getattr(value, attribute)
        return _text(value)


@cache
def columns_of(kind: type[Struct]) -> Sequence[Column]:
    """Return the columns of a Struct. Lists and objects of any shape are JSON in one column."""
    return tuple(_columns(kind, (), ()))


def _columns(kind: type[Struct], names: tuple[str, ...], path: tuple[str, ...]) -> Iterator[Column]:
    for field in msgspec.structs.fields(kind):
        if field.encode_name in LEFT_OUT:
            continue
        here = (*names, field.encode_name), (*path, field.name)
        inner = _struct_in(inspect.type_info(field.type))
        if inner is None:
            yield Column(".".join(here[0]), here[1])
        else:
            yield from _columns(inner, *here)


def _struct_in(kind: inspect.Type) -> type[Struct] | None:
    """Return the Struct that a field holds, if it holds one or nothing."""
    match kind:
        case inspect.Metadata(type=inner):
            return _struct_in(inner)
        case inspect.UnionType(types=types):
            found = [one for one in types if not isinstance(one, inspect.NoneType)]
            return _struct_in(found[0]) if len(found) == 1 else None
        case inspect.StructType(cls=cls):
            return cls
    return None


def _text(value: object) -> str:
    match value:
        case None | UnsetType():
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            return moment(value)
        case str():
            return _number_or_harmless(value)
        case Raw():
            return bytes(value).decode()
        case _:
            return msgspec.json.encode(with_moments(value)).decode()


def _number_or_harmless(text: str) -> str:
    """Amounts below zero are numbers, and no formula."""
    return text if text.startswith("-") and text[1:].replace(".", "", 1).isdecimal() else harmless(text)
