"""Compiled contracts for local nodes, and how they are called: the sources, ``tests/contracts``, tell what they are.

Needs eth-abi, which the ``testing`` extras of the plugins bring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import msgspec
from eth_abi.abi import decode, encode
from sha3 import keccak_256


class _Parameter(msgspec.Struct):
    type: str
    name: str = ""
    indexed: bool = False
    components: list[_Parameter] = []


class _Entry(msgspec.Struct):
    type: str
    name: str = ""
    inputs: list[_Parameter] = []
    outputs: list[_Parameter] = []


class Artifact(msgspec.Struct, dict=True):
    """One compiled contract, its functions called by their names; addresses are 20 bytes or their hex."""

    abi: msgspec.Raw
    """Its functions and events, as JSON."""
    bytecode: str

    def creation_code(self, *args: Any) -> bytes:  # noqa: ANN401 - ABI values
        entries = [entry for entry in self._entries if entry.type == "constructor"]
        return bytes.fromhex(self.bytecode[2:]) + encode(_types(entries[0].inputs) if entries else [], args)

    def call_data(self, function: str, *args: Any) -> bytes:  # noqa: ANN401 - ABI values
        entry = self._entry(function)
        return _hash(entry)[:4] + encode(_types(entry.inputs), args)

    def answer(self, function: str, output: bytes) -> Any:  # noqa: ANN401 - ABI values
        """Return what a call's output says: one value, or a tuple of them."""
        values = decode(_types(self._entry(function).outputs), output)
        return values[0] if len(values) == 1 else values

    def topic(self, event: str) -> bytes:
        """Return what stands first in the topics of an event's logs."""
        return _hash(self._entry(event, "event"))

    def read_log(self, event: str, topics: Sequence[bytes], data: bytes) -> Mapping[str, Any]:
        """Return what a log of an event says, by name. The types of what is indexed are of one word each."""
        inputs = self._entry(event, "event").inputs
        indexed = [one for one in inputs if one.indexed]
        plain = [one for one in inputs if not one.indexed]
        values = (*decode(_types(indexed), b"".join(topics[1:])), *decode(_types(plain), data))
        return {one.name: value for one, value in zip((*indexed, *plain), values, strict=True)}

    @cached_property
    def _entries(self) -> Sequence[_Entry]:
        return msgspec.json.decode(self.abi, type=list[_Entry])

    def _entry(self, name: str, kind: str = "function") -> _Entry:
        return next(entry for entry in self._entries if entry.type == kind and entry.name == name)


@cache
def load(name: str, package: str = __package__) -> Artifact:
    """Return a contract that was compiled into the package's folder ``artifacts``."""
    return msgspec.json.decode(files(package).joinpath("artifacts", f"{name}.json").read_bytes(), type=Artifact)


def _types(parameters: Sequence[_Parameter]) -> Sequence[str]:
    """Return the types, tuples as what they are made of."""
    return [one.type.replace("tuple", f"({','.join(_types(one.components))})") for one in parameters]


def _hash(entry: _Entry) -> bytes:
    return bytes(keccak_256(f"{entry.name}({','.join(_types(entry.inputs))})".encode()).digest())
