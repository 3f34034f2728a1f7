"""Why something that was to be sent ended without effect: a code for programs beside the sentence for people."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Failure(StrEnum):
    """What ended it. ``REFUSED`` is whatever a chain, a token's contract or a provider says in words of its own."""

    CANCELLED_BY_MERCHANT = "CANCELLED_BY_MERCHANT"
    CANCELLED_BY_KEY = "CANCELLED_BY_KEY"
    CANCELLED_BY_OPERATOR = "CANCELLED_BY_OPERATOR"
    DENIED_BY_OPERATOR = "DENIED_BY_OPERATOR"
    CANCELLED = "CANCELLED"
    REVERTED = "REVERTED"
    NOT_TAKEN = "NOT_TAKEN"
    ADDRESS_SHORT = "ADDRESS_SHORT"
    NOT_SENT = "NOT_SENT"
    TOO_LATE = "TOO_LATE"
    NOT_FILLED = "NOT_FILLED"
    SIGNER_REFUSED = "SIGNER_REFUSED"
    ALLOWANCE_FAILED = "ALLOWANCE_FAILED"
    CHAIN_REFUSED = "CHAIN_REFUSED"
    REFUSED = "REFUSED"


SENTENCES: Mapping[Failure, str] = {
    Failure.CANCELLED_BY_MERCHANT: "It was cancelled by the merchant.",
    Failure.CANCELLED_BY_KEY: "It was cancelled by the merchant's program.",
    Failure.CANCELLED_BY_OPERATOR: "It was cancelled by the operator.",
    Failure.DENIED_BY_OPERATOR: "The operator denied it.",
    Failure.CANCELLED: "It was cancelled.",
    Failure.REVERTED: "The transaction was mined, and failed.",
    Failure.NOT_TAKEN: "The network refused the transaction for good, or did not take it in time.",
    Failure.ADDRESS_SHORT: "The address holds less than what it has received.",
    Failure.NOT_SENT: "It could not be sent.",
    Failure.TOO_LATE: "The least output that was promised could not be had in time.",
    Failure.NOT_FILLED: "Nobody paid it out on the other chain in time; what was given came back.",
}
"""Those that are told in the same words always."""
BEGINNINGS: Mapping[Failure, str] = {
    Failure.SIGNER_REFUSED: "The signer does not sign it: ",
    Failure.ALLOWANCE_FAILED: "The allowance could not be given: ",
    Failure.CHAIN_REFUSED: "The chain would refuse it: ",
}
"""Those whose sentence goes on with somebody else's words."""

_BY_SENTENCE = {text: failure for failure, text in SENTENCES.items()}


def code_of(sentence: str | None) -> Failure | None:
    """Return the code of a sentence that says why something failed; None where nothing has."""
    if sentence is None:
        return None
    found = _BY_SENTENCE.get(sentence)
    if found is None:
        found = next((one for one, text in BEGINNINGS.items() if sentence.startswith(text)), Failure.REFUSED)
    return found
