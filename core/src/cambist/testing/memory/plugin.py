"""The chain in memory as a plugin: what tests enable as ``[plugins.memory]``, through the same door as others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from cambist.plugin import (
    AddressFamily,
    AnyChainPlugin,
    Chain,
    ChainInfo,
    ChainPlugin,
    ConfigError,
    NetworkSetup,
    PluginContext,
    Token,
    Units,
    hookimpl,
)

from .chain import MemoryChain, MemoryLendingChain
from .family import MemoryFamily, named_address
from .fees import MemoryFees
from .rules import MemoryRules

SCHEME: Final = "memory://"


class MemoryChainConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One chain: ``[plugins.memory.chains.<id>]``. With ``rules`` its transactions expire.

    ``least_units`` is the least of the native coin that arrives at an address which holds none. ``endpoints`` are
    addresses of ``MemoryPlugin.nodes``, the first of which is asked; without any, the chain's own node is.
    """

    confirmations: int = 3
    availability: Literal["live", "simulated", "unconfigured"] = "live"
    finality_lag_blocks: int | None = None
    finality_required: bool = False
    span_max: int = 50
    hashes_kept: int = 64
    poll_interval_ms: int = 20
    fee_price_max: int | None = None
    legacy_fees: bool = False
    rules: MemoryRules | None = None
    least_units: int = 1
    endpoints: tuple[str, ...] = ()
    quorum: int = 1
    tokens: tuple[Token, ...] = ()


class MemoryConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[plugins.memory]``: one chain called ``memory`` unless others are named."""

    chains: Mapping[str, MemoryChainConfig] = field(default_factory=lambda: {"memory": MemoryChainConfig()})
    seed: int = 0


def memory_chain_info(chain_id: str = "memory", config: MemoryChainConfig | None = None) -> ChainInfo:
    """Describe a chain in memory: a native coin MEM with 18 decimals, and tokens USDX (6) and DAIX (18)."""
    config = config or MemoryChainConfig()
    return ChainInfo(
        id=chain_id,
        name=f"Memory ({chain_id})",
        family=MemoryFamily.name,
        tokens=(
            Token(
                symbol="MEM",
                contract=None,
                decimals=18,
                label="Memory coin",
                least_units=Units(config.least_units),
            ),
            Token(symbol="USDX", contract=named_address(f"{chain_id}/USDX"), decimals=6, label="Example dollar"),
            Token(symbol="DAIX", contract=named_address(f"{chain_id}/DAIX"), decimals=18, label="Example dai"),
            *config.tokens,
        ),
        confirmations=config.confirmations,
        availability=config.availability,
        finality_required=config.finality_required,
        span_max=config.span_max,
        hashes_kept=config.hashes_kept,
        poll_interval_ms=config.poll_interval_ms,
    )


class MemoryPlugin(ChainPlugin[MemoryConfig]):
    """Any number of chains in memory.

    A chain keeps its blocks as long as the plugin object lives, so a worker that connects again finds it where
    it left it. Tests reach it as ``plugin.memory_chains["memory"]`` once it was connected. Its address among ``nodes``
    is ``memory://memory``; a test puts other nodes beside it.
    """

    name = "memory"
    api_version = 1
    config_type = MemoryConfig

    def __init__(self) -> None:
        self.memory_chains: dict[str, MemoryChain] = {}
        self.nodes: dict[str, MemoryChain] = {}

    def families(self) -> Sequence[AddressFamily]:
        return [MemoryFamily()]

    def chains(self, config: MemoryConfig) -> Sequence[ChainInfo]:
        for chain_id, chain in config.chains.items():
            if chain.confirmations < 1:
                raise ConfigError(f"chains.{chain_id}.confirmations is at least 1")
        return [memory_chain_info(chain_id, chain) for chain_id, chain in config.chains.items()]

    @asynccontextmanager
    async def connect(self, config: MemoryConfig, context: PluginContext) -> AsyncIterator[Sequence[Chain]]:
        """Return the live chains, the same objects each time."""
        del context  # time and chance come from the seed and from what tests do
        for info in self.chains(config):
            if info.availability == "live" and info.id not in self.memory_chains:
                chain = config.chains[info.id]
                lends = chain.rules is not None and chain.rules.stake_per_work is not None
                kind = MemoryLendingChain if lends else MemoryChain
                self.memory_chains[info.id] = self.nodes[address_of(info.id)] = kind(
                    info,
                    rules=chain.rules,
                    seed=config.seed,
                    finality_lag_blocks=chain.finality_lag_blocks,
                    fees=MemoryFees(legacy=chain.legacy_fees, price_max=chain.fee_price_max),
                )
        yield [self._connected(info, config) for info in self.chains(config) if info.availability == "live"]

    def setup(self, config: MemoryConfig, chain: str) -> NetworkSetup:
        one = config.chains[chain]
        return NetworkSetup(endpoints=one.endpoints or (address_of(chain),), quorum=one.quorum, tokens=one.tokens)

    def changed(self, config: MemoryConfig, chain: str, setup: NetworkSetup) -> MemoryConfig:
        if len(setup.endpoints) < setup.quorum:
            raise ConfigError(
                f"chains.{chain}.quorum is {setup.quorum}, and there are {len(setup.endpoints)} endpoints"
            )
        if any(not one.startswith(SCHEME) for one in setup.endpoints):
            raise ConfigError(f"chains.{chain}.endpoints has what does not begin with {SCHEME}")
        tokens = (*memory_chain_info(chain).tokens, *setup.tokens)
        for what in ("symbol", "contract"):
            if len({getattr(token, what) for token in tokens}) < len(tokens):
                raise ConfigError(f"chains.{chain}.tokens has a {what} twice")
        one = replace(config.chains[chain], endpoints=setup.endpoints, quorum=setup.quorum, tokens=setup.tokens)
        return replace(config, chains={chain: one})

    def _connected(self, info: ChainInfo, config: MemoryConfig) -> MemoryChain:
        """Return the first endpoint's node: itself where it is the chain's own, and knows the same tokens."""
        endpoints = config.chains[info.id].endpoints
        node = self.nodes[address_of(info.id)]
        if endpoints:
            node = self.nodes.get(endpoints[0]) or _nobody(info)
        if node.info == info:
            return node
        # What tests do to a node, every connection to it sees.
        other = copy(node)
        other.info = info
        return other


def address_of(chain: str) -> str:
    """Return the address of a chain's own node."""
    return SCHEME + chain


def _nobody(info: ChainInfo) -> MemoryChain:
    node = MemoryChain(info)
    node.faults.unavailable = True
    return node


@hookimpl
def register_chains() -> Sequence[AnyChainPlugin]:
    """Bring the plugin in, where ``memory = "cambist.testing.memory.plugin"`` is an entry point."""
    return [MemoryPlugin()]
