"""The treasury on a real node: the same merchant and engine, and a chain that somebody else keeps."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

from cambist.plugin import PluginContext
from tests.support.treasury import Treasury


def plugin_context(monotonic: Callable[[], float] = time.monotonic) -> PluginContext:
    """Return what a plugin is given: the real time unless it is the test's, and chance that repeats itself."""
    return PluginContext(now=lambda: datetime.now(UTC), monotonic=monotonic, random=Random(7), user_agent="tests")


class NodeTreasury(Treasury):
    """``node`` mines when the treasury does, and never by itself."""

    node: Any
    station_units: int

    async def mine(self, blocks: int = 1, *, seconds: float = 2) -> None:
        await self.node.mine(blocks)
        self.clock.advance(seconds)
        await self.poll()

    @abstractmethod
    async def pay(self, symbol: str, address: str, units: int) -> None:
        """Have a customer pay; it waits to be mined."""

    @abstractmethod
    async def forget(self) -> None:
        """Have the node forget all that waits."""

    async def open(self, *, station: int | None = None) -> None:
        units = self.station_units if station is None else station
        if units:
            await self.pay(self.info.native.symbol, self.station, units)
        await self.mine()

    async def receive_many(self, symbol: str, units: list[int], *, merchant: int | None = None) -> list[str]:
        """Have customers pay to fresh addresses until all is confirmed and spendable; return the addresses."""
        addresses = [await self.deposit_address(merchant) for _ in units]
        for address, amount in zip(addresses, units, strict=True):
            await self.pay(symbol, address, amount)
        await self.mine(1 + self.info.confirmations)
        for amount in units:
            await self.release(symbol, amount, merchant or self.merchant)
        return addresses

    async def sent(self, to_address: str, units: int, symbol: str = "USDT") -> str:
        """Pay out, and take a turn; nothing is mined yet. Return the payout's id."""
        payout_id = await self.pay_out(symbol, units, to_address)
        await self.engine().tick()
        return payout_id

    async def intents(self, kind: str) -> list[tuple[str, bool]]:
        """Return state of each intent of a kind, and whether it has been in a sweep."""
        async with self.db.autocommit() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT state, sweep_pk IS NOT NULL FROM outbound_intents WHERE kind = $1 ORDER BY id", (kind,)
            )
            return [tuple(row) for row in rows]

    async def count_deposits(self) -> int:
        async with self.db.autocommit() as conn:
            found = await conn.exec_driver_sql("SELECT count(*) FROM deposits WHERE status = 'confirmed'")
            return int(found.scalar_one())
