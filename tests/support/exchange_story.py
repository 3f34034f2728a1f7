"""One merchant's story of swaps and bridges, and everybody who checks it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct

from cambist.db.engine import Database
from tests.support.gateway import GatewayProcess, until
from tests.support.networks import Amount, Coin
from tests.support.networks.market import Market
from tests.support.receiver import Receiver
from tests.support.trader import Trader

_UNBALANCED = "SELECT asset, mode, sum(balance) AS total FROM ledger_accounts GROUP BY 1, 2 HAVING sum(balance) <> 0"


class Story(Struct, frozen=True):
    """A merchant who trades, the market, and who looks on."""

    market: Market
    trader: Trader
    receiver: Receiver
    wallet: str
    station: str
    db: Database
    gateway: GatewayProcess

    async def rich(self, shares: Mapping[Coin, Amount]) -> None:
        """Have customers pay all this, and wait until all of it is in the wallet."""
        before = {coin: await self.holds(coin) for coin in shares}
        await self.trader.fund(self.market, shares)

        async def collected() -> bool:
            for coin, amount in shares.items():
                if await self.holds(coin) - before[coin] != coin.units(amount):
                    return False
            return True

        await until(collected)

    async def holds(self, coin: Coin) -> int:
        """Return what the wallet holds, as another client sees it, without what is there for gas."""
        onlooker = coin.network.onlooker
        gas = await onlooker.gas(self.wallet, self.station) if coin == coin.network.native else 0
        return await onlooker.units(self.wallet, coin) - gas

    async def check(self, expected: Mapping[Coin, int]) -> None:
        """Compare what the wallet holds, and what the API says that it has, with so many units of each coin."""
        for coin, units in expected.items():
            assert await self.holds(coin) == units, (coin.chain, coin.symbol)
            balance = await self.trader.balance(coin)
            assert {key: coin.units(value) for key, value in balance.items()} == ({"available": units} if units else {})

    async def until_holds(self, coin: Coin, units: int) -> None:
        """Wait until the wallet holds so much, all of it available."""

        async def poll() -> bool:
            return await self.holds(coin) == units

        await until(poll)
        await self.check({coin: units})

    async def is_clean(self) -> dict[str, Any]:
        """Check that no unit was invented or lost, and that books and chains agree; return the report."""
        async with self.db.transaction() as conn:
            assert (await conn.exec_driver_sql(_UNBALANCED)).all() == []
        return await self.gateway.reconcile()

    async def no_allowance(self, coin: Coin, spender: str) -> None:
        """Wait until nobody may take anything of the wallet any more."""

        async def poll() -> bool:
            return await asyncio.to_thread(self.market.allowance, coin, self.wallet, spender) == 0

        if coin.contract is not None:
            await until(poll)

    async def received(self, coin: Coin, tx_id: str) -> int:
        """Return what the wallet got of a token by a transaction, by its receipt in another client's words."""
        client = coin.network.onlooker.client  # type: ignore[attr-defined]
        receipt = await asyncio.to_thread(client.eth.get_transaction_receipt, tx_id)
        found = 0
        for log in receipt["logs"]:
            is_transfer = len(log["topics"]) == 3 and log["address"].lower() == str(coin.contract).lower()
            if is_transfer and "0x" + log["topics"][2][-20:].hex() == self.wallet.lower():
                found += int.from_bytes(log["data"], "big")
        return found

    async def later(self, made: Mapping[str, Any], **changes: str) -> None:
        """Let time pass for one exchange: columns become moments, in SQL; it is looked at again at once."""
        changed = ", ".join(f"{name} = {moment}" for name, moment in {"due_at": "now()", **changes}.items())
        async with self.db.transaction() as conn:
            await conn.exec_driver_sql(
                f"UPDATE exchanges SET {changed} WHERE txn_id = $1 AND due_at IS NOT NULL",  # noqa: S608  own words
                (made["txnId"],),
            )

    async def now(self, made: Mapping[str, Any], step: str) -> None:
        """Wait until an exchange is at this step, which merchants are not told."""

        async def poll() -> bool:
            async with self.db.transaction() as conn:
                query = "SELECT step FROM exchanges WHERE txn_id = $1"
                return (await conn.exec_driver_sql(query, (made["txnId"],))).scalar_one() == step

        await until(poll)

    async def expired(self, made: Mapping[str, Any]) -> dict[str, Any]:
        """Let the time pass in which the call of an exchange may be built, and return what has failed."""
        await self.later(made, give_up_at="now()")
        return await self.trader.ended(made, "failed")

    async def sent(self, made: Mapping[str, Any]) -> int:
        """Return how many transactions were signed for the call of an exchange."""
        async with self.db.transaction() as conn:
            found = await conn.exec_driver_sql(
                "SELECT count(*) FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
                " JOIN exchanges e ON e.intent_pk = s.intent_pk WHERE e.txn_id = $1",
                (made["txnId"],),
            )
            return int(found.scalar_one())


def units_of(coin: Coin, text: str) -> int:
    """Return smallest units of what the API says."""
    return coin.units(Decimal(text))
