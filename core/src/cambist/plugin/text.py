"""Text of strangers, written so that it shows what it is."""

from __future__ import annotations

import re

# Control characters; marks for the direction of writing; spaces and letters without any width; what breaks lines.
HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e007f]"
)


def printable(text: str, *, lines: bool = False) -> str:
    """Return a stranger's text, fit for terminals, logs and messages. With ``lines``, line breaks and tabs stay.

    Every character that nobody sees, or that changes how others are seen, is escaped as in JSON; so are joiners.
    """

    def escaped(found: re.Match[str]) -> str:
        if lines and found[0] in "\t\n":
            return found[0]
        units = found[0].encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))

    return HIDDEN.sub(escaped, text)
