"""What one HTTP request asks of the node, and how its values are read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from . import keys, proto
from .chain import Chain, View
from .proto import LONG


class BadRequestError(ValueError):
    """The request cannot be read; the node says so with status 200."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(words)
        self.kind = kind


class Ask(msgspec.Struct, frozen=True):
    """A request: its values, how addresses are to be shown, and the chain as this side of the node sees it."""

    path: str
    values: Mapping[str, Any]
    visible: bool
    chain: Chain
    view: View

    def number(self, name: str, default: int = 0, among: range = LONG) -> int:
        value = self.values.get(name)
        if value is None or value == "":
            return default
        try:
            number = int(str(value))
        except ValueError:
            number = among.stop
        if number not in among:
            raise BadRequestError("java.lang.NumberFormatException", f'For input string: "{value}"')
        return number

    def hex(self, name: str) -> bytes:
        """Return bytes that are given as hex."""
        try:
            return bytes.fromhex(str(self.values.get(name) or ""))
        except ValueError as error:
            raise BadRequestError(
                "org.tron.core.services.http.JsonFormat$ParseException", f"1:9: INVALID hex String: {error}"
            ) from error

    def address(self, name: str) -> bytes:
        """Return an address, which is base58 where the asker wants it visible; nothing for one that is none."""
        text = str(self.values.get(name) or "")
        if not self.visible:
            return self.hex(name)
        try:
            return keys.address_bytes(text) if text else b""
        except ValueError as error:
            raise BadRequestError(
                "org.tron.core.services.http.JsonFormat$ParseException", f"1:12: INVALID base58 String, {error}"
            ) from error

    def shown(self, message: Any) -> dict[str, Any]:  # noqa: ANN401 - messages are made at run time
        return proto.to_json(message, visible=self.visible)


Answer: TypeAlias = Any
"""JSON."""

Handler: TypeAlias = Callable[[Ask], Answer | Awaitable[Answer]]
