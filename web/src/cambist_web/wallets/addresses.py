"""Where the merchant's wallet is: one address per family of chains."""

from __future__ import annotations

from collections.abc import Sequence

from litestar import Controller, get
from litestar.di import NamedDependency
from msgspec import Struct

from cambist.services.actor import Actor
from cambist.services.addresses import wallets
from cambist_web.context import Web
from cambist_web.schemas import Answer


class WalletAddress(Struct, frozen=True, kw_only=True, rename="camel"):
    """An address of the wallet, and the chains on which it is the merchant's."""

    family: str
    address: str
    chains: Sequence[str]


class WalletAddresses(Answer, frozen=True, kw_only=True):
    """One address per family of chains."""

    mode: str
    addresses: Sequence[WalletAddress]


class Addresses(Controller):
    """Where the merchant's money is kept."""

    tags = ("Wallet",)

    @get("/addresses", summary="List wallet addresses")
    async def list(self, actor: NamedDependency[Actor], web: NamedDependency[Web]) -> WalletAddresses:
        """Return the addresses of the merchant's main wallet. What is sent there is his, and belongs to no payment.

        503 `KEYS_UNAVAILABLE` for a moment where a family was enabled just now.
        """
        registry = web.gateway.registry
        found = []
        async with web.db.transaction() as conn:
            for family in registry.families.values():
                wallet = await wallets.main_wallet(conn, web.gateway.keys, family, actor.merchant_pk, actor.mode)
                chains = [chain.id for chain in registry.chains.values() if chain.family == family.name]
                found.append(WalletAddress(family=family.name, address=wallet.address, chains=chains))
        return WalletAddresses(mode=actor.mode, addresses=found)
