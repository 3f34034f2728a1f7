"""The values that cross the boundary between the gateway and its plugins.

All are frozen. Amounts are ``Units``: integers in an asset's smallest unit (wei, sun, 10^-6 USDT). Heights are
block numbers, times of blocks are whole seconds since 1970 UTC, hashes and transaction ids are the chain's
customary text form in lower case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Final, Literal, NewType, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from .budgets import OwnBudgets, RequestBudgets

Units = NewType("Units", int)
"""An amount in the smallest unit of its asset."""


class Token(Struct, frozen=True, kw_only=True):
    """Something of value on one chain: its native coin, or a token contract.

    ``contract`` is the normalized contract address, and None exactly for the native coin. Identity on a chain
    is the contract, never the symbol: anyone can deploy a contract that calls itself USDT. ``least_units`` is the least
    that a transfer must be to arrive wherever it goes, at an address that nobody has used, too: less is neither asked
    for nor sent.
    """

    symbol: str
    contract: str | None
    decimals: int
    label: str
    least_units: Units = Units(1)

    @property
    def is_native(self) -> bool:
        """Whether this is the chain's own coin."""
        return self.contract is None


class ChainInfo(Struct, frozen=True, kw_only=True):
    """What the gateway knows of a chain without asking any node.

    ``tokens`` holds the native coin first, then every token contract that may be credited. ``availability`` tells
    whether the operator configured endpoints for it: ``live``; ``simulated``, for sandbox projects only; or
    ``unconfigured``, listed but refused. ``finality_required`` makes the chain's finalized height a ceiling
    for confirmations. ``span_max`` bounds one scan in blocks, ``hashes_kept`` is how many recent block hashes
    the gateway stores, and so the deepest reorg it can follow. ``sweeper`` is the contract that may be given power over
    one-time addresses, where the operator configured one: see ``cambist.plugin.sweeping``. ``token_standard`` is what
    wallets and exchanges offer as the network of the chain's tokens, such as ERC-20, where that is not its name.
    ``runs_contracts`` is true exactly where the connected chain is a ``ContractChain``: there, tokens can be
    swapped and bridged.
    """

    id: str
    name: str
    family: str
    tokens: tuple[Token, ...]
    confirmations: int
    availability: Literal["live", "simulated", "unconfigured"] = "live"
    chain_id_num: int | None = None
    is_evm: bool = False
    finality_required: bool = False
    span_max: int = 50
    hashes_kept: int = 1024
    poll_interval_ms: int = 1000
    explorer_tx_url: str | None = None
    sweeper: str | None = None
    token_standard: str | None = None
    runs_contracts: bool = False

    @property
    def native(self) -> Token:
        """The chain's own coin."""
        return self.tokens[0]

    def token(self, symbol: str) -> Token | None:
        """Return the token that goes by this symbol here, or None."""
        return next((token for token in self.tokens if token.symbol == symbol), None)


class Head(Struct, frozen=True, kw_only=True):
    """The newest block of one endpoint, and the finalized height where the chain has such a thing."""

    height: int
    hash: str
    finalized_height: int | None = None


class Block(Struct, frozen=True, kw_only=True):
    """A block's position in the chain. ``time`` is seconds since 1970 UTC as the block itself says."""

    height: int
    hash: str
    parent_hash: str
    time: int


class Span(Struct, frozen=True, kw_only=True):
    """A run of heights, both ends included."""

    first: int
    last: int

    @property
    def length(self) -> int:
        """How many blocks the span holds."""
        return self.last - self.first + 1


class Transfer(Struct, frozen=True, kw_only=True):
    """Value that arrived at a watched address in one block, or left one.

    Identity is ``(chain, tx_id, position)``. ``position`` is relative to the transaction, so that it survives
    the transaction being mined again in another block: ``log:<ordinal in the receipt>``, ``native``, or
    ``trace:<number>``. ``amount`` is above zero. ``sender`` is None where the chain does not tell. ``contract``
    is None for the native coin.
    """

    tx_id: str
    position: str
    height: int
    block_hash: str
    sender: str | None
    recipient: str
    contract: str | None
    amount: Units


class ScanResult(Struct, frozen=True, kw_only=True):
    """Every block of a span in ascending order, and the watched transfers in chain order."""

    blocks: Sequence[Block]
    transfers: Sequence[Transfer]


class TxStatus(Struct, frozen=True, kw_only=True):
    """What a node knows of a transaction.

    ``unknown`` means that this node has not heard of it, which proves nothing; not even that it has expired, which
    only ``Chain.expired`` tells. ``block`` and ``fee`` are set when mined.
    """

    state: Literal["unknown", "pending", "succeeded", "reverted"]
    block: Block | None = None
    fee: Units | None = None


class EndpointHealth(Struct, frozen=True, kw_only=True):
    """How one endpoint of a chain is doing. ``name`` carries no credentials.

    ``calls``, ``failures`` and ``rate_limited`` count since it was connected. ``position`` is its place among
    ``NetworkSetup.endpoints``, from 0. ``set_aside`` says in words why it is not asked now. ``latency_ms`` is how long
    answers take lately.
    """

    name: str
    healthy: bool
    head: int | None
    calls: int
    failures: int
    last_error: str | None = None
    position: int | None = None
    rate_limited: int = 0
    set_aside: str | None = None
    latency_ms: float | None = None


class Price(Struct, frozen=True, kw_only=True):
    """One unit of a token in a fiat currency, and when the source says it was so."""

    value: Decimal
    observed_at: datetime


PricePair: TypeAlias = tuple[str, str]
"""A token symbol in upper case and a lower-case ISO 4217 code: ``("ETH", "usd")``."""


class Watch(Protocol):
    """The set of addresses that are waited for, asked about once per transfer on the chain.

    Members are *keys*, the compact form that ``AddressFamily.address_key`` gives. ``in`` takes constant time
    for millions of addresses; it never says no to a watched address, and yes to a few that are not: transfers of
    theirs are dropped by the gateway. The length is how many there are, give or take as few.
    """

    def __contains__(self, key: object, /) -> bool: ...

    def __len__(self) -> int: ...


_OWN_BUDGETS: Final = OwnBudgets(lambda: 0.0)
"""Stands for budgets that count by the context's own clock; nobody counts with it."""


class PluginContext(Struct, frozen=True, kw_only=True):
    """What the gateway lends a plugin when it connects.

    Take time and chance only from here: whole runs are simulated from a seed. ``monotonic`` is in seconds. ``budgets``
    count requests to providers for all processes of the gateway; by default, which is for tests, for this one alone.
    """

    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    random: Random
    user_agent: str
    budgets: RequestBudgets = _OWN_BUDGETS

    def __post_init__(self) -> None:
        """Count by the clock that was lent, where nothing else was."""
        if self.budgets is _OWN_BUDGETS:
            force_setattr(self, "budgets", OwnBudgets(self.monotonic))
