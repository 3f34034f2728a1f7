"""TRON's messages as classes of google.protobuf, built from the table in ``schema``, and their JSON as nodes write it.

On purpose not the plugin's own encoder: what both agree on is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from .keys import address_bytes, base58
from .schema import ENUMS, MESSAGES

PACKAGE: Final = "protocol"
TYPE_URL: Final = "type.googleapis.com/protocol."

_SCALARS: Final = {
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "string": FieldDescriptorProto.TYPE_STRING,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "bool": FieldDescriptorProto.TYPE_BOOL,
}
_ADDRESSES: Final = frozenset({
    "owner_address", "to_address", "contract_address", "receiver_address", "account_address", "origin_address",
    "witness_address", "caller_address", "transferTo_address", "address", "approved_list", "from", "to", "account",
    "fromAccounts", "toAccounts",
})  # fmt: skip
_TEXTS: Final = frozenset({"asset_name", "ContractName", "message", "resMessage"})
LONG: Final = range(-(1 << 63), 1 << 63)


class MalformedError(ValueError):
    """The JSON does not fit the message."""


def _file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="tron.proto", package=PACKAGE, syntax="proto3")
    for name, numbers in ENUMS.items():
        enum = file.enum_type.add(name=name)
        for value, numbered in numbers.items():
            enum.value.add(name=f"{name}_{value}", number=numbered)
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields.split(", "):
            number, field_name, kind = text.split(" ")
            field = message.field.add(name=field_name, number=int(number))
            repeated, kind = kind.startswith("*"), kind.removeprefix("*")
            field.label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
            if kind in _SCALARS:
                field.type = _SCALARS[kind]
            else:
                field.type = FieldDescriptorProto.TYPE_ENUM if kind in ENUMS else FieldDescriptorProto.TYPE_MESSAGE
                field.type_name = f".{PACKAGE}.{kind}"
    return file


def _made() -> Mapping[str, Any]:
    pool = DescriptorPool()
    pool.AddSerializedFile(_file().SerializeToString())
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in MESSAGES}


_classes: Final = _made()


def new(message: str, /, **fields: Any) -> Any:  # noqa: ANN401 - the classes are made at run time
    return _classes[message](**fields)


def parse(name: str, raw: bytes) -> Any:  # noqa: ANN401 - likewise
    """Return the message that these bytes are. Raises google.protobuf's DecodeError."""
    return _classes[name].FromString(raw)


def to_json(message: Message, *, visible: bool = False) -> dict[str, Any]:
    """Return a message as nodes write it: what is zero or empty is left out.

    Bytes are hex; where the asker wants it visible, addresses are base58 and texts are text.
    """
    if message.DESCRIPTOR.name == "Entry64":  # a map's entries are written whole
        return {"key": message.key, "value": message.value}  # type: ignore[attr-defined]
    shown: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.is_repeated:
            shown[field.name] = [_shown(field, item, visible=visible) for item in value]
        else:
            shown[field.name] = _shown(field, value, visible=visible)
    return shown


def _shown(field: FieldDescriptor, value: Any, *, visible: bool) -> Any:  # noqa: ANN401 - JSON
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        return to_json(value, visible=visible)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name.removeprefix(f"{field.enum_type.name}_")
    if field.type != FieldDescriptor.TYPE_BYTES:
        return value
    if visible and field.name in _ADDRESSES:
        return base58(value)
    if visible and field.name in _TEXTS:
        return value.decode(errors="replace")
    return value.hex()


def from_json(name: str, shown: Mapping[str, Any], *, visible: bool = False) -> Any:  # noqa: ANN401 - as above
    """Return the message that this JSON describes; fields that it does not have are passed over."""
    if not isinstance(shown, Mapping):
        raise MalformedError(f"{name}: Expected an object.")
    message = new(name)
    fields = message.DESCRIPTOR.fields_by_name
    for key, value in shown.items():
        field = fields.get(key)
        if field is None or value is None:
            continue
        try:
            _fill(message, field, value, visible=visible)
        except (TypeError, ValueError) as error:
            raise MalformedError(f"{key}: {error}") from error
    return message


def _fill(message: Message, field: FieldDescriptor, value: Any, *, visible: bool) -> None:  # noqa: ANN401 - JSON
    if field.is_repeated:
        if not isinstance(value, list):
            raise ValueError("Expected a list.")
        read = [_read(field, item, visible=visible) for item in value]
        getattr(message, field.name).extend(read)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        getattr(message, field.name).CopyFrom(_read(field, value, visible=visible))
    else:
        setattr(message, field.name, _read(field, value, visible=visible))


def _enum(name: str, value: str) -> int:
    """Return the number of a value; nodes forgive a small first letter."""
    known = ENUMS[name].get(value, ENUMS[name].get(value[:1].upper() + value[1:]))
    if known is None:
        raise ValueError(f'Enum type "{name}" has no value named "{value}".')
    return known


def _read(field: FieldDescriptor, value: Any, *, visible: bool) -> Any:  # noqa: ANN401 - JSON
    if field.message_type is not None:
        return from_json(field.message_type.name, value, visible=visible)
    if field.enum_type is not None:
        return value if isinstance(value, int) else _enum(field.enum_type.name, str(value))
    if field.type == FieldDescriptor.TYPE_BOOL:
        return value if isinstance(value, bool) else str(value).lower() == "true"
    if field.type == FieldDescriptor.TYPE_STRING:
        return str(value)
    if field.type != FieldDescriptor.TYPE_BYTES:
        number = int(value)
        if number not in LONG:
            raise ValueError("Couldn't parse integer: " + str(value))
        return number
    if visible and field.name in _ADDRESSES:
        return address_bytes(str(value))
    if visible and field.name in _TEXTS:
        return str(value).encode()
    return bytes.fromhex(value)
