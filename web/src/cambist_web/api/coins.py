"""Which coins a merchant pays out, and what happens to what comes in of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from litestar import Controller, get, patch, put
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import UNSET, Struct, UnsetType

from cambist.domain.money import format_units
from cambist.plugin import ChainInfo
from cambist.services.actor import Actor
from cambist.services.audit.entries import Action
from cambist.services.payouts import auto_convert_reasons, auto_payout_reasons, coin_settings
from cambist.services.payouts.auto_convert_reasons import Conversion
from cambist.services.payouts.auto_payout_reasons import Coin, Reason
from cambist.services.payouts.coin_settings import Coin as CoinName
from cambist.services.payouts.coin_settings import CoinPatch, CoinSettings, EnabledCoins
from cambist_web.auth import key_routes, needs, project_routes
from cambist_web.context import Web
from cambist_web.origin import Audit
from cambist_web.schemas import Answer, sent
from cambist_web.sending import payout_context

from .discovery import least_amount


class CoinView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A coin, and what the merchant has decided about it.

    `availability` is its chain's: live projects can use `live` ones alone, sandbox projects all.

    `autopayoutWaitsFor` says all that keeps the policy `limit` from paying out now; it is empty where it is about to
    or off. What is above the threshold has to be worth `autopayoutMinimumUsd`. `autoConvertWaitsFor` and
    `autoConvertMinimumUsd` say the same of converting. `leastAmount` is there where less than that does not arrive, and
    is refused. Less than `minDeposit` is held where it comes to an account.
    """

    chain: str
    token: str
    contract_address: str | None
    decimals: int
    label: str
    least_amount: str | UnsetType = UNSET
    availability: Literal["live", "simulated", "unconfigured"]
    enabled: bool
    auto_convert_enabled: bool
    auto_convert_dest_chain: str | None
    auto_convert_dest_token: str | None
    auto_convert_minimum_usd: str
    auto_convert_waits_for: Sequence[Reason]
    autopayout_policy: str
    autopayout_threshold: str | None
    autopayout_address: str | None
    autopayout_minimum_usd: str
    autopayout_waits_for: Sequence[Reason]
    min_deposit: str | None


class CoinList(Answer, frozen=True, kw_only=True):
    """Every coin of the gateway. `version` goes along where it is said which of them are enabled."""

    version: int
    coins: Sequence[CoinView]


class CoinAnswer(Answer, frozen=True, kw_only=True):
    """One coin."""

    coin: CoinView


def coin_view(chain: ChainInfo, explained: Coin, conversion: Conversion) -> CoinView:
    coin = explained.settings
    token, threshold = coin.token, coin.autopayout_threshold
    return CoinView(
        chain=coin.chain,
        token=token.symbol,
        contract_address=token.contract,
        decimals=token.decimals,
        label=token.label,
        least_amount=least_amount(token),
        availability=chain.availability,
        enabled=coin.enabled,
        auto_convert_enabled=coin.auto_convert_enabled,
        auto_convert_dest_chain=coin.auto_convert_dest_chain,
        auto_convert_dest_token=coin.auto_convert_dest_token,
        auto_convert_minimum_usd=conversion.minimum_usd,
        auto_convert_waits_for=conversion.reasons,
        autopayout_policy=coin.autopayout_policy,
        autopayout_threshold=None if threshold is None else format_units(threshold, token.decimals),
        autopayout_address=coin.autopayout_address,
        autopayout_minimum_usd=explained.minimum_usd,
        autopayout_waits_for=explained.reasons,
        min_deposit=None if coin.min_deposit is None else format_units(coin.min_deposit, token.decimals),
    )


async def explained(web: Web, actor: Actor, coins: Sequence[CoinSettings]) -> Sequence[CoinView]:
    gateway = web.gateway
    paid_out = await auto_payout_reasons.explain(web.db, payout_context(web), gateway.rates, actor, coins)
    converted = await auto_convert_reasons.explain(
        web.db, gateway.registry, gateway.rates, actor, coins, web.clock.now()
    )
    chains = gateway.registry.chains
    return [coin_view(chains[one.settings.chain], one, rule) for one, rule in zip(paid_out, converted, strict=True)]


class Coins(Controller):
    """The merchant's coins, in the mode of the project: live and sandbox have settings of their own."""

    path = "/coins"
    tags = ("Wallet",)

    @get("/", summary="List coins and their settings", opt=needs("read"))
    async def list(self, actor: NamedDependency[Actor], web: NamedDependency[Web]) -> CoinList:
        """Return every coin of the gateway. All are enabled until the merchant says otherwise."""
        async with web.db.autocommit() as conn:
            # First: what is read after it is at least as new, and who changes it by this version is told.
            version = await coin_settings.read_version(conn, actor.merchant_pk, actor.mode)
            found = await coin_settings.list_coins(conn, web.gateway.registry, actor.merchant_pk, actor.mode)
        return CoinList(version=version, coins=await explained(web, actor, found))

    @put("/", summary="Say which coins are enabled", opt=needs("payouts", step_up=True))
    async def replace(
        self,
        data: JSONBody[EnabledCoins],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> CoinList:
        """Enable the coins of the list, and disable all others. Payouts of a disabled coin are refused.

        Send the `version` of the list that you read: where somebody has said otherwise since, `VERSION_MISMATCH`.
        """
        async with web.db.transaction() as conn:
            found = await coin_settings.replace_enabled(conn, web.gateway.registry, actor, data, web.clock.now())
            version = await coin_settings.read_version(conn, actor.merchant_pk, actor.mode)
            enabled = [f"{coin.chain}/{coin.token.symbol}" for coin in found if coin.enabled]
            await audit.record(conn, Action.COINS_CHANGED, enabled=enabled)
        return CoinList(version=version, coins=await explained(web, actor, found))

    @patch("/{chain:str}/{symbol:str}/settings", summary="Change a coin's settings", opt=needs("payouts", step_up=True))
    async def change(  # noqa: PLR0913, PLR0917  the path, the body, and what the use case needs
        self,
        chain: FromPath[str],
        symbol: FromPath[str],
        data: JSONBody[CoinPatch],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> CoinAnswer:
        """Change what is sent, leave the rest. An auto-payout goes to an approved address only.

        `{"autopayoutPolicy": "limit"}` alone has all that is available be paid out to the one address that is approved.
        With `autoConvertEnabled` it is exchanged for another coin.
        """
        coin = CoinName(chain=chain, token=symbol)
        async with web.db.transaction() as conn:
            found = await coin_settings.change_settings(conn, web.gateway.registry, actor, coin, data, web.clock.now())
            await audit.record(conn, Action.COIN_SETTINGS_CHANGED, subject=f"{chain}/{symbol}", changed=sent(data))
        (shown,) = await explained(web, actor, [found])
        return CoinAnswer(coin=shown)


controllers = [key_routes("/api/merchant/wallet", Coins), project_routes("/wallet", Coins)]
