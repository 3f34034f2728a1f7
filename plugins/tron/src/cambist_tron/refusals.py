"""What the ways in which nodes and providers refuse mean for the gateway. Nodes do it with HTTP status 200."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from cambist.plugin import ChainError, ChainUnavailableError, RateLimitedError
from cambist_chainkit.answers import TooLongError, UnsupportedError

TEXT_MAX: Final = 200
RETRY_AFTER_MAX_S: Final = 300.0
DAY_USED_UP_S: Final = 300.0
MANY_BLOCKS: Final = "wallet/getblockbylimitnext"
"""The one question of which less can be asked."""

_RATE: Final = re.compile(
    r"lack of computing resources|rate.?limit|too many requests|frequency limit|requests? (?:limit|count)|"
    r"per second|suspended for|throttl|quota|capacity|server_?busy",
    re.IGNORECASE,
)
_LENGTH: Final = re.compile(r"response size|too (?:large|big)|size exceed", re.IGNORECASE)
_DAY: Final = re.compile(r"daily usage|daily (?:request|limit)|per day", re.IGNORECASE)
_SUSPENDED: Final = re.compile(r"suspended for (\d{1,6})\s*s", re.IGNORECASE)
_UNSUPPORTED: Final = re.compile(
    r"unavailable due to config|api is closed|lite fullnode|(?:method|path|api|route)\b.{0,80}\bnot (?:found|allowed|"
    r"available)|not (?:supported|implemented)|does not support|unsupported|upgrade.*plan",
    re.IGNORECASE,
)

_UNSUPPORTED_STATUS: Final = frozenset(
    {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED}
)


class RefusedError(ChainUnavailableError):
    """The node answered that the question cannot be answered; ``told`` is what it said."""

    def __init__(self, message: str, told: str) -> None:
        super().__init__(message)
        self.told = told


def from_text(who: str, asked: str, told: str) -> ChainError:
    """Return the error that a node's or a provider's words stand for."""
    text = told[:TEXT_MAX]
    said = f"{who} answered {asked} with {text!r}"
    if asked == MANY_BLOCKS and _LENGTH.search(text):
        return TooLongError(said)
    if _DAY.search(text):
        return RateLimitedError(said, retry_after=DAY_USED_UP_S)
    if _RATE.search(text):
        wait = _SUSPENDED.search(text)
        return RateLimitedError(said, retry_after=min(float(wait[1]), RETRY_AFTER_MAX_S) if wait else 0.0)
    if _UNSUPPORTED.search(text):
        return UnsupportedError(said)
    return RefusedError(said, text)


def from_refused_path(who: str, asked: str, status: int) -> ChainError | None:
    """Return the error where an HTTP status says that there is no such question, and None where it does not."""
    if status not in _UNSUPPORTED_STATUS:
        return None
    return UnsupportedError(f"{who} does not offer {asked} (HTTP {status})")
