"""web3.py's codec of contract calls, without what importing web3.py does to the process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol


class Codec(Protocol):
    """Encodes and decodes the arguments of a function, strictly."""

    def decode(self, types: Sequence[str], data: bytes) -> tuple[Any, ...]:
        """Return the values that the data begins with."""

    def encode(self, types: Sequence[str], args: Sequence[Any]) -> bytes:
        """Return the one canonical encoding of these values."""


def web3_codec() -> Codec:
    """Return the codec. The first call takes seconds."""
    # A library below web3 raises the limit to 100000 when it is imported: there, a deeply nested answer of a hostile
    # server would end the process, where Python would have raised RecursionError.
    limit = sys.getrecursionlimit()
    try:
        from web3 import Web3  # noqa: PLC0415 - the web process quotes, and does without

        return Web3().codec
    finally:
        sys.setrecursionlimit(limit)
