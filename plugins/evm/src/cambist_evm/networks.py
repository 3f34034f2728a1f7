"""The networks known without configuration, with the issuers' own USDT and USDC contracts and their true decimals."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from cambist_chainkit.tokens import KnownToken


class Network(Struct, frozen=True, kw_only=True):
    """What the gateway must know of a network before it asks a node.

    ``lag_blocks_max`` is how far an endpoint may be behind the others before it is set aside, about 15 seconds.
    ``bor_receipts`` marks the network whose nodes disagree on whether the synthetic transaction that applies
    bridge deposits is part of a block's transactions, of its receipts, or of both.
    ``logs_known`` says that failed transactions leave no logs but those for fees, which are known, and that a block's
    root of its transactions is Ethereum's; ``has_base_fee`` that every block tells a base fee, be it zero;
    ``estimates_heed_gas`` that nodes try a transfer with no more gas than they are given. Of a network that the
    operator describes, nobody knows any of them.

    ``fee_ceiling_gwei`` is the most per gas that is sent for, many times what is usual; ``tip_min_gwei`` what the
    network's nodes insist on, and ``tip_max_gwei`` the most that a node's advice is followed. ``l1_fee`` marks
    networks that charge for data beside the gas, as the OP stack does. ``transfer_gas_max`` is the most that a node
    is let spend on trying one transfer, ``native_gas_max`` the most that a transfer of native coin takes: the recipient
    decides what runs. ``call_gas_max`` is the most that a call of a contract takes. Arbitrum counts the fee for data in
    gas.
    """

    id: str
    name: str
    chain_id: int
    native_symbol: str
    native_label: str
    native_decimals: int = 18
    confirmations: int
    poll_interval_ms: int
    span_max: int
    hashes_kept: int
    lag_blocks_max: int
    explorer_tx_url: str | None = None
    token_standard: str | None = None
    tokens: tuple[KnownToken, ...] = ()
    bor_receipts: bool = False
    logs_known: bool = True
    has_base_fee: bool = True
    estimates_heed_gas: bool = True
    fee_ceiling_gwei: str = "500"
    tip_min_gwei: str = "0"
    tip_max_gwei: str | None = None
    l1_fee: bool = False
    transfer_gas_max: int = 3_000_000
    native_gas_max: int = 60_000
    call_gas_max: int = 3_000_000


ETHEREUM: Final = Network(
    id="ethereum",
    name="Ethereum",
    chain_id=1,
    native_symbol="ETH",
    native_label="Ether",
    confirmations=12,
    poll_interval_ms=2000,
    span_max=50,
    hashes_kept=512,
    lag_blocks_max=2,
    explorer_tx_url="https://etherscan.io/tx/{tx_id}",
    token_standard="ERC-20",  # noqa: S106 - no secret
    tokens=(
        KnownToken(
            symbol="USDT", contract="0xdAC17F958D2ee523a2206206994597C13D831ec7", decimals=6, label="Tether USD"
        ),
        KnownToken(symbol="USDC", contract="0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", decimals=6, label="USD Coin"),
    ),
    fee_ceiling_gwei="200",
    tip_min_gwei="0.01",
    tip_max_gwei="10",
)

BSC: Final = Network(
    id="bsc",
    name="BNB Smart Chain",
    chain_id=56,
    native_symbol="BNB",
    native_label="BNB",
    confirmations=20,
    poll_interval_ms=750,
    span_max=50,
    hashes_kept=4096,
    lag_blocks_max=30,
    explorer_tx_url="https://bscscan.com/tx/{tx_id}",
    token_standard="BEP-20",  # noqa: S106 - no secret
    tokens=(
        KnownToken(
            symbol="USDT", contract="0x55d398326f99059fF775485246999027B3197955", decimals=18, label="Binance-Peg USDT"
        ),
        KnownToken(
            symbol="USDC", contract="0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d", decimals=18, label="Binance-Peg USDC"
        ),
    ),
    fee_ceiling_gwei="20",
    tip_min_gwei="0.05",
    tip_max_gwei="5",
)

POLYGON: Final = Network(
    id="polygon",
    name="Polygon PoS",
    chain_id=137,
    native_symbol="POL",
    native_label="POL",
    confirmations=40,
    poll_interval_ms=1000,
    span_max=50,
    hashes_kept=2048,
    lag_blocks_max=8,
    explorer_tx_url="https://polygonscan.com/tx/{tx_id}",
    tokens=(
        KnownToken(
            symbol="USDT",
            contract="0xc2132D05D31c914a87C6611C10748AEb04B58e8F",
            decimals=6,
            label="Tether USD",
            symbols_onchain=("USDT0", "USD₮0"),
        ),
        KnownToken(symbol="USDC", contract="0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", decimals=6, label="USD Coin"),
    ),
    bor_receipts=True,
    fee_ceiling_gwei="3000",
    tip_min_gwei="30",
    tip_max_gwei="1000",
)

ARBITRUM: Final = Network(
    id="arbitrum",
    name="Arbitrum One",
    chain_id=42161,
    native_symbol="ETH",
    native_label="Ether",
    confirmations=40,
    poll_interval_ms=500,
    span_max=100,
    hashes_kept=16384,
    lag_blocks_max=60,
    explorer_tx_url="https://arbiscan.io/tx/{tx_id}",
    tokens=(
        KnownToken(
            symbol="USDT",
            contract="0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9",
            decimals=6,
            label="Tether USD",
            symbols_onchain=("USDT0", "USD₮0"),
        ),
        KnownToken(symbol="USDC", contract="0xaf88d065e77c8cC2239327C5EDb3A432268e5831", decimals=6, label="USD Coin"),
    ),
    fee_ceiling_gwei="10",
    tip_max_gwei="1",
    transfer_gas_max=32_000_000,
    native_gas_max=3_000_000,
    call_gas_max=32_000_000,
)

BASE: Final = Network(
    id="base",
    name="Base",
    chain_id=8453,
    native_symbol="ETH",
    native_label="Ether",
    confirmations=40,
    poll_interval_ms=1000,
    span_max=50,
    hashes_kept=2048,
    lag_blocks_max=8,
    explorer_tx_url="https://basescan.org/tx/{tx_id}",
    tokens=(
        KnownToken(
            symbol="USDT", contract="0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2", decimals=6, label="Tether USD"
        ),
        KnownToken(symbol="USDC", contract="0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", decimals=6, label="USD Coin"),
    ),
    fee_ceiling_gwei="10",
    tip_min_gwei="0.001",
    tip_max_gwei="1",
    l1_fee=True,
)

NETWORKS: Final = {network.id: network for network in (ETHEREUM, BSC, POLYGON, ARBITRUM, BASE)}
