"""What the many ways in which nodes and providers refuse mean for the gateway.

Codes are not uniform (-32005 is a rate limit with one provider and a result limit with the next), so the text
decides where it says something, and the code where it does not.
"""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from cambist.plugin import ChainError, ChainUnavailableError, InconsistentChainError, RateLimitedError, SpanTooWideError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from .wire import RpcFailure

TEXT_MAX: Final = 200
RETRY_AFTER_MAX_S: Final = 300.0

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


class NestedTooDeeplyError(InconsistentChainError):
    """The answer is nested more deeply than it can be decoded."""


class NoAnswerError(ChainUnavailableError):
    """The endpoint kept silent for as long as it was given: do not wait as long once more."""


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


def from_status(who: str, status: int, retry_after: str | None, now: Callable[[], datetime]) -> ChainError:
    """Return the error that an HTTP status other than 200 stands for."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return RateLimitedError(f"{who} asks for fewer requests (HTTP 429)", retry_after=_seconds(retry_after, now))
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return SpanTooWideError(f"{who} refuses so large a request (HTTP 413)")
    if status in {401, 402, 403}:
        return ChainUnavailableError(
            f"{who} refuses us (HTTP {status}): the key in its address may be wrong or used up"
        )
    if status == HTTPStatus.SERVICE_UNAVAILABLE and retry_after is not None:
        return RateLimitedError(f"{who} is busy (HTTP 503)", retry_after=_seconds(retry_after, now))
    return ChainUnavailableError(f"{who} answered HTTP {status}")


def _seconds(retry_after: str | None, now: Callable[[], datetime]) -> float:
    """Read a Retry-After header, which is a number of seconds or a date."""
    if retry_after is None:
        return 0.0
    if retry_after.isascii() and retry_after.isdigit():
        return min(float(retry_after[:9]), RETRY_AFTER_MAX_S)
    try:
        wait = (parsedate_to_datetime(retry_after) - now()).total_seconds()
    except (TypeError, ValueError):
        return 0.0
    return min(max(wait, 0.0), RETRY_AFTER_MAX_S)
