"""Which values a field can have, where it has only some: so that a refusal can name them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import inspect

_STEP = re.compile(r"\[[^\[\]]*\]|[^.\[\]]+")


def values_at(kind: object, path: str) -> Sequence[str]:
    """Return the values that may stand at the decoder's path in a value of this type, as JSON; none where any may."""
    try:
        found = list(_each(inspect.type_info(kind)))
    except TypeError:
        return ()
    for step in _STEP.findall(path):
        found = [inner for one in found for below in _below(one, step) for inner in _each(below)]
    return tuple(dict.fromkeys(value for one in found for value in _values(one)))


def _each(kind: inspect.Type) -> Iterable[inspect.Type]:
    """Return the types that one of several is, or the one that it is."""
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def _below(kind: inspect.Type, step: str) -> Iterable[inspect.Type]:
    if isinstance(kind, inspect.StructType):
        return [field.type for field in kind.fields if field.encode_name == step]
    if isinstance(kind, inspect.DictType):
        return [kind.value_type]
    if isinstance(kind, (inspect.ListType, inspect.VarTupleType, inspect.SetType)):
        return [kind.item_type]
    return []


def _values(kind: inspect.Type) -> Iterable[str]:
    if isinstance(kind, inspect.EnumType):
        return [_written(one.value) for one in kind.cls]
    return [_written(value) for value in kind.values] if isinstance(kind, inspect.LiteralType) else []


def _written(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
