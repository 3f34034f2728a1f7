"""What a contract says when it refuses a call, in the words that Solidity gives it. Pure."""

from __future__ import annotations

from typing import Final

from cambist.plugin import printable

REASON_MAX: Final = 120

_ERROR_SELECTOR: Final = "08c379a0"
_PANIC_SELECTOR: Final = "4e487b71"
_WORD: Final = 32


def refusal_in(digits: str) -> str:
    """Return what the output of a call, in hex, says of the refusal; nothing where it says nothing."""
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


def one_line(text: str) -> str:
    """Return what a contract or a node said, in one short line that can be shown."""
    return printable(text.strip())[:REASON_MAX]
