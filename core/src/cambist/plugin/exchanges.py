"""What plugins for swaps and bridges implement: providers, which quote and build calls, and readers, which read them.

A *swap* gives one token of a chain for another of the same chain, in one transaction. A *bridge* takes a deposit on
one chain, and somebody pays it out on another: the *fill*. Both are calls of contracts that the plugin pins::

    quote    what would come out, and what the provider keeps; binds nobody
    build    the call, fetched right before it is signed, with the least output that the merchant was promised
    read     the call in plain values again. Whoever builds calls is not believed: the gateway compares them with what
             was asked for, and the signer judges them. Readers are pure, and work on the bytes alone
    deposit  of a bridge: which deposit a receipt's logs tell of
    fill     of a bridge: the log on the other chain that ends it
    refund   of a bridge: what a receipt of the deposit's own chain gives back of deposits that nobody filled

What a chain shows is the truth. What a provider's server says of a deposit is a hint to look there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Generic, Literal, TypeVar

from msgspec import Struct

from .calls import FoundLog, LogQuery, Receipt
from .sending import Call
from .types import ChainInfo, PluginContext, Token, Units

Config = TypeVar("Config")


class ChainToken(Struct, frozen=True, kw_only=True):
    """A token of a chain."""

    chain: ChainInfo
    token: Token


class ExchangeRequest(Struct, frozen=True, kw_only=True):
    """What is asked of a provider: so much of one token for another.

    ``sender`` is the address of ours that calls and gives the units. ``recipient``, on the chain of ``buys``, gets the
    output. Both are normalized. ``slippage_bps`` is in hundredths of a percent, and ``fee_bps`` is the share of the
    output that the provider is asked to pay to ``fee_recipient``: the platform's fee.
    """

    sells: ChainToken
    buys: ChainToken
    units: Units
    sender: str
    recipient: str
    slippage_bps: int
    fee_bps: int = 0
    fee_recipient: str | None = None


class ProviderFee(Struct, frozen=True, kw_only=True):
    """A part of what the provider keeps, in units of the token that is sold. ``name`` is the provider's."""

    name: str
    units: Units


class Quote(Struct, frozen=True, kw_only=True):
    """What a provider offers.

    ``units`` is the output that it expects and ``units_min`` the least of it within the slippage asked for, after all
    fees. ``fill_deadline`` (seconds since 1970 UTC) and ``fill_s`` are a bridge's: until when a fill counts, and how
    long it usually takes.
    """

    units: Units
    units_min: Units
    fees: tuple[ProviderFee, ...] = ()
    fill_deadline: int | None = None
    fill_s: int | None = None


class ExchangeEffects(Struct, frozen=True, kw_only=True):
    """All that an exchange's call can do to the money of who signs it.

    It takes at most ``sold`` units of ``sold_contract`` (None: native coin, which goes along as the call's value),
    through ``spender`` where that is a token. It gives at least ``bought_min`` units of ``bought_contract`` to
    ``recipient`` on ``chain``, or takes nothing. A bridge's deposit that nobody fills until ``valid_until`` (seconds
    since 1970 UTC) goes back to ``refund_to`` on the chain it came from; a swap may tell its contract's deadline there.
    """

    sold_contract: str | None
    sold: Units
    spender: str | None
    chain: str
    bought_contract: str | None
    bought_min: Units
    recipient: str
    refund_to: str | None = None
    valid_until: int | None = None


class CallReader(ABC):
    """Understands the calls of one provider. Pure: bytes in, effects out; no node, no clock, no server."""

    @abstractmethod
    def spenders(self, chain: ChainInfo) -> frozenset[str]:
        """Return the contracts, normalized, that an exchange on this chain may allow to take tokens."""

    @abstractmethod
    def read(
        self, chain: ChainInfo, sender: str, call: Call, chains: Mapping[str, ChainInfo]
    ) -> ExchangeEffects | None:
        """Return what a call by the sender does; None where it calls none of the provider's contracts.

        ``chains`` are all that the gateway knows, by id. Raises UnreadablePayloadError for a call that is not told
        whole by its effects: an unknown function or flag, bytes that are not in canonical form, another chain's token.
        """


class ExchangeProvider(ABC):
    """One place that swaps or bridges. Slow or away, it hurts nobody else: the gateway asks it with a deadline."""

    name: ClassVar[str]
    """Shown to merchants as who did it."""

    @abstractmethod
    def supports(self, sells: ChainToken, buys: ChainToken) -> bool:
        """Whether it may be asked about this pair. Asks nobody."""

    @abstractmethod
    async def quote(self, request: ExchangeRequest) -> Quote:
        """Return what would come out now. Raises ExchangeRefusedError, ProviderUnavailableError."""

    @abstractmethod
    async def build(self, request: ExchangeRequest, units_min: Units) -> Call:
        """Return the call that swaps, or deposits, and gives at least ``units_min`` or nothing.

        Called right before it is signed: what it returns may be of no use a minute later. Needs no allowance to be
        there yet. Raises ExchangeRefusedError where so much cannot be had, ProviderUnavailableError.
        """


class SwapProvider(ExchangeProvider):
    """One place that swaps. ``build`` returns the call that gives the output in its own transaction."""


class BridgeDeposit(Struct, frozen=True, kw_only=True):
    """A deposit as its own chain shows it. ``deposit_id`` is unique on that chain, as the contract counts.

    ``units`` went in, ``units_out`` is what a fill has to give to ``recipient`` on ``chain``, in ``contract``; after
    ``fill_deadline`` (seconds since 1970 UTC) nobody can, and the units go back to ``refund_to``, on the deposit's own
    chain, in ``refund_contract`` (None: native coin). That is the token that went in; a contract that wraps native coin
    may give it back wrapped.
    """

    deposit_id: str
    tx_id: str
    units: Units
    chain: str
    contract: str | None
    units_out: Units
    recipient: str
    refund_to: str
    refund_contract: str | None
    fill_deadline: int


class BridgeFill(Struct, frozen=True, kw_only=True):
    """A fill as the other chain shows it: ``units`` of the deposit's token went to its recipient."""

    deposit_id: str
    tx_id: str
    units: Units


class BridgeStatus(Struct, frozen=True, kw_only=True):
    """What the provider's server says of a deposit. In doubt it is ``pending``."""

    state: Literal["pending", "filled", "expired", "refunded"]
    tx_id: str | None = None


class BridgeProvider(ExchangeProvider):
    """One bridge. ``build`` returns the deposit's call; what becomes of it is read from the two chains."""

    def refund_contract(self, sells: ChainToken) -> str | None:
        """Return the contract of what a deposit of this token comes back in, None for native coin. Asks nobody.

        That is the token itself. Override it where native coin comes back wrapped: the gateway bridges it only where
        the wrapped token is registered, for nobody would see it come back otherwise.
        """
        return sells.token.contract

    @abstractmethod
    def deposit(self, chain: ChainInfo, receipt: Receipt, chains: Mapping[str, ChainInfo]) -> BridgeDeposit | None:
        """Return the deposit that a receipt tells of, or None. Pure."""

    @abstractmethod
    def fill_query(
        self, chain: ChainInfo, deposit: BridgeDeposit, origin: ChainInfo, first: int, last: int
    ) -> LogQuery:
        """Return what finds the deposit's fill in these blocks of ``chain``, and no other deposit's. Pure."""

    @abstractmethod
    def fill(self, chain: ChainInfo, deposit: BridgeDeposit, origin: ChainInfo, found: FoundLog) -> BridgeFill | None:
        """Return the fill that a log tells of, or None where it is not this deposit's. Pure."""

    @abstractmethod
    def refund_query(self, chain: ChainInfo, deposit: BridgeDeposit, first: int, last: int) -> LogQuery:
        """Return what finds the refunds to ``refund_to`` in these blocks of ``chain``, the deposit's own. Pure.

        By the token's transfers from the bridge's contract, or by a log of the contract where native coin goes back. It
        may find more than refunds.
        """

    @abstractmethod
    def refund(self, chain: ChainInfo, deposit: BridgeDeposit, receipt: Receipt) -> Units | None:
        """Return how many units of ``refund_contract`` a receipt gives back to ``refund_to`` as refunds, or None. Pure.

        One transfer may be for several deposits and name none of them, so the sum is told, whatever this deposit's
        units are. What went to the address for another reason, a fill among them, is no refund; where a receipt does
        not tell the two apart, it is None.
        """

    @abstractmethod
    async def status(self, origin: ChainInfo, deposit: BridgeDeposit) -> BridgeStatus:
        """Return what the server says of it. Raises ProviderUnavailableError."""


class ExchangePlugin(ABC, Generic[Config]):
    """What plugins for swaps and plugins for bridges have in common."""

    name: ClassVar[str]
    """Its table in the operator's file, ``[plugins.<name>]``, and the name of its entry point."""

    api_version: ClassVar[int]
    """The contract version it was written for: a literal, never ``cambist.plugin.API_VERSION``."""

    config_type: type[Config]
    """A frozen msgspec Struct with ``forbid_unknown_fields=True``. Secrets arrive resolved, as plain text."""

    @abstractmethod
    def readers(self, config: Config) -> Sequence[CallReader]:
        """Return what reads the calls that its providers build. Pure: the signer asks. Raises ConfigError.

        A signer's table may lack the server's address and key, which it has no use for: give them defaults, and ask for
        them in ``connect``.

        Import codecs of contracts here or later, not with the plugin's module: the web process does without them.
        """


class SwapPlugin(ExchangePlugin[Config]):
    """One plugin, which may bring several swap providers."""

    @abstractmethod
    def connect(self, config: Config, context: PluginContext) -> AbstractAsyncContextManager[Sequence[SwapProvider]]:
        """Open the configured providers until the context ends. Asks nothing yet. Raises ConfigError."""


class BridgePlugin(ExchangePlugin[Config]):
    """One plugin, which may bring several bridge providers."""

    @abstractmethod
    def connect(self, config: Config, context: PluginContext) -> AbstractAsyncContextManager[Sequence[BridgeProvider]]:
        """Open the configured providers until the context ends. Asks nothing yet. Raises ConfigError."""


AnySwapPlugin = SwapPlugin[Any]
AnyBridgePlugin = BridgePlugin[Any]
