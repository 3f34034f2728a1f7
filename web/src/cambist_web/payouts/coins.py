"""Which coins a merchant pays out, and what happens to what comes in of each."""

from __future__ import annotations

from litestar import Controller, get, patch, put
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from cambist.services.actor import Actor
from cambist.services.payouts import coin_settings
from cambist.services.payouts.coin_settings import Coin, CoinPatch, EnabledCoins
from cambist_web.context import Web

from .schemas import CoinAnswer, CoinList, coin_view


class Coins(Controller):
    """The merchant's coins, in the mode of the project: live and sandbox have settings of their own."""

    path = "/coins"
    tags = ("Wallet",)

    @get("/", summary="List coins and their settings")
    async def list(self, actor: NamedDependency[Actor], web: NamedDependency[Web]) -> CoinList:
        """Return every coin of the gateway. All are enabled until the merchant says otherwise."""
        async with web.db.autocommit() as conn:
            found = await coin_settings.list_coins(conn, web.gateway.registry, actor.merchant_pk, actor.mode)
        return CoinList(coins=[coin_view(coin) for coin in found])

    @put("/", summary="Say which coins are enabled")
    async def replace(
        self, data: JSONBody[EnabledCoins], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> CoinList:
        """Enable the coins of the list, and disable all others. Payouts of a disabled coin are refused."""
        async with web.db.transaction() as conn:
            found = await coin_settings.replace_enabled(conn, web.gateway.registry, actor, data, web.clock.now())
        return CoinList(coins=[coin_view(coin) for coin in found])

    @patch("/{chain:str}/{symbol:str}/settings", summary="Change a coin's settings")
    async def change(
        self,
        chain: FromPath[str],
        symbol: FromPath[str],
        data: JSONBody[CoinPatch],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
    ) -> CoinAnswer:
        """Change what is sent, leave the rest. An auto-payout goes to an approved address only."""
        coin = Coin(chain=chain, token=symbol)
        async with web.db.transaction() as conn:
            found = await coin_settings.change_settings(conn, web.gateway.registry, actor, coin, data, web.clock.now())
        return CoinAnswer(coin=coin_view(found))
