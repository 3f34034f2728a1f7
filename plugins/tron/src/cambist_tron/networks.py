"""The networks known by name, each with its first block, by which an endpoint of another network is found out."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from cambist_chainkit.tokens import KnownToken

BLOCK_S: Final = 3
"""A block is due every three seconds on each of them."""

SOLID_DEPTH: Final = 18
"""How far the newest solid block is below the head, while all 27 representatives make their blocks."""


class Network(Struct, frozen=True, kw_only=True):
    """What the gateway must know of a network before it asks a node.

    ``chain_id`` is the first block's id, cut to its last four bytes, as contracts and wallets see it.
    """

    name: str
    genesis_id: str | None
    chain_id: int | None
    explorer_tx_url: str | None = None
    tokens: tuple[KnownToken, ...] = ()


MAINNET: Final = Network(
    name="TRON",
    genesis_id="00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc",
    chain_id=728126428,
    explorer_tx_url="https://tronscan.org/#/transaction/{tx_id}",
    tokens=(
        KnownToken(symbol="USDT", contract="TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", decimals=6, label="Tether USD"),
        KnownToken(symbol="USDC", contract="TEkxiTehnzSmSe2XqrBj4w32RUN966rdz8", decimals=6, label="USD Coin"),
    ),
)

NILE: Final = Network(
    name="TRON Nile",
    genesis_id="0000000000000000d698d4192c56cb6be724a558448e2684802de4d6cd8690dc",
    chain_id=3448148188,
    explorer_tx_url="https://nile.tronscan.org/#/transaction/{tx_id}",
    tokens=(KnownToken(symbol="USDT", contract="TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf", decimals=6, label="Tether USD"),),
)

SHASTA: Final = Network(
    name="TRON Shasta",
    genesis_id="0000000000000000de1aa88295e1fcf982742f773e0419c5a9c134c994a9059e",
    chain_id=2494104990,
    explorer_tx_url="https://shasta.tronscan.org/#/transaction/{tx_id}",
)

LOCAL: Final = Network(name="TRON (local)", genesis_id=None, chain_id=None)

NETWORKS: Final = {"mainnet": MAINNET, "nile": NILE, "shasta": SHASTA, "local": LOCAL}
