"""Refunds and resolutions on a till's simulated chains: asked for, sent, mined, and what the books say of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cambist.plugin import Units
from cambist.services.api_keys import Actor
from cambist.services.ledger import Account, Movement, Posting, Purpose, asset_key, post
from cambist.services.payouts.queue import Desk
from cambist.services.refunds import create, read
from cambist.services.refunds.read import RefundView
from cambist.services.refunds.requests import RefundRequest
from cambist.services.resolutions import decide
from cambist.services.resolutions.read import ResolutionView, get_resolution, list_resolutions
from cambist.services.sandbox.requests import FailPayout
from cambist.testing.memory.family import named_address

from .books import broken
from .till import Till

CUSTOMER = named_address("customer")
REQUIRED = 3
"""Confirmations that the chain in memory asks for."""


class Counter:
    """Where a shop gives money back."""

    def __init__(self, till: Till) -> None:
        self.till = till
        self.spent = 0
        registry, keys = till.registry, till.desk.leaser._keys
        self.desk = Desk(registry=registry, keys=keys, clock=till.clock, ids=till.ids)

    async def paid(self, *amounts: str, actor: Actor | None = None, **fields: Any) -> str:
        """Make a payment of 10 USDX, and deposit these amounts for good."""
        actor = actor or self.till.test
        payment_id = (await self.till.create(actor, **fields)).payment.payment_id
        for amount in amounts:
            await self.till.deposit(payment_id, actor, amount=amount, confirmations=REQUIRED)
        return payment_id

    async def refund(self, payment_id: str, key: str | None = None, actor: Actor | None = None, **fields: Any):
        request = msgspec.convert({"toAddress": CUSTOMER, **fields}, RefundRequest)
        async with self.till.db.transaction() as conn:
            return await create.create_refund(conn, self.desk, actor or self.till.test, payment_id, request, key)

    async def refund_deposit(self, deposit_id: str, key: str | None = None, **fields: Any):
        request = msgspec.convert({"toAddress": CUSTOMER, **fields}, RefundRequest)
        async with self.till.db.transaction() as conn:
            return await decide.refund(conn, self.desk, self.till.test, deposit_id, request, key)

    async def accept(self, deposit_id: str) -> ResolutionView:
        async with self.till.db.transaction() as conn:
            return (await decide.accept(conn, self.desk, self.till.test, deposit_id)).resolution

    async def release(self, deposit_id: str) -> ResolutionView:
        async with self.till.db.transaction() as conn:
            return (await decide.release(conn, self.desk, self.till.test, deposit_id)).resolution

    async def waiting(self, **filters: Any) -> list[ResolutionView]:
        """Return the resolution list, oldest first."""
        asked = {"reason": None, "chain": None, "page": 1, "limit": 100, **filters}
        async with self.till.db.transaction() as conn:
            page = await list_resolutions(conn, self.till.test, **asked)
        return list(reversed(page.resolutions))

    async def resolution(self, deposit_id: str) -> ResolutionView:
        async with self.till.db.autocommit() as conn:
            return await get_resolution(conn, self.till.test, deposit_id)

    async def refunds(self) -> Mapping[str, RefundView]:
        async with self.till.db.transaction() as conn:
            page = await read.list_refunds(conn, self.till.test.project_row, status=None, page=1, limit=100)
        return {refund.refund_id: refund for refund in page.refunds}

    async def send(self, chain: str = "memory") -> None:
        """Send what is queued; the next block takes it."""
        await self.till.sandbox.send_queued(self.till.test.project_row, [chain])

    async def finish(self, chain: str = "memory") -> None:
        """Send what is queued, and let it become final."""
        await self.send(chain)
        await self.till.mine(1 + REQUIRED, chain)

    async def fail(self, refund_id: str, chain: str = "memory") -> None:
        """Have a refund be mined and revert."""
        await self.till.sandbox.fail_payout(self.till.test, FailPayout(payout_id=refund_id))
        await self.finish(chain)

    async def spend(self, units: int) -> None:
        """Take units out of the merchant's available USDX, as a payout that is on its way does."""
        token = self.till.registry.chains["memory"].token("USDX")
        assert token is not None
        asset = asset_key("memory", token.contract)
        available, pending = (
            Account(self.till.test.merchant_row, asset, purpose) for purpose in (Purpose.AVAILABLE, Purpose.PENDING)
        )
        self.spent += units
        movement = Movement(available, pending, Units(units))
        async with self.till.db.transaction() as conn:
            await post(
                conn, "sandbox", [Posting(mode="sandbox", kind="test", reference=str(units), movements=[movement])]
            )

    async def check_books(self) -> None:
        """Check all that must hold of the books."""
        async with self.till.db.transaction() as conn:
            found = await broken(conn)
        if self.spent:
            found.pop("pending is what is under way", None)
        assert found == {}
