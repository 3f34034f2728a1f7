"""Text that shows what it is: what cannot be seen, or changes how the rest is seen, is refused or written out."""

from __future__ import annotations

import re
import unicodedata

# Control characters; marks for the direction of writing; spaces and letters without any width; what breaks lines.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e007f]"
)
_LINES = "\t\n\r"
_NON_JOINER, _JOINER = "\u200c", "\u200d"
_VIRAMA = 9
_EMOJI_MARKS = "\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"


def hidden_in(text: str, *, lines: bool = False) -> str | None:
    """Return the first character that nobody sees, or that changes how others are seen; None where there is none.

    With ``lines``, line breaks and tabs are none. A joiner is none where writing needs it: in Persian names, in Indian
    scripts, and between emoji.
    """
    for found in _HIDDEN.finditer(text):
        if lines and found[0] in _LINES:
            continue
        if found[0] in (_NON_JOINER, _JOINER) and _is_needed(text, found.start()):
            continue
        return found[0]
    return None


def written_out(text: str, *, lines: bool = False) -> str:
    """Return text for a terminal, with every such character escaped as in JSON. Joiners that are needed too."""

    def escaped(found: re.Match[str]) -> str:
        if lines and found[0] in "\t\n":
            return found[0]
        units = found[0].encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))

    return _HIDDEN.sub(escaped, text)


def _is_needed(text: str, at: int) -> bool:
    before, after = text[:at].rstrip(_EMOJI_MARKS)[-1:], text[at + 1 : at + 2]
    if not before or not after:
        return False
    if unicodedata.combining(before) == _VIRAMA:
        return unicodedata.category(after)[0] == "L"
    if text[at] == _JOINER and unicodedata.category(before) == "So":
        return unicodedata.category(after) == "So"
    # Arabic letters, also with vowel signs, which belong to no direction.
    letters = {unicodedata.bidirectional(before), unicodedata.bidirectional(after)}
    return unicodedata.bidirectional(after) == "AL" and letters <= {"AL", "NSM"}
