"""Why an operator's wish for a transfer is not met: a code for programs beside the sentence for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum


class WishRefusal(StrEnum):
    """Why a transfer is not ended by the transaction that was named, or its fee is not raised.

    ``LOOKED_AT_AGAIN`` is not the last word. ``CHAIN_REFUSED`` is whatever a chain says in words of its own, such as
    that the fee would be above its ceiling.
    """

    UNKNOWN_TX = "UNKNOWN_TX"
    OTHER_SENDER = "OTHER_SENDER"
    OTHER_NONCE = "OTHER_NONCE"
    NOT_THE_SIGNED_TX = "NOT_THE_SIGNED_TX"
    UNCLEAR = "UNCLEAR"
    LOOKED_AT_AGAIN = "LOOKED_AT_AGAIN"
    ALREADY_MINED = "ALREADY_MINED"
    NEVER_REPLACED = "NEVER_REPLACED"
    REPLACED_TOO_OFTEN = "REPLACED_TOO_OFTEN"
    BEING_GIVEN_UP = "BEING_GIVEN_UP"
    ABOVE_ALLOWED = "ABOVE_ALLOWED"
    SIGNER_REFUSED = "SIGNER_REFUSED"
    CHAIN_REFUSED = "CHAIN_REFUSED"


SENTENCES: Mapping[WishRefusal, str] = {
    WishRefusal.UNKNOWN_TX: "No endpoint knows a transaction of this id that can be read back.",
    WishRefusal.OTHER_SENDER: "It was sent by {found}, and this leaves {wanted}.",
    WishRefusal.OTHER_NONCE: "It has the nonce {found}, and what was signed has the nonce {wanted}.",
    WishRefusal.NOT_THE_SIGNED_TX: (
        "What was signed is {wanted}: that is mined, or the chain proves by itself that it has expired."
    ),
    WishRefusal.UNCLEAR: "It cannot be told whether it is what was to be sent: nothing is decided by it.",
    WishRefusal.LOOKED_AT_AGAIN: (
        "It is looked at again: all endpoints that answer must name the same block for it, and where the chain has"
        " several, more than one must answer."
    ),
    WishRefusal.ALREADY_MINED: "It was mined, or its nonce was used, before it could be replaced.",
    WishRefusal.NEVER_REPLACED: "Nothing is replaced on this chain.",
    WishRefusal.REPLACED_TOO_OFTEN: "It was replaced {times} times already.",
    WishRefusal.BEING_GIVEN_UP: "It is about to be given up: a transfer of nothing takes its nonce.",
    WishRefusal.ABOVE_ALLOWED: "It would cost up to {cost}, and {allowed} was allowed.",
    WishRefusal.SIGNER_REFUSED: "The signer refuses it: {reason}",
}
"""Their words, with what differs from one to the next in braces."""

_PATTERNS = {
    code: re.compile(re.sub(r"\\\{\w+\\\}", ".*", re.escape(text)), re.DOTALL) for code, text in SENTENCES.items()
}


def refusal_of(sentence: str | None) -> WishRefusal | None:
    """Return the code of a sentence that says why a wish is not met; None where none says so."""
    if sentence is None:
        return None
    found = (code for code, pattern in _PATTERNS.items() if pattern.fullmatch(sentence))
    return next(found, WishRefusal.CHAIN_REFUSED)
