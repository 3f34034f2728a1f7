"""What a chain plugin implements: address families, which need no node, and chains, which talk to one.

A plugin that serves one chain, whole, with its configuration::

    class ExamplePlugin(ChainPlugin[ExampleConfig]):
        name = "example"
        api_version = 1
        config_type = ExampleConfig

        def families(self) -> Sequence[AddressFamily]:
            return [ExampleFamily()]

        def chains(self, config: ExampleConfig) -> Sequence[ChainInfo]:
            return [EXAMPLE_CHAIN]

        @asynccontextmanager
        async def connect(self, config: ExampleConfig, context: PluginContext) -> AsyncIterator[Sequence[Chain]]:
            async with aiohttp.ClientSession() as session:
                yield [ExampleChain(session, config.rpc_urls)]

.. code-block:: toml

    [plugins.example]
    rpc_urls = ["https://..."]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Generic, TypeVar

from .errors import ConfigError, InvalidAddressError
from .sending import Broadcast, Dated, Effects, Fee, FoundTx, Intent, Plan, SignedTx, Step, Unprepared, UnsignedTx
from .setups import NetworkSetup
from .types import (
    Block,
    ChainInfo,
    EndpointHealth,
    Head,
    PluginContext,
    ScanResult,
    Span,
    Token,
    TxStatus,
    Units,
    Watch,
)

Config = TypeVar("Config")


class AddressFamily(ABC):
    """A way to derive and write addresses, shared by every chain that uses it. Pure: no node, no I/O."""

    name: ClassVar[str]
    """Its key in the gateway's tables, such as ``evm``."""

    coin_type: ClassVar[int]
    """The SLIP-44 number in the derivation path: 60 for every EVM chain."""

    tags: ClassVar[bool] = False
    """Whether transfers can carry a tag, or memo, that says for whom at the address they are. No address has a ``#``
    then: it stands between an address and its tag where both are one text."""

    @abstractmethod
    def derive_address(self, account_xpub: str, change: int, index: int) -> str:
        """Derive the address at ``account/change/index`` from a BIP-32 account-level extended public key.

        The result is normalized. Called for every payment, so parse the key once and keep it. Raises ValueError
        for a text that is no extended public key, and for numbers outside BIP-32's 0 to 2^31 - 1.
        """

    @abstractmethod
    def normalize_address(self, text: str) -> str:
        """Return the one spelling under which the gateway stores this address.

        Raises InvalidAddressError for anything else, a mixed-case EIP-55 address with a wrong checksum included.
        """

    def normalize_tag(self, text: str) -> str:
        """Return the one spelling of a tag: up to 128 printable ASCII characters, never empty.

        Override it where the family has tags. Raises InvalidAddressError for what is none.
        """
        raise InvalidAddressError(f"there are no tags, and so not {text[:64]!r}")

    @abstractmethod
    def address_key(self, address: str) -> bytes:
        """Return the compact form of a normalized address: what a Watch holds, different for different addresses."""

    @abstractmethod
    def payment_uri(self, chain: ChainInfo, address: str, token: Token, amount: Units) -> str:
        """Return what the checkout's QR code says: a text that wallets of the family understand."""

    def address_uri(self, chain: ChainInfo, address: str) -> str:
        """Return what the QR code of an address says to which any amount of any token may be sent: the address.

        Override it where the family's wallets and exchanges read a link that also says which chain is meant.
        """
        _ = chain
        return address

    @abstractmethod
    def effects(self, chain: ChainInfo, payload: bytes) -> Effects:
        """Read out of a payload everything that signing it allows. What the signer's policy judges.

        Raises UnreadablePayloadError for a payload of another chain, and for anything that cannot be told whole.
        """

    @abstractmethod
    def digest(self, payload: bytes) -> bytes:
        """Return the 32 bytes that the sender's key signs."""

    @abstractmethod
    def seal(self, tx: UnsignedTx, signature: bytes) -> SignedTx:
        """Put payload and signature together.

        ``signature`` is secp256k1's: r and s of 32 bytes each, s in the lower half, and the recovery id as one byte.
        Raises SignatureError where it is not the sender's.
        """


class ChainView(ABC):
    """One endpoint's view of the chain, pinned for the length of one poll.

    All answers come from the same endpoint, so that they can be checked against each other.
    """

    @abstractmethod
    async def head(self) -> Head:
        """Return the newest block of this endpoint."""

    @abstractmethod
    async def block(self, height: int) -> Block:
        """Return the block at this height on the endpoint's best chain: the reorg check.

        Raises InconsistentChainError where the endpoint has none although its head is as high.
        """

    @abstractmethod
    async def scan(self, span: Span, watch: Watch) -> ScanResult:
        """Return every block of the span, and its transfers of registered tokens to and from watched addresses.

        What nobody watches is dropped while it is decoded, before objects are built. Left out are transfers of
        failed transactions, of contracts that are not among ``ChainInfo.tokens``, and of zero. Each (chain,
        height) has exactly one source of native transfers.

        Raises ChainUnavailableError when nothing was learned, InconsistentChainError when answers do not fit
        together, SpanTooWideError when fewer blocks must be asked for.
        """


class Chain(ABC):
    """One network, connected. Stateless: the gateway owns cursor, confirmations, sequences and retries."""

    info: ChainInfo

    balances_count_waiting: ClassVar[bool] = False
    """Whether nodes tell balances as they will be after what waits to be mined, as far as each node knows of it."""

    needs_public_key: ClassVar[bool] = False
    """Whether what is signed names the sender's public key: then every step that is prepared has it."""

    @abstractmethod
    def view(self) -> AbstractAsyncContextManager[ChainView]:
        """Pin the endpoint that is in the best shape, for one poll of the chain.

        An error that leaves the context counts against the endpoint, so that the next view may pick another.
        Raises ChainUnavailableError when none can be asked now.
        """

    @abstractmethod
    async def balance(self, address: str, token: Token, at: int | None = None) -> Units:
        """Return what the address holds of the token, at a height or now.

        At a height, it is exactly what the blocks up to it have made of it. Every chain tells that of the height that
        its views call finalized at the moment, and of as many others as it can. Raises StateUnavailableError for
        one that it cannot tell.
        """

    @abstractmethod
    async def transaction(self, tx_id: str) -> TxStatus:
        """Return what is known of the transaction."""

    async def balances(self, wanted: Sequence[tuple[str, Token]], at: int | None = None) -> Sequence[Units]:
        """Return several balances, in the order asked for. Override it where a node answers many at once."""
        return [await self.balance(address, token, at) for address, token in wanted]

    async def transactions(self, tx_ids: Sequence[str]) -> Sequence[TxStatus]:
        """Return what is known of several transactions. Override it where a node answers many at once."""
        return [await self.transaction(tx_id) for tx_id in tx_ids]

    async def find_tx(self, tx_id: str) -> FoundTx | None:
        """Return a transaction as it was signed, whoever sent it, in whichever spelling its id is asked for.

        The gateway learns by it what became of a transfer that its database has forgotten. A node is not believed: the
        bytes must make the id, and the signature must be the sender's. None for what is no id, for one that nobody
        knows, and for a kind of transaction that cannot be put together again. Override it where all that the gateway
        sends can be. Raises ChainUnavailableError.
        """
        _ = tx_id
        return None

    async def witnessed(self, tx_id: str) -> TxStatus:
        """Return what all endpoints together know of a transaction. Asked before one ends a forgotten transfer.

        In a block it is where every endpoint that answers names the same one and says the same of it: as many as the
        operator's quorum, and more than one where the chain has several. Override it unless the chain has one endpoint,
        or ``transaction`` is as strict. Raises InconsistentChainError where they differ, ChainUnavailableError.
        """
        return await self.transaction(tx_id)

    @abstractmethod
    async def next_sequence(self, sender: str) -> int | None:
        """Return how many transactions of the sender are mined: the sequence of the next. None where there is none.

        Waiting transactions do not count: which of those there are, the gateway knows better than any node.
        """

    async def witnessed_sequence(self, sender: str) -> int | None:
        """Return the highest such count that two endpoints reach, None where there are no two that can be asked."""
        _ = sender
        return None

    async def expired(self, txs: Sequence[Dated]) -> Sequence[bool]:
        """Say of each transaction whether it is proven that it was not mined and never will be.

        True lets the gateway sign another in its place, so in doubt it is False. That a node does not know an id is
        no proof: every block in which it may stand must be final, and seen not to hold it. Override it where
        transactions expire. Raises ChainUnavailableError.
        """
        return [False for _ in txs]

    @abstractmethod
    async def plan(
        self, intents: Sequence[Intent], *, sponsor: str | None, promised: Mapping[str, int] | None = None
    ) -> Sequence[Plan]:
        """Say for each intent what must be sent, at what cost; ``sponsor`` is the gateway's own funded address.

        None of them is sent yet: what they use up of what a sender has covered, each leaves less of to the next.
        ``promised`` has an entry for each sender with transactions under way: how much of what it has covered they
        count on, which the chain may not show yet. Nothing else that is free can be counted on there.
        A transfer that would fail on the chain as it is (a recipient that a token refuses, say) is a plan that is
        refused. What depends only on money that has yet to come is not: the gateway sees to that. One that by itself
        costs more than the operator allows is a plan that says so. Raises FeeAboveCeilingError where nothing can be
        sent at the price of now, ChainUnavailableError.
        """

    @abstractmethod
    async def outbid(self, step: Step) -> Fee:
        """Return a fee at which nodes let the same step replace itself while it waits, and that is fit for now.

        Never asked where transactions have no sequence. The step's own fee where nothing is ever replaced. Raises
        FeeAboveCeilingError where that is more than the operator allows.
        """

    async def outbid_within(self, step: Step, price_max: int) -> Fee:
        """Return what ``outbid`` would, were ``price_max`` per unit of work the most that the operator allows.

        Asked where an operator wants one transaction to pay more than the ceiling. Without it, the ceiling holds.
        Raises FeeAboveCeilingError.
        """
        _ = price_max
        return await self.outbid(step)

    @abstractmethod
    async def prepare(self, steps: Sequence[tuple[Step, int | None]]) -> Sequence[UnsignedTx | Unprepared]:
        """Make steps, each with its sequence, into what is signed: no two payloads are ever alike.

        A step that cannot be made fails alone: what stands behind it is asked for again, with other sequences. Each
        has ``public_key`` where ``needs_public_key`` says so.
        """

    @abstractmethod
    async def broadcast(self, txs: Sequence[SignedTx]) -> Sequence[Broadcast]:
        """Hand transactions to the network, in this order, and say of each what came of it.

        Sending the same bytes again is no error. Never raises for lack of a node: those are ``unknown``.
        """

    async def token_at(self, contract: str) -> Token | None:
        """Return what a normalized contract tells of itself: symbol and decimals. None where that cannot be asked.

        Where the chain has several endpoints, two must tell the same. ``symbol`` and ``label`` are a stranger's text.
        Raises UnreadableTokenError for what is no token, ChainUnavailableError.
        """
        _ = contract
        return None

    def endpoints(self) -> Sequence[EndpointHealth]:
        """Return how each endpoint is doing, best first. Reads only what is already known."""
        return ()

    async def problems(self) -> Sequence[str]:
        """Ask the network whether it is what the configuration says, one sentence per problem.

        What ``cambist doctor`` prints: a wrong chain id, a token whose decimals differ from the contract's.
        """
        return ()


class ChainPlugin(ABC, Generic[Config]):
    """One plugin, which may serve many networks of its families."""

    name: ClassVar[str]
    """Its table in the operator's file, ``[plugins.<name>]``, and the name of its entry point."""

    api_version: ClassVar[int]
    """The contract version it was written for: a literal, never ``cambist.plugin.API_VERSION``."""

    config_type: type[Config]
    """A frozen msgspec Struct with ``forbid_unknown_fields=True``. Secrets arrive resolved, as plain text."""

    @abstractmethod
    def families(self) -> Sequence[AddressFamily]:
        """Return the address families that the plugin brings."""

    @abstractmethod
    def chains(self, config: Config) -> Sequence[ChainInfo]:
        """Return every chain that this configuration makes known. Pure: the web process asks, without nodes.

        Raises ConfigError.
        """

    @abstractmethod
    def connect(self, config: Config, context: PluginContext) -> AbstractAsyncContextManager[Sequence[Chain]]:
        """Open what is needed to read the chains whose availability is ``live``, until the context ends.

        Does not wait for nodes: a chain whose endpoints are all down connects, and its views fail.
        """

    def setup(self, config: Config, chain: str) -> NetworkSetup | None:
        """Return what of a live chain can be changed while the gateway runs, None where nothing can. Pure."""
        _ = config, chain
        return None

    def changed(self, config: Config, chain: str, setup: NetworkSetup) -> Config:
        """Return a configuration of this chain alone, with this setup in the place of its own. Pure.

        Everything else stays as it is: what ``setup`` returned changes nothing. Raises ConfigError where the setup
        makes no sense; its sentence is shown to the operator, and so has no key in it.
        """
        _ = config, setup
        raise ConfigError(f"{chain} cannot be changed while the gateway runs")


AnyChainPlugin = ChainPlugin[Any]
