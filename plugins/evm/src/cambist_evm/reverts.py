"""Tells a node's "this would fail on the chain" from all other errors, and what the contract said of it. Pure."""

from __future__ import annotations

import re
from typing import Final

from .wire import RpcFailure

REASON_MAX: Final = 120

_REVERTED_CODE: Final = 3
_REVERTED: Final = re.compile(
    r"revert|invalid opcode|bad instruction|invalid ?jump|stack (?:under|over)flow|vm execution error|out of ?gas|"
    r"gas required exceeds|cannot estimate gas|always failing transaction|opcode not found|invalidfeopcode",
    re.IGNORECASE,
)
_NOT_EXECUTED: Final = re.compile(r"insufficient (?:funds|balance)|upfront cost|not enough funds", re.IGNORECASE)
_SAID: Final = re.compile(r"revert(?:ed)?(?: with reason)?[:\s]+(?P<reason>.+)", re.IGNORECASE | re.DOTALL)
_ERROR_SELECTOR: Final = "08c379a0"
_PANIC_SELECTOR: Final = "4e487b71"
_WORD: Final = 32
_HEX: Final = re.compile(r"0x([0-9a-fA-F]*)")


def is_revert(failure: RpcFailure) -> bool:
    """Return whether the node ran the call, and the chain refused it."""
    if _NOT_EXECUTED.search(failure.message):
        return False
    return failure.code == _REVERTED_CODE or _REVERTED.search(failure.message) is not None


def reason_of(failure: RpcFailure) -> str:
    """Return what the contract said, printable and short; what the node said where the contract was silent."""
    found = _HEX.search(failure.data) if isinstance(failure.data, str) else None
    told = _from_data(found[1]) if found is not None else ""
    if not told:
        said = _SAID.search(failure.message)
        told = said["reason"] if said is not None else failure.message
    return "".join(char if char.isprintable() else " " for char in told.strip())[:REASON_MAX]


def _from_data(digits: str) -> str:
    selector, body = digits[:8].lower(), digits[8:]
    if selector == _ERROR_SELECTOR:
        try:
            raw = bytes.fromhex(body)
        except ValueError:
            return ""
        length = int.from_bytes(raw[_WORD : 2 * _WORD], "big")
        return raw[2 * _WORD : 2 * _WORD + min(length, REASON_MAX)].decode("utf-8", "replace")
    if selector == _PANIC_SELECTOR:
        return f"panic 0x{body[-2:]}"
    return f"error 0x{selector}" if len(selector) == len(_ERROR_SELECTOR) else ""
