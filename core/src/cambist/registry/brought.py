"""What operators see of plugins: which are there, what they bring, and how they are set, without anything secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from importlib.metadata import EntryPoint
from typing import Any

import msgspec
from msgspec import NODEFAULT, Struct, inspect

from cambist.logs import is_secret_name

SETTINGS_MAX = 500
"""Of one plugin. A file that sets more is read by whoever can read it."""


class PluginSetting(Struct, frozen=True, kw_only=True, rename="camel"):
    """A setting that is not the default. ``value`` is null where it could be secret: texts may hold keys."""

    name: str
    value: str | None


class BroughtPlugin(Struct, frozen=True, kw_only=True):
    """An installed plugin. What is not enabled is not imported, so nobody knows what it would bring."""

    name: str
    enabled: bool
    distribution: str | None
    version: str | None
    api_version: int | None = None
    kinds: Sequence[str] = ()
    chains: Sequence[str] = ()
    settings: Sequence[PluginSetting] = ()


def plugin_of(name: str, points: Sequence[EntryPoint], **known: Any) -> BroughtPlugin:  # noqa: ANN401  the other fields
    """Return what is known of a plugin by its entry point, and what else the registry knows of it."""
    dist = points[0].dist if points else None
    return BroughtPlugin(
        name=name, distribution=dist.name if dist else None, version=dist.version if dist else None, **known
    )


def shown_settings(configs: Sequence[Struct]) -> Sequence[PluginSetting]:
    """Return what an operator's table says, by the path of each setting, without what may be secret.

    Numbers, switches and words out of a choice are shown. Any other text may be a key, or an address with one in it.
    """
    found: dict[str, PluginSetting] = {}
    for config in configs:
        for one in _of_struct(config, ""):
            found.setdefault(one.name, one)
            if len(found) == SETTINGS_MAX:
                return list(found.values())
    return list(found.values())


def _of_struct(config: Struct, path: str) -> Iterator[PluginSetting]:
    for field in msgspec.structs.fields(type(config)):
        value = getattr(config, field.name)
        if value == _default(field):
            continue
        kind = inspect.type_info(field.type)
        yield from _of_value(value, f"{path}{field.encode_name}", is_choice=_is_choice(kind))


def _of_value(value: object, name: str, *, is_choice: bool = False) -> Iterator[PluginSetting]:
    if isinstance(value, Struct):
        yield from _of_struct(value, f"{name}.")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _of_value(inner, f"{name}.{key}")
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _of_value(inner, f"{name}[{number}]")
    else:
        yield PluginSetting(name=name, value=_text(value, name, is_choice=is_choice))


def _text(value: object, name: str, *, is_choice: bool) -> str | None:
    # Whatever is below something secret is: a table of keys, a list of tokens.
    if any(is_secret_name(part) for part in name.split(".")):
        return None
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case Decimal():
            return format(value, "f")
        case Enum():
            return str(value.value)
        case str() if is_choice:
            return value
    return None


def _is_choice(kind: inspect.Type) -> bool:
    match kind:
        case inspect.Metadata(type=inner):
            return _is_choice(inner)
        case inspect.UnionType(types=types):
            return all(isinstance(one, inspect.NoneType) or _is_choice(one) for one in types)
        case inspect.LiteralType():
            return True
    return False


def _default(field: msgspec.structs.FieldInfo) -> object:
    if field.default is not NODEFAULT:
        return field.default
    return NODEFAULT if field.default_factory is NODEFAULT else field.default_factory()
