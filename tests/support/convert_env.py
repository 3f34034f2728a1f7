"""A merchant whose coins are converted by a rule, up to the exchange's row: live chains in memory, two providers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import structs

from cambist.db.models import Exchange
from cambist.hints import Hints
from cambist.plugin import ExchangeRequest, Quote
from cambist.services.exchanges.context import ExchangeContext
from cambist.services.exchanges.rows import SELECT, ExchangeRow, exchange_row
from cambist.services.payouts import auto_convert, coin_settings
from cambist.services.payouts.auto_convert_reasons import explain
from cambist.services.payouts.coin_settings import Coin, CoinPatch
from tests.support.exchange_env import PricedBridge, PricedService, PricedSwaps
from tests.support.payment_env import PaymentEnv, registry
from tests.support.payout_env import PayoutEnv

USDX = 10**6
LIVE = ("memory", "other", "calling")


class WatchedSwaps(PricedSwaps):
    """Does what a test asks for while a quote is on its way: ``meanwhile`` is awaited before the answer."""

    meanwhile: Any = None
    refusal: Exception | None = None

    async def quote(self, request: ExchangeRequest) -> Quote:
        if self.meanwhile is not None:
            await self.meanwhile()
        if self.refusal is not None:
            raise self.refusal
        return await super().quote(request)


class ConvertEnv(PayoutEnv):
    """Converts USDX on the chain in memory into MEM, unless told otherwise."""

    @classmethod
    async def opened(cls, db, clock, ids) -> ConvertEnv:
        """Return one on three chains that run contracts and one, ``plain``, that does not."""
        chains = registry({"memory": {"chains": {name: {} for name in (*LIVE, "plain")}}})
        chains.chains = {
            name: structs.replace(info, runs_contracts=name in LIVE) for name, info in chains.chains.items()
        }
        return cls(await PaymentEnv(db, clock, ids, chains).open())

    def __init__(self, payment_env: PaymentEnv) -> None:
        super().__init__(payment_env)
        self.service = PricedService(payment_env.prices.board)
        self.swaps = WatchedSwaps(self.service)
        self.exchanging = ExchangeContext(
            registry=payment_env.registry,
            keys=self.context.keys,
            clock=self.clock,
            ids=self.ids,
            rates=payment_env.rates,
            swaps=[self.swaps],
            bridges=[PricedBridge(self.service, lambda: self.clock.now().timestamp())],
        )

    async def set(
        self, coin: str = "memory/USDX", *, sandbox: bool = False, **fields: Any
    ) -> coin_settings.CoinSettings:
        """Change a coin's settings, in the names of the JSON."""
        chain, token = coin.split("/")
        async with self.db.transaction() as conn:
            return await coin_settings.change_settings(
                conn,
                self.payment_env.registry,
                self.test if sandbox else self.live,
                Coin(chain=chain, token=token),
                msgspec.convert(fields, CoinPatch),
                self.clock.now(),
            )

    async def rule(
        self, coin: str = "memory/USDX", dest: str = "memory/MEM", **more: Any
    ) -> coin_settings.CoinSettings:
        """Switch a rule on."""
        chain, token = dest.split("/")
        named = {"autoConvertDestChain": chain, "autoConvertDestToken": token}
        return await self.set(coin, autoConvertEnabled=True, **named, **more)

    async def run(self) -> int:
        """Run once, a minute after what was before; return how many exchanges were started."""
        self.clock.advance(61)
        return (await auto_convert.run(self.db, self.exchanging, Hints(None))).started

    async def exchanges(self) -> Sequence[ExchangeRow]:
        async with self.db.transaction() as conn:
            return [exchange_row(row) for row in await conn.execute(SELECT.order_by(Exchange.id))]

    async def end(self, txn_id: str, status: str = "succeeded", error: str | None = None) -> None:
        """Say that an exchange has ended; what the ledger says of it is not this test's."""
        now = self.clock.now()
        async with self.db.transaction() as conn:
            await conn.exec_driver_sql(
                "UPDATE exchanges SET status = $2, error = $3, step = 'ended', due_at = NULL, finished_at = $4"
                " WHERE txn_id = $1",
                (txn_id, status, error, now),
            )

    async def told(self, coin: str = "memory/USDX") -> list[str]:
        """Return the codes of what a coin waits for."""
        registry_ = self.payment_env.registry
        async with self.db.autocommit() as conn:
            coins = await coin_settings.list_coins(conn, registry_, self.live.merchant_pk, "live")
        rates, now = self.payment_env.rates, self.clock.now()
        shown = await explain(self.db, registry_, rates, self.live, coins, now)
        pairs = zip(coins, shown, strict=True)
        (found,) = [one for of, one in pairs if f"{of.chain}/{of.token.symbol}" == coin]
        return [reason.code for reason in found.reasons]
