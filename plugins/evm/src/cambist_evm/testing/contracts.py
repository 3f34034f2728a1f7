"""The test contracts, compiled: what they are is told in their sources, ``tests/contracts/*.sol``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec
from eth_abi.abi import decode, encode

from cambist_evm.addresses import keccak, spell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .anvil import Anvil


class _Parameter(msgspec.Struct):
    type: str


class _Entry(msgspec.Struct):
    type: str
    name: str = ""
    inputs: list[_Parameter] = []
    outputs: list[_Parameter] = []


class _Artifact(msgspec.Struct):
    abi: list[_Entry]
    bytecode: str


class Contract:
    """A deployed test contract, called by the names of its functions."""

    def __init__(self, node: Anvil, artifact: str, address: str) -> None:
        """Keep where it is; ``address`` becomes its EIP-55 spelling."""
        self.address = spell(address[2:].lower())
        self._node = node
        self._artifact = artifact

    async def send(
        self,
        function: str,
        *args: Any,  # noqa: ANN401 - ABI values
        value: int = 0,
        sender: str | None = None,
    ) -> str:
        """Send a transaction that calls the function, and return its id, whatever comes of it."""
        return await self._node.send(self.address, data=self.data(function, *args), value=value, sender=sender)

    async def read(self, function: str, *args: Any) -> Any:  # noqa: ANN401 - ABI values
        """Return what the function answers, without a transaction."""
        call = {"to": self.address, "data": self.data(function, *args)}
        answer = bytes.fromhex((await self._node.call("eth_call", [call, "latest"]))[2:])
        values = decode([output.type for output in _entry(self._artifact, function).outputs], answer)
        return values[0] if len(values) == 1 else values

    def data(self, function: str, *args: Any) -> str:  # noqa: ANN401 - ABI values
        """Return the call's data as hex."""
        types = _types(_entry(self._artifact, function))
        selector = keccak(f"{function}({','.join(types)})".encode())[:4]
        return "0x" + (selector + encode(types, args)).hex()


def creation_code(artifact: str, *args: Any) -> str:  # noqa: ANN401 - ABI values
    """Return the data of a transaction that deploys the contract."""
    entries = [entry for entry in _load(artifact).abi if entry.type == "constructor"]
    return _load(artifact).bytecode + encode(_types(entries[0]) if entries else [], args).hex()


@cache
def _load(artifact: str) -> _Artifact:
    return msgspec.json.decode(
        files(__package__).joinpath("artifacts", f"{artifact}.json").read_bytes(), type=_Artifact
    )


def _entry(artifact: str, function: str) -> _Entry:
    return next(entry for entry in _load(artifact).abi if entry.type == "function" and entry.name == function)


def _types(entry: _Entry) -> Sequence[str]:
    return [parameter.type for parameter in entry.inputs]
