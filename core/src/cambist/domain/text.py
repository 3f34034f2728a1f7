"""Text that shows what it is: what cannot be seen, or changes how the rest is seen, is refused."""

from __future__ import annotations

import unicodedata

from cambist.plugin.text import HIDDEN

_LINES = "\t\n\r"
_NON_JOINER, _JOINER = "\u200c", "\u200d"
_VIRAMA = 9
_EMOJI_MARKS = "\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_MARKS_MAX = 8
"""Of one emoji. It has two at most."""


def hidden_in(text: str, *, lines: bool = False) -> str | None:
    """Return the first character that nobody sees, or that changes how others are seen; None where there is none.

    With ``lines``, line breaks and tabs are none. A joiner is none where writing needs it: in Persian names, in Indian
    scripts, and between emoji.
    """
    for found in HIDDEN.finditer(text):
        if lines and found[0] in _LINES:
            continue
        if found[0] in (_NON_JOINER, _JOINER) and _is_needed(text, found.start()):
            continue
        return found[0]
    return None


def _is_needed(text: str, at: int) -> bool:
    # Not of all that stands before: a text may be long, and full of joiners.
    before, after = text[max(0, at - _MARKS_MAX - 1) : at].rstrip(_EMOJI_MARKS)[-1:], text[at + 1 : at + 2]
    if not before or not after:
        return False
    if unicodedata.combining(before) == _VIRAMA:
        return unicodedata.category(after)[0] == "L"
    if text[at] == _JOINER and unicodedata.category(before) == "So":
        return unicodedata.category(after) == "So"
    # Arabic letters, also with vowel signs, which belong to no direction.
    letters = {unicodedata.bidirectional(before), unicodedata.bidirectional(after)}
    return unicodedata.bidirectional(after) == "AL" and letters <= {"AL", "NSM"}
