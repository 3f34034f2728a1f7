"""Payouts with a swap, asked for as the web side does: two transactions, and the quotes between them."""

from __future__ import annotations

from typing import Any

import msgspec

from cambist.services import platform
from cambist.services.actor import Actor
from cambist.services.idempotency import Made
from cambist.services.payouts import with_swap
from cambist.services.payouts.read import PayoutRow, find_payout
from cambist.services.payouts.requests import PayoutRequest
from cambist.services.platform import PlatformPatch

from .exchange_env import ExchangeEnv
from .payout_env import person

BODY = {
    "chain": "memory",
    "token": "MEM",
    "toAddress": person(),
    "srcChain": "memory",
    "srcToken": "USDX",
    "srcAmount": "60",
}


class SwapPayouts(ExchangeEnv):
    """Pays 60 USDX to Ann as MEM on the same chain, unless told otherwise in the names of the JSON."""

    async def decide(self, **fields: Any) -> None:
        async with self.db.transaction() as conn:
            await platform.save(conn, self.registry, msgspec.convert(fields, PlatformPatch), self.clock.now())

    @property
    def actor(self) -> Actor:
        return msgspec.structs.replace(super().actor, key_pk=1)

    async def want(self, header_key: str | None = None, **fields: Any) -> Made[PayoutRow] | with_swap.Wanted:
        body = {name: value for name, value in {**BODY, **fields}.items() if value is not None}
        self.used |= {body.get("chain"), body.get("srcChain")} & self.routers.keys()
        async with self.db.transaction() as conn:
            return await with_swap.prepare_payout(
                conn, self.context, self.actor, msgspec.convert(body, PayoutRequest), header_key
            )

    async def start(self, wanted: with_swap.Wanted) -> Made[PayoutRow]:
        offer = await with_swap.find_offer(self.context, wanted)
        async with self.db.transaction() as conn:
            return await with_swap.start_payout(conn, self.context, wanted, offer)

    async def pay(self, header_key: str | None = None, **fields: Any) -> Made[PayoutRow]:
        wanted = await self.want(header_key, **fields)
        return wanted if isinstance(wanted, Made) else await self.start(wanted)

    async def paid(self, **fields: Any) -> PayoutRow:
        return (await self.pay(**fields)).resource

    async def read(self, payout: PayoutRow) -> PayoutRow:
        async with self.db.autocommit() as conn:
            return await find_payout(conn, self.project, payout.payout_id)

    async def follow(self, payout: PayoutRow, **how: Any) -> PayoutRow:
        """Let everything run until the payout's exchange has come to its end, or to the step that is named."""
        assert payout.swap is not None
        await self.go_on(payout.swap.txn_id, **how)
        return await self.read(payout)

    async def told(self) -> list[tuple[str, dict[str, Any]]]:
        """Return all events with their data."""
        async with self.db.autocommit() as conn:
            rows = await conn.exec_driver_sql("SELECT event, body FROM webhook_events ORDER BY id")
            return [(row.event, msgspec.json.decode(row.body)["data"]) for row in rows]

    async def usage(self) -> list[tuple[str, int]]:
        async with self.db.autocommit() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT operation, weight FROM usage_records"
                " WHERE operation IN ('payout', 'swap', 'bridge', 'return') ORDER BY id"
            )
            return [(row.operation, int(row.weight)) for row in rows]
