"""The contract between the gateway and its plugins: everything a plugin may import of Cambist.

A plugin is a distribution with an entry point in the group ``cambist.plugins``. The entry point's name is the
plugin's name, it refers to a module, and the module implements hooks of ``cambist.plugin.hookspecs``::

    # pyproject.toml
    [project.entry-points."cambist.plugins"]
    example = "cambist_example.plugin"

    # cambist_example/plugin.py
    from cambist.plugin import hookimpl

    @hookimpl
    def register_chains():
        return [ExamplePlugin()]

Version 1 has been passed by two chains that have little in common, Ethereum's kind and TRON. What is added to it
keeps the version; what breaks a plugin raises it.
"""

from .budgets import OwnBudgets, RequestBudget, RequestBudgets, account_name
from .calls import LOGS_MAX, CallTrial, ContractChain, FoundLog, Log, LogQuery, Receipt
from .chains import AddressFamily, AnyChainPlugin, Chain, ChainPlugin, ChainView
from .errors import (
    ChainError,
    ChainUnavailableError,
    ConfigError,
    ExchangeError,
    ExchangeRefusedError,
    FeeAboveCeilingError,
    InconsistentChainError,
    InvalidAddressError,
    PluginError,
    PriceUnavailableError,
    ProviderUnavailableError,
    RateLimitedError,
    RefusalReason,
    SignatureError,
    SpanTooWideError,
    StateUnavailableError,
    UnreadablePayloadError,
    UnreadableTokenError,
)
from .exchanges import (
    AnyBridgePlugin,
    AnySwapPlugin,
    BridgeDeposit,
    BridgeFill,
    BridgePlugin,
    BridgeProvider,
    BridgeStatus,
    CallReader,
    ChainToken,
    ExchangeEffects,
    ExchangePlugin,
    ExchangeProvider,
    ExchangeRequest,
    ProviderFee,
    Quote,
    SwapPlugin,
    SwapProvider,
)
from .hookspecs import hookimpl
from .lending import LendingChain, Stake
from .prices import AnyPricePlugin, PricePlugin, PriceSource
from .sending import (
    Action,
    Allowance,
    Broadcast,
    Call,
    Dated,
    Effects,
    Fee,
    FoundTx,
    Intent,
    Movement,
    Plan,
    SignedTx,
    Staking,
    Step,
    Unprepared,
    UnsignedTx,
)
from .setups import NetworkSetup, endpoint_key
from .sweeping import Authorization, Sweep, SweeperDeployment, SweepingChain, SweepPlan
from .text import printable
from .types import (
    Block,
    ChainInfo,
    EndpointHealth,
    Head,
    PluginContext,
    Price,
    PricePair,
    ScanResult,
    Span,
    Token,
    Transfer,
    TxStatus,
    Units,
    Watch,
)

API_VERSION = 1
"""The version of this contract. A plugin states the one it was written for, and the start refuses others."""

__all__ = [
    "API_VERSION",
    "LOGS_MAX",
    "Action",
    "AddressFamily",
    "Allowance",
    "AnyBridgePlugin",
    "AnyChainPlugin",
    "AnyPricePlugin",
    "AnySwapPlugin",
    "Authorization",
    "Block",
    "BridgeDeposit",
    "BridgeFill",
    "BridgePlugin",
    "BridgeProvider",
    "BridgeStatus",
    "Broadcast",
    "Call",
    "CallReader",
    "CallTrial",
    "Chain",
    "ChainError",
    "ChainInfo",
    "ChainPlugin",
    "ChainToken",
    "ChainUnavailableError",
    "ChainView",
    "ConfigError",
    "ContractChain",
    "Dated",
    "Effects",
    "EndpointHealth",
    "ExchangeEffects",
    "ExchangeError",
    "ExchangePlugin",
    "ExchangeProvider",
    "ExchangeRefusedError",
    "ExchangeRequest",
    "Fee",
    "FeeAboveCeilingError",
    "FoundLog",
    "FoundTx",
    "Head",
    "InconsistentChainError",
    "Intent",
    "InvalidAddressError",
    "LendingChain",
    "Log",
    "LogQuery",
    "Movement",
    "NetworkSetup",
    "OwnBudgets",
    "Plan",
    "PluginContext",
    "PluginError",
    "Price",
    "PricePair",
    "PricePlugin",
    "PriceSource",
    "PriceUnavailableError",
    "ProviderFee",
    "ProviderUnavailableError",
    "Quote",
    "RateLimitedError",
    "Receipt",
    "RefusalReason",
    "RequestBudget",
    "RequestBudgets",
    "ScanResult",
    "SignatureError",
    "SignedTx",
    "Span",
    "SpanTooWideError",
    "Stake",
    "Staking",
    "StateUnavailableError",
    "Step",
    "SwapPlugin",
    "SwapProvider",
    "Sweep",
    "SweepPlan",
    "SweeperDeployment",
    "SweepingChain",
    "Token",
    "Transfer",
    "TxStatus",
    "Units",
    "Unprepared",
    "UnreadablePayloadError",
    "UnreadableTokenError",
    "UnsignedTx",
    "Watch",
    "account_name",
    "endpoint_key",
    "hookimpl",
    "printable",
]
