"""Encodes calls of the router, and what its executor is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eth_abi.abi import encode
from msgspec import Struct

from cambist.testing.contracts import load
from cambist_chainkit.eip55 import keccak, spell

NATIVE: Final = spell("e" * 40)
"""What 1inch writes for a chain's own coin."""

ZERO: Final = "0x" + "0" * 40
PERMIT2_FLAG: Final = 4

ROUTER: Final = load("Router", __package__)
EXECUTOR: Final = load("Executor", __package__)

_DESCRIPTION: Final = "(address,address,address,address,uint256,uint256,uint256)"
_TYPES: Final = ("address", _DESCRIPTION, "bytes")
_SWAP: Final = keccak(f"swap({','.join(_TYPES)})".encode())[:4]
_PLAN: Final = "(address[],bool,address,uint256)"
_TAIL: Final = bytes.fromhex("d1f115cb")
"""1inch marks by 4 bytes after the arguments whose key built a call."""


class SwapCall(Struct, frozen=True, kw_only=True):
    """A call of the router's ``swap``, before it is encoded. Addresses are normalized."""

    router: str
    executor: str
    src: str
    dst: str
    receiver: str
    amount: int
    amount_min: int
    plan: bytes
    flags: int = 0

    @property
    def value(self) -> int:
        """The coin that goes along."""
        return self.amount if self.src == NATIVE else 0

    @property
    def data(self) -> bytes:
        description = (
            *(self.src, self.dst, self.executor, self.receiver),
            *(self.amount, self.amount_min, self.flags),
        )
        return _SWAP + encode(_TYPES, [self.executor, description, self.plan]) + _TAIL


def plan(path: Sequence[str], *, buys_coin: bool, referrer: str | None, fee: int) -> bytes:
    """Return what the executor is told: a path of Uniswap's, and how much of what is sold the referrer gets."""
    return encode([_PLAN], [(path, buys_coin, referrer or ZERO, fee)])
