"""Tells a node's "this would fail on the chain" from all other errors, and what the contract said of it. Pure."""

from __future__ import annotations

import re
from typing import Final

from cambist_chainkit.reverts import printable, refusal_in

from .wire import RpcFailure

_REVERTED_CODE: Final = 3
_REVERTED: Final = re.compile(
    r"revert|invalid opcode|bad instruction|invalid ?jump|stack (?:under|over)flow|vm execution error|out of ?gas|"
    r"gas required exceeds|cannot estimate gas|always failing transaction|opcode not found|invalidfeopcode",
    re.IGNORECASE,
)
_NOT_EXECUTED: Final = re.compile(r"insufficient (?:funds|balance)|upfront cost|not enough funds", re.IGNORECASE)
_SAID: Final = re.compile(r"revert(?:ed)?(?: with reason)?[:\s]+(?P<reason>.+)", re.IGNORECASE | re.DOTALL)
_HEX: Final = re.compile(r"0x([0-9a-fA-F]*)")


def is_revert(failure: RpcFailure) -> bool:
    """Return whether the node ran the call, and the chain refused it."""
    if _NOT_EXECUTED.search(failure.message):
        return False
    return failure.code == _REVERTED_CODE or _REVERTED.search(failure.message) is not None


def reason_of(failure: RpcFailure) -> str:
    """Return what the contract said, printable and short; what the node said where the contract was silent."""
    found = _HEX.search(failure.data) if isinstance(failure.data, str) else None
    told = refusal_in(found[1]) if found is not None else ""
    if not told:
        said = _SAID.search(failure.message)
        told = said["reason"] if said is not None else failure.message
    return printable(told)
