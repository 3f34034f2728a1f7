"""An account's page in every state: for looking at, in tests of the layout and in pictures."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from cambist.plugin import Token, Units
from cambist.registry import Registry
from cambist.services.receiving.account_page import AccountPage, PageChain, PageDeposit
from cambist_web.checkout.account_build import account_view
from cambist_web.checkout.account_view import AccountView
from tests.support.checkout_samples import CHAIN, FAMILY, NETWORKS, NOW, TRON, USDC

BASE = msgspec.structs.replace(
    CHAIN,
    id="base",
    name="Base",
    chain_id_num=8453,
    explorer_tx_url="https://basescan.org/tx/{tx_id}",
    tokens=(
        CHAIN.tokens[0],
        Token(symbol="USDC", contract="0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", decimals=6, label="USD Coin"),
    ),
    token_standard=None,
)
REGISTRY = cast(
    "Registry",
    SimpleNamespace(
        chains={"ethereum": CHAIN, "base": BASE, "tron": TRON},
        families={"evm": FAMILY, "tron": NETWORKS["tron"][1]},
    ),
)
EVM_ADDRESS = "0x71C7656EC7ab88b098defB751B7401B5f6d8976F"
CHAINS = (
    PageChain(chain="ethereum", address=EVM_ADDRESS, read_at=NOW, least={"USDC": Units(5_000_000)}),
    PageChain(chain="base", address=EVM_ADDRESS, read_at=NOW, least={}),
    PageChain(chain="tron", address="TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH", read_at=NOW, least={}),
)


def came(units: int, *, minutes: int, status: str = "confirmed", confirmations: int = 4, **more: Any) -> PageDeposit:
    """Return a deposit of USDC on Base."""
    fields: dict[str, Any] = {
        "chain": "base", "token": USDC.symbol, "decimals": 6, "units": Units(units),
        "tx_id": "0x8f3a51c0e95f4a5be9d2c41d4a1b7e02ab19c6d5e7f8091a2b3c4d5e6f708192",
        "height": 1000, "head": 1000 + confirmations, "finalized": None, "required_confirmations": 12,
        "status": status, "matches": True, "mined_at": NOW - timedelta(minutes=minutes),
    }  # fmt: skip
    return PageDeposit(**{**fields, **more})


ACTIVE = AccountPage(
    public_id="pub_5wq8e2r4t6y1m3n7b9v0c4x2za",
    shop_name="Nordlicht Exchange",
    mode="live",
    is_active=True,
    chains=CHAINS,
    deposits=(),
    has_earlier=False,
)
_CAME = (
    came(250_000_000, minutes=1, status="detected"),
    came(1_200_500_000, minutes=42),
    came(3_000_000, minutes=180, chain="ethereum", matches=False),
    came(75_000_000, minutes=1600, status="orphaned"),
    came(1_523_456_789_012_345_678, minutes=4000, chain="ethereum", token="ETH", decimals=18),
)


def page(**more: Any) -> AccountPage:
    return msgspec.structs.replace(ACTIVE, **more)


def view(of: AccountPage, chain: str | None = None) -> AccountView:
    """Return what its page shows."""
    return account_view(of, chain, NOW, REGISTRY)


SAMPLES: dict[str, AccountView] = {
    "new": view(page()),
    "used": view(page(deposits=_CAME, has_earlier=True), "base"),
    "tron": view(page(), "tron"),
    "one-network": view(page(chains=CHAINS[2:])),
    "sandbox": view(page(mode="sandbox", deposits=_CAME[:1])),
    "late": view(page(chains=(msgspec.structs.replace(CHAINS[0], read_at=NOW - timedelta(minutes=9)), *CHAINS[1:]))),
    "closed": view(page(chains=(*CHAINS, msgspec.structs.replace(CHAINS[0], chain="atlantis"))), "atlantis"),
    "inactive": view(page(is_active=False, deposits=_CAME[1:2])),
}
