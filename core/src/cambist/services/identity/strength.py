"""How hard a new password is to guess: judged by zxcvbn, which knows common passwords, words, names and patterns."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence

from cambist.services.errors import InvalidError

SCORE_MIN = 3
"""Of 0 to 4: more than 10^8 guesses."""

JUDGED_CHARS_MAX = 24
"""The beginning that is judged: what is hard to guess does not become easy by what follows.

Where the beginning is easy, the password is refused, whatever follows. What zxcvbn does grows with the square of the
length, for each of up to some thousand ways to read digits and signs as letters: at 72 characters, seconds.
"""

PRODUCT = "cambist"

# zxcvbn keeps the words of one judgement in a table that all threads share.
_one_at_a_time = threading.Lock()


def check_strength(password: str, about: Sequence[str] = (), field: str = "password") -> None:
    """Refuse a password that is guessed early. ``about`` is what a guesser knows: e-mail address, name.

    Takes milliseconds, and a few tenths of a second at most, in pure Python: other threads hardly run meanwhile.
    Raises InvalidError, about this field.
    """
    words = [PRODUCT, *about, *(word for text in about for word in re.split(r"[\W_]+", text) if word)]
    beginnings = [word[:JUDGED_CHARS_MAX] for word in words]
    with _one_at_a_time:
        # Its lists of words take twelve megabytes, and most processes never look at a new password.
        from zxcvbn import zxcvbn  # noqa: PLC0415

        judged = zxcvbn(password[:JUDGED_CHARS_MAX], beginnings, max_length=JUDGED_CHARS_MAX)
    if judged["score"] < SCORE_MIN:
        feedback = judged["feedback"]
        reason = feedback["warning"].rstrip(".") or "Others would guess it"
        raise InvalidError.field(field, f"is too easy to guess. {reason}. Use several uncommon words.")
