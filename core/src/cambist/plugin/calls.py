"""Chains that run contracts: what an address of ours calls, tried before it is sent and read back from receipts.

Swaps and bridges stand on these. How the gateway sends a call::

    simulate  the approval and the call, one after the other on the newest state; what reverts there is never sent
    plan      an intent of the action ``approve`` or ``call``, as every other intent
    sign      the signer reads an approval as ``Effects.allowance``; a call stands in ``Effects.call`` as it is, and
              is signed only where a provider's ``CallReader`` tells what it does
    receipt   what the call did, from the logs that it left

A chain that cannot do this is no ``ContractChain``, and swaps and bridges are not offered on it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from msgspec import Struct

from .chains import Chain
from .sending import Call, Movement
from .types import Block, Token, Units

LOGS_MAX = 1_000
"""Logs that one query may find. What finds more is asked for in shorter spans."""


class Log(Struct, frozen=True, kw_only=True):
    """What a contract wrote down while a transaction ran. ``position`` is as in ``Transfer.position``."""

    address: str
    topics: tuple[bytes, ...]
    data: bytes
    position: str


class CallTrial(Struct, frozen=True, kw_only=True):
    """What came of trying a call: the work that it took and the logs that it left, or why the chain refuses it.

    ``moved`` are the registered tokens that it moved, by their own logs, each with its ``source``: of a token that
    keeps a share of each transfer, less than was sent. A node that can only estimate one call tells no logs: there,
    that there are none says nothing, and ``moved`` is None.
    """

    work: int | None = None
    logs: tuple[Log, ...] = ()
    moved: tuple[Movement, ...] | None = None
    refused: str | None = None


class Receipt(Struct, frozen=True, kw_only=True):
    """What a mined transaction did. ``logs`` is empty where it did not succeed."""

    tx_id: str
    block: Block
    succeeded: bool
    logs: tuple[Log, ...]


class LogQuery(Struct, frozen=True, kw_only=True):
    """Logs of one contract in the blocks ``first`` to ``last``. A topic that is None may be any."""

    address: str
    topics: tuple[bytes | None, ...]
    first: int
    last: int


class FoundLog(Struct, frozen=True, kw_only=True):
    """A log and the transaction that left it, in a block of the chain as one endpoint knows it."""

    tx_id: str
    height: int
    block_hash: str
    log: Log


class ContractChain(Chain):
    """A chain that runs contracts. ``plan`` takes intents of the actions ``approve`` and ``call``, too."""

    @abstractmethod
    async def simulate(self, sender: str, calls: Sequence[Call]) -> Sequence[CallTrial]:
        """Try calls by this sender in this order on the newest state, each on what those before it have made of it.

        Nothing is sent, and fees need not be there. What follows a refused call is refused with it. Raises
        ChainUnavailableError.
        """

    @abstractmethod
    async def receipt(self, tx_id: str) -> Receipt | None:
        """Return what the transaction did, or None while it is not in a block. Raises ChainUnavailableError."""

    @abstractmethod
    async def logs(self, query: LogQuery) -> Sequence[FoundLog]:
        """Return the logs that a query finds, in chain order.

        Raises SpanTooWideError where there are more than LOGS_MAX or blocks are too many, ChainUnavailableError.
        """

    @abstractmethod
    async def allowance(self, owner: str, spender: str, token: Token) -> Units:
        """Return how much of the token the spender may still take from the owner. Raises ChainUnavailableError."""

    @abstractmethod
    def approval(self, token: Token, spender: str, amount: Units) -> Call:
        """Return the call that allows the spender this much, as an intent of the action ``approve`` makes it."""
