"""What the API's description says of schemas, fields and parameters: words, an example, what a text may be.

A schema has its Struct's docstring. A field has the description of its own type, else the sentence that
``own_words.py`` or ``words.txt`` has for its name; ``x_id`` and ``x_at`` need none. What the tables
lack is logged as ``not_described``, and fails a test.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import structlog
from msgspec import Struct
from msgspec import inspect as types

from cambist_web.errors import camel

from .examples import example_of, type_info
from .own_words import CHOICES, CHOSEN, OWN_WORDS
from .words import WORDS

log = structlog.get_logger(__name__)

_SCALARS = frozenset({"string", "integer", "number", "boolean"})


def classes_in(*kinds: Any) -> set[type]:  # noqa: ANN401  any types
    """Return every Struct and every enumeration that a value of these types can hold, themselves included."""
    found: set[type] = set()
    waiting = [type_info(kind) for kind in kinds]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, types.StructType):
            if kind.cls not in found:
                found.add(kind.cls)
                waiting += [field.type for field in kind.fields]
        elif isinstance(kind, types.EnumType):
            found.add(kind.cls)
        else:
            waiting += _parts(kind)
    return found


def _parts(kind: types.Type) -> Iterable[types.Type]:
    match kind:
        case types.Metadata(type=one):
            return [one]
        case types.UnionType(types=several):
            return several
        case types.ListType(item_type=one) | types.VarTupleType(item_type=one) | types.DictType(value_type=one):
            return [one]
    return []


def describe_schemas(schemas: dict[str, Any], classes: Iterable[type], bodies: Iterable[type]) -> None:
    """Add to each schema what is known of its class. ``bodies`` are those that requests hold, not answers."""
    sent, ends = set(bodies), [(f"_{name.replace('.', '_')}", schema) for name, schema in schemas.items()]
    for cls in classes:
        full = "_".join(("", *cls.__module__.split("."), cls.__name__))
        for end, schema in ends:
            if not full.endswith(end):
                continue
            if issubclass(cls, Struct):
                _describe_struct(schema, cls, is_sent=cls in sent)
            else:
                schema["description"], schema["examples"] = doc(cls) or "One of these.", schema["enum"][:1]


def doc(cls: type) -> str:
    """Return a docstring as readers of JSON read it: names in camel case, ``null`` for ``None``."""
    text = inspect.cleandoc(cls.__doc__ or "").replace("``", "`")
    text = re.sub(r"`[a-z][a-z0-9]*(_[a-z0-9]+)+`", lambda found: camel(found[0]), text)
    for python, sent in (("None", "null"), ("True", "true"), ("False", "false")):
        text = re.sub(rf"\b{python}\b", sent, text)
    return text


def _describe_struct(schema: dict[str, Any], cls: type[Struct], *, is_sent: bool) -> None:
    schema["description"] = doc(cls)
    omitted = not is_sent and cls.__struct_config__.omit_defaults
    required = []
    for field in msgspec.structs.fields(cls):
        one = schema["properties"][field.encode_name]
        may_lack = msgspec.UnsetType in getattr(field.type, "__args__", ())
        if field.required or not (is_sent or omitted or may_lack):
            required.append(field.encode_name)
        if not is_sent:
            one.pop("default", None)
        _describe_field(one, cls, field.name, is_sent=is_sent)
    schema["required"] = sorted(required)
    if cls.__struct_config__.forbid_unknown_fields:
        schema["additionalProperties"] = False


def _describe_field(one: dict[str, Any], cls: type[Struct], name: str, *, is_sent: bool) -> None:
    has_class = "#/components/schemas/" in str(one)
    keys = [f"{kind.__name__}.{name}" for kind in cls.__mro__] + [name]
    words = next((OWN_WORDS[key] for key in keys if key in OWN_WORDS), None)
    if words is None and not has_class:
        words = one.get("description") or words_for(name)
        if words is None:
            _lacks(f"{cls.__name__}.{name} has no words: add a line to openapi/words.txt that says what it is.")
            words = f"{name.replace('_', ' ').capitalize()}."
    if words is not None:
        one["description"] = words
    if has_class:
        return
    if not is_sent:
        choices = next((CHOICES[key] for key in keys if key in CHOICES), None)
        if choices is not None:
            _choose(one, [str(choice) for choice in choices])
        elif name in CHOSEN and one.get("type") == "string" and not one.keys() & {"enum", "const"}:
            _lacks(f"{cls.__name__}.{name} may be any text: say in CHOICES of openapi/own_words.py which.")
    _exemplify(one, cls, name)


def _exemplify(one: dict[str, Any], cls: type[Struct], name: str) -> None:
    try:
        example = one["const"] if "const" in one else example_of(cls, name)
    except LookupError as error:
        _lacks(str(error))
        return
    if example is None and one.get("type") in _SCALARS:
        _lacks(f"{cls.__name__}.{name} is never null: say in openapi/own_values.py what it may be.")
        return
    one["examples"] = [example if example in one.get("enum", [example]) else one["enum"][0]]


def _lacks(what: str) -> None:
    """Say what our own tables lack: the description is of use without it, and a test wants it."""
    log.warning("not_described", what=what)


def _choose(one: dict[str, Any], choices: list[str]) -> None:
    """Have a text, a text or null, or each text of a list be one of these. No choices: any text."""
    for part in (one, one.get("items", {}), *one.get("oneOf", ())):
        if part.get("type") == "string" and choices and "enum" not in part:
            part["enum"] = choices


def words_for(name: str) -> str | None:
    """Return what is said of every field of a name, or None."""
    if name in WORDS:
        return WORDS[name]
    noun, _, last = name.rpartition("_")
    if last == "id" and noun:
        return f"The {noun.replace('_', ' ')}'s id."
    if last == "at" and noun:
        return f"When it was {noun.replace('_', ' ')}."
    return None


def describe_parameter(operation: str, one: dict[str, Any]) -> None:
    """Say what a parameter is, unless the handler says it."""
    schema, name = one["schema"], one["name"]
    schema.pop("description", None)
    if one["in"] != "path":
        one["schema"] = schema = _without_null(schema)
    if not one.get("description"):
        snake = re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)
        keys = (
            f"{operation.removesuffix('InProject')}.{name}",
            *(() if one["in"] == "path" else (f"parameter.{name}",)),
        )
        words = next((OWN_WORDS[key] for key in keys if key in OWN_WORDS), None) or words_for(snake)
        if words is None:
            _lacks(f"The parameter {name} of {operation} has no words: add a line to openapi/own_words.py.")
        one["description"] = words or f"{snake.replace('_', ' ').capitalize()}."
    for usual in ("deprecated", "allowEmptyValue", "allowReserved"):
        if one.get(usual) is False:
            del one[usual]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without null, which nobody can send but in a body."""
    kinds = [kind for kind in schema.get("oneOf", ()) if kind.get("type") != "null"]
    if len(kinds) == 1:
        schema = {name: part for name, part in schema.items() if name != "oneOf"} | kinds[0]
    if isinstance(schema.get("type"), list):
        (schema["type"],) = (kind for kind in schema["type"] if kind != "null")
        schema["enum"] = [value for value in schema.get("enum", ()) if value is not None]
    return schema


def renamed(names: Iterable[str]) -> Mapping[str, str]:
    """Return the names of schemas as generated clients have them: of several of one name, each with its module's."""
    found = {}
    for name in names:
        module, _, last = re.sub(r"[._]", " ", name).rpartition(" ")
        if module:
            noun = module.rpartition(" ")[2]
            found[name] = noun.removesuffix("s").title() + last
    return found


def with_names(part: Any, names: Mapping[str, str]) -> Any:  # noqa: ANN401  any part of a description
    """Return a part of a description with references to schemas by their new names."""
    if isinstance(part, dict):
        return {
            key: f"#/components/schemas/{names.get(value.rpartition('/')[2], value.rpartition('/')[2])}"
            if key == "$ref" and isinstance(value, str)
            else with_names(value, names)
            for key, value in part.items()
        }
    return [with_names(one, names) for one in part] if isinstance(part, list) else part
