"""What the many ways in which nodes and providers refuse mean for the gateway.

Codes are not uniform (-32005 is a rate limit with one provider and a result limit with the next), so the text
decides where it says something, and the code where it does not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cambist.plugin import ChainError, ChainUnavailableError, RateLimitedError, SpanTooWideError

if TYPE_CHECKING:
    from .wire import RpcFailure

TEXT_MAX: Final = 200

_RATE: Final = re.compile(
    r"rate.?limit|too many requests|requests? (?:limit|count)|compute units|quota|capacity|throttl|per second|"
    r"slow down",
    re.IGNORECASE,
)
_SPAN: Final = re.compile(
    r"range|too many (?:blocks|results|logs|calls)|more than \d+ (?:results|blocks)|response size|too (?:large|big)|"
    r"size exceed|exceeds? (?:the )?(?:max|limit)|batch (?:size|limit)|batch.*(?:too|limit|large)|query timeout|"
    r"execution timeout",
    re.IGNORECASE,
)
_UNSUPPORTED: Final = re.compile(
    r"method\b.*\b(?:not (?:found|exist|supported|available|allowed|enabled)|does not exist|is not|unavailable|"
    r"disabled)|"
    r"(?:unsupported|unknown|invalid) method|not supported|not implemented|upgrade.*plan",
    re.IGNORECASE,
)
_RATE_CODES: Final = frozenset({429, -32005, -32007, -32029, -32097, "429", "-32005"})
_UNSUPPORTED_CODES: Final = frozenset({-32601, -32004, "-32601"})


class MethodUnsupportedError(ChainUnavailableError):
    """The endpoint does not offer this method: ask in another way, or somebody else."""


def from_answer(who: str, method: str, failure: RpcFailure) -> ChainError:
    """Return the error that a JSON-RPC error object stands for."""
    text = failure.message[:TEXT_MAX]
    said = f"{who} answered {method} with error {failure.code}: {text}"
    if _SPAN.search(text):
        return SpanTooWideError(said)
    if _RATE.search(text):
        return RateLimitedError(said)
    if failure.code in _UNSUPPORTED_CODES or _UNSUPPORTED.search(text):
        return MethodUnsupportedError(said)
    if failure.code in _RATE_CODES:
        return RateLimitedError(said)
    return ChainUnavailableError(said)
