"""Reading the wallet. A key sees the money of its mode only: live and sandbox never meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter
from msgspec import Struct

from cambist.domain.money import format_units
from cambist.services.accounting import tokens, usage
from cambist.services.accounting.tokens import TokenBalance
from cambist.services.actor import Actor
from cambist.services.addresses import wallets
from cambist.services.addresses.account_keys import NotDerivedError
from cambist.services.overviews import holdings
from cambist.services.overviews.holdings import Balances
from cambist.services.pricing.price_points import CURRENCY
from cambist.services.supported import find_chain, find_token
from cambist_web.auth import key_routes, needs, project_routes
from cambist_web.context import Web
from cambist_web.schemas import Answer

from .overviews import Currency, kept_currencies
from .usage import SystemCredit, system_credit

ChainId = Annotated[str, QueryParameter(description="A value from the chain list.", min_length=1, max_length=64)]
Symbol = Annotated[str, QueryParameter(description="A token of the chain.", min_length=1, max_length=64)]


class BalanceView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What there is of one token. `receivable` is there, and negative, where a reorg took back what was spent."""

    chain: str
    token: str
    contract_address: str | None
    decimals: int
    available: str
    pending: str
    held: str
    receivable: str | None = None


class Wallet(Answer, frozen=True, kw_only=True):
    """Every token that the merchant ever had, and the usage credits that are left."""

    mode: str
    balances: Sequence[BalanceView]
    system_credit: SystemCredit


class SingleBalance(Answer, frozen=True, kw_only=True):
    """One token."""

    mode: str
    balance: BalanceView


def balance_view(found: TokenBalance) -> BalanceView:
    token, balance = found.token, found.balance
    return BalanceView(
        chain=found.chain,
        token=token.symbol,
        contract_address=token.contract,
        decimals=token.decimals,
        available=format_units(balance.available, token.decimals),
        pending=format_units(balance.pending, token.decimals),
        held=format_units(balance.held, token.decimals),
        receivable=format_units(balance.receivable, token.decimals) if balance.receivable else None,
    )


class Wallets(Controller):
    tags = ("Wallet",)

    @get("/", summary="Read all balances", opt=needs("read"))
    async def read(self, actor: NamedDependency[Actor], web: NamedDependency[Web]) -> Wallet:
        """Return every token that the merchant ever had, but no empty balance of one that another replaced.

        `available` can be spent, `pending` is on its way out, `held` has arrived and waits for a decision or for
        its payment to end.
        """
        settings = await web.platform.get()
        async with web.db.autocommit() as conn:
            found = await tokens.balances(conn, web.gateway.registry, actor.merchant_pk, actor.mode)
            left = await usage.balance(conn, actor.merchant_pk, actor.mode)
        return Wallet(
            mode=actor.mode,
            balances=[balance_view(balance) for balance in found],
            system_credit=system_credit(left, settings, actor.mode),
        )

    @get("/balance", summary="Read one balance", opt=needs("read"))
    async def balance(
        self, chain: ChainId, token: Symbol, actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> SingleBalance:
        """Return what the merchant has of one token."""
        chain_info = find_chain(web.gateway.registry.chains, chain)
        token_info = find_token(chain_info, token)
        async with web.db.autocommit() as conn:
            found = await tokens.balance(conn, actor.merchant_pk, actor.mode, chain_info, token_info)
        return SingleBalance(mode=actor.mode, balance=balance_view(found))


class WalletWorth(Answer, frozen=True, kw_only=True):
    """What there is, and what it is worth in one of the currencies that prices are kept in."""

    mode: str
    currency: str
    currencies: Sequence[str]
    balances: Balances


class Worth(Controller):
    tags = ("Wallet",)

    @get("/worth", summary="Read what the wallet is worth", opt=needs(member="read"))
    async def read(
        self, actor: NamedDependency[Actor], web: NamedDependency[Web], currency: Currency = CURRENCY
    ) -> WalletWorth:
        """Return every token that the merchant ever had, what it is worth now, who says so and as of when."""
        kept = kept_currencies(web, currency)
        async with web.db.autocommit() as conn:
            balances = await holdings.balances_of(
                conn, web.gateway.registry, actor.merchant_pk, actor.mode, currency, web.clock.now()
            )
        return WalletWorth(mode=actor.mode, currency=currency, currencies=kept, balances=balances)


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
    tags = ("Wallet",)

    @get("/addresses", summary="List wallet addresses", opt=needs("read"))
    async def list(self, actor: NamedDependency[Actor], web: NamedDependency[Web]) -> WalletAddresses:
        """Return the addresses of the merchant's main wallet. What is sent there is theirs, and belongs to no payment.

        Only chains that are read are there: what is sent on any other would not be seen.
        503 `KEYS_UNAVAILABLE` for a moment where a family was enabled just now.
        """
        registry = web.gateway.registry
        found = []
        async with web.db.transaction() as conn:
            for family in registry.families.values():
                chains = [
                    chain.id
                    for chain in registry.chains.values()
                    # A sandbox project's chains are simulated and read, every one of them.
                    if chain.family == family.name and (actor.mode == "sandbox" or chain.availability == "live")
                ]
                if not chains:
                    continue
                try:
                    wallet = await wallets.main_wallet(conn, web.gateway.keys, family, actor.merchant_pk, actor.mode)
                except NotDerivedError:  # the other families' addresses are told
                    continue
                found.append(WalletAddress(family=family.name, address=wallet.address, chains=chains))
        return WalletAddresses(mode=actor.mode, addresses=found)


controllers = [
    key_routes("/api/merchant/wallet", Wallets, Addresses),
    project_routes("/wallet", Wallets, Worth, Addresses),
]
