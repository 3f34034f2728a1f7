"""What an HTTP answer means where it is not the one hoped for: refusals, silence, pages, and broken JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final, TypeVar

import msgspec

from cambist.plugin import ChainError, ChainUnavailableError, InconsistentChainError, RateLimitedError, SpanTooWideError

T = TypeVar("T")

RETRY_AFTER_MAX_S: Final = 300.0
NESTED_MAX: Final = 4000


class NestedTooDeeplyError(InconsistentChainError):
    """The answer is nested more deeply than it can be decoded."""


class NoAnswerError(ChainUnavailableError):
    """The endpoint kept silent for as long as it was given: do not wait as long once more."""


class TooLongError(SpanTooWideError):
    """The answer is longer than the endpoint gives, or than is read: ask for less. To ask again does not help."""


class UnsupportedError(ChainUnavailableError):
    """The endpoint does not offer this question: ask in another way, or somebody else."""


def from_status(who: str, status: int, retry_after: str | None, now: Callable[[], datetime]) -> ChainError:
    """Return the error that an HTTP status other than 200 stands for."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return RateLimitedError(
            f"{who} asks for fewer requests (HTTP 429)", retry_after=retry_after_s(retry_after, now)
        )
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return TooLongError(f"{who} refuses so large a request (HTTP 413)")
    if status in {401, 402, 403}:
        return ChainUnavailableError(f"{who} refuses us (HTTP {status}): our key may be wrong or used up")
    if status == HTTPStatus.SERVICE_UNAVAILABLE and retry_after is not None:
        return RateLimitedError(f"{who} is busy (HTTP 503)", retry_after=retry_after_s(retry_after, now))
    return ChainUnavailableError(f"{who} answered HTTP {status}")


def retry_after_s(retry_after: str | None, now: Callable[[], datetime]) -> float:
    """Read a Retry-After header, which is a number of seconds or a date. Zero for none, and for what is neither."""
    if retry_after is None:
        return 0.0
    if retry_after.isascii() and retry_after.isdigit():
        return min(float(retry_after[:9]), RETRY_AFTER_MAX_S)
    try:
        wait = (parsedate_to_datetime(retry_after) - now()).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(max(wait, 0.0), RETRY_AFTER_MAX_S)


def unreadable(who: str, asked: str, body: bytes, error: Exception) -> ChainError:
    """Return the error that a failure to decode a body stands for."""
    if isinstance(error, RecursionError):
        return NestedTooDeeplyError(f"{who} answered {asked} with something nested too deeply")
    if isinstance(error, msgspec.ValidationError):
        return InconsistentChainError(f"{who} answered {asked} with something else than that: {error}")
    page = body.lstrip(b"[ \r\n\t").startswith(b"<")
    return ChainUnavailableError(f"{who} answered {asked} with {'a web page' if page else 'broken JSON'}")


def decode_deep(decoder: msgspec.json.Decoder[T], body: bytes | memoryview) -> T:
    """Decode however deep the calls of a trace are nested, and refuse deeper nesting with RecursionError.

    The EVM allows 1024 calls, each is two levels of JSON, and a transaction that goes so deep costs its sender
    little. It must not be able to stop the chain by Python's limit, which is 1000 by default; nor to kill the
    process where a library has put that limit so high that the stack ends before it, as py_ecc does. Python 3.12
    alone has a second limit, at about 750 calls, which cannot be moved.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(NESTED_MAX)
    try:
        return decoder.decode(body)
    finally:
        sys.setrecursionlimit(limit)
