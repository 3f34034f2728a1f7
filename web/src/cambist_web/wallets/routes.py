"""Reading the wallet. A key sees the money of its mode only: live and sandbox never meet."""

from __future__ import annotations

from typing import Annotated

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from cambist.services.accounting import tokens, usage
from cambist.services.actor import Actor
from cambist.services.supported import find_chain, find_token
from cambist_web.context import Web
from cambist_web.usage.schemas import system_credit

from .schemas import SingleBalance, Wallet, balance_view

ChainId = Annotated[str, QueryParameter(description="A value from the chain list.", min_length=1, max_length=64)]
Symbol = Annotated[str, QueryParameter(description="A token of the chain.", min_length=1, max_length=64)]


class Wallets(Controller):
    """The merchant's money."""

    tags = ("Wallet",)

    @get("/", summary="Read all balances")
    async def read(self, actor: NamedDependency[Actor], web: NamedDependency[Web]) -> Wallet:
        """Return every token that the merchant ever had.

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

    @get("/balance", summary="Read one balance")
    async def balance(
        self, chain: ChainId, token: Symbol, actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> SingleBalance:
        """Return what the merchant has of one token."""
        chain_info = find_chain(web.gateway.registry.chains, chain)
        token_info = find_token(chain_info, token)
        async with web.db.autocommit() as conn:
            found = await tokens.balance(conn, actor.merchant_pk, actor.mode, chain_info, token_info)
        return SingleBalance(mode=actor.mode, balance=balance_view(found))
