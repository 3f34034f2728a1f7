"""What 1inch says when it will not do something, and what that is for the gateway."""

from __future__ import annotations

import re
from typing import Final

from cambist.plugin import ExchangeRefusedError, RefusalReason, printable

SAID_CHARS_MAX: Final = 500
SHOWN_CHARS_MAX: Final = 120

_LIQUIDITY: Final = r"insufficient liquidity|no (?:route|liquidity)"
_BALANCE: Final = r"not enough \S+ balance|insufficient (?:\S+ )?balance"
_UNKNOWN: Final = (
    r"token\S* (?:is |was )?(?:not |un)(?:found|supported|valid|known|whitelisted)|(?:un|not )supported"
    r"|(?:unknown|invalid|bad) (?:src|dst|token|address)|\b(?:src|dst)\b.*\baddress\b"
)
_TOO_LOW: Final = r"amount.*(?:too (?:small|low)|less than|minimum|greater than 0)"
_TOO_HIGH: Final = r"amount.*(?:too (?:large|big|high)|exceed|maximum)"

# The words are 1inch's; nothing documents all of them. The first that fits counts.
_KNOWN: Final[tuple[tuple[str, RefusalReason, str], ...]] = (
    (_LIQUIDITY, "no_liquidity", "1inch finds too little liquidity for this"),
    (_BALANCE, "refused", "1inch finds the balance too low"),
    (r"allowance", "refused", "1inch finds the allowance too low"),
    (r"can ?not estimate", "refused", "1inch expects the swap to fail"),
    (r"(?:should|must) be different", "unsupported", "1inch swaps a token for another one only"),
    (_UNKNOWN, "unsupported", "1inch does not know one of the tokens"),
    (_TOO_LOW, "amount_too_low", "1inch does not swap so little"),
    (_TOO_HIGH, "amount_too_high", "1inch does not swap so much"),
)


def refusal(said: str) -> ExchangeRefusedError:
    """Return the error that the description of an answer 400 stands for."""
    said = said[:SAID_CHARS_MAX]  # the patterns take long for long texts
    for pattern, reason, sentence in _KNOWN:
        if re.search(pattern, said, re.IGNORECASE):
            return ExchangeRefusedError(sentence, reason=reason)
    return ExchangeRefusedError(f"1inch refuses this: {printable(said[:SHOWN_CHARS_MAX])}")
