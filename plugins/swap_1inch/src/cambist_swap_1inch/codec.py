"""web3.py's codec of contract calls, without what importing web3.py does to the process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cambist_chainkit.imports import limit_kept


class Codec(Protocol):
    """Encodes and decodes the arguments of a function, strictly."""

    def decode(self, types: Sequence[str], data: bytes) -> tuple[Any, ...]:
        """Return the values that the data begins with."""

    def encode(self, types: Sequence[str], args: Sequence[Any]) -> bytes:
        """Return the one canonical encoding of these values."""


def web3_codec() -> Codec:
    """Return the codec. The first call takes seconds: the web process quotes, and does without. Raises ImportError."""
    with limit_kept():
        from web3 import Web3  # noqa: PLC0415 - see above
    return Web3().codec
