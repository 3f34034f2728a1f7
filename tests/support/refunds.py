"""Refunds and resolutions on the simulated chains of a payment environment, without a web server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import select

from cambist.db.models import Payout
from cambist.domain.intents import IntentKind
from cambist.plugin import Units
from cambist.services.accounting.ledger import Account, Movement, Posting, Purpose, asset_key, post
from cambist.services.actor import Actor
from cambist.services.listing import Part
from cambist.services.payouts.handler import PayoutHandler
from cambist.services.payouts.queue import NewPayout, PayoutContext, debit_and_queue
from cambist.services.payouts.read import COLUMNS, payout_row
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.quotes import Asset
from cambist.services.reversals.refunds import create, read
from cambist.services.reversals.refunds.create import RefundRequest
from cambist.services.reversals.refunds.handler import PaymentRefundHandler
from cambist.services.reversals.refunds.read import RefundView
from cambist.services.reversals.resolutions import decide
from cambist.services.reversals.resolutions.read import ResolutionView, get_resolution, list_resolutions
from cambist.services.sandbox.requests import FailPayout
from cambist.services.sending.handler import IntentUpdate
from cambist.testing.memory.family import named_address

from .books import broken
from .payment_env import PaymentEnv

CUSTOMER = named_address("customer")
REQUIRED = 3
"""Confirmations that the chain in memory asks for."""


class RefundEnv:
    """Makes payments, refunds and resolutions on the sandbox project, and checks the books."""

    def __init__(self, payment_env: PaymentEnv) -> None:
        self.payment_env = payment_env
        self.spent = 0
        registry, keys = payment_env.registry, payment_env.context.leaser._keys
        self.context = PayoutContext(registry=registry, keys=keys, clock=payment_env.clock, ids=payment_env.ids)

    async def paid(self, *amounts: str, actor: Actor | None = None, **fields: Any) -> str:
        """Make a payment of 10 USDX, and deposit these amounts for good."""
        actor = actor or self.payment_env.test
        payment_id = (await self.payment_env.create(actor, **fields)).payment.payment_id
        for amount in amounts:
            await self.payment_env.deposit(payment_id, actor, amount=amount, confirmations=REQUIRED)
        return payment_id

    async def refund(self, payment_id: str, key: str | None = None, actor: Actor | None = None, **fields: Any):
        request = msgspec.convert({"toAddress": CUSTOMER, **fields}, RefundRequest)
        async with self.payment_env.db.transaction() as conn:
            return await create.create_refund(
                conn, self.context, actor or self.payment_env.test, payment_id, request, key
            )

    async def refund_deposit(self, deposit_id: str, key: str | None = None, **fields: Any):
        request = msgspec.convert({"toAddress": CUSTOMER, **fields}, RefundRequest)
        async with self.payment_env.db.transaction() as conn:
            return await decide.refund(conn, self.context, self.payment_env.test, deposit_id, request, key)

    async def accept(self, deposit_id: str) -> ResolutionView:
        async with self.payment_env.db.transaction() as conn:
            return (await decide.accept(conn, self.context, self.payment_env.test, deposit_id)).resolution

    async def release(self, deposit_id: str) -> ResolutionView:
        async with self.payment_env.db.transaction() as conn:
            return (await decide.release(conn, self.context, self.payment_env.test, deposit_id)).resolution

    async def waiting(self, **filters: Any) -> list[ResolutionView]:
        """Return the resolution list, oldest first."""
        async with self.payment_env.db.transaction() as conn:
            page = await list_resolutions(conn, self.payment_env.test, Part(limit=100), **filters)
        return list(reversed(page.items))

    async def resolution(self, deposit_id: str) -> ResolutionView:
        async with self.payment_env.db.autocommit() as conn:
            return await get_resolution(conn, self.payment_env.test, deposit_id)

    async def refunds(self) -> Mapping[str, RefundView]:
        async with self.payment_env.db.transaction() as conn:
            page = await read.list_refunds(conn, self.payment_env.test.project_pk, Part(limit=100))
        return {refund.refund_id: refund for refund in page.items}

    async def send(self, chain: str = "memory") -> None:
        """Send what is queued; the next block takes it."""
        await self.payment_env.sandbox.send_queued(self.payment_env.test.project_pk, [chain])

    async def finish(self, chain: str = "memory") -> None:
        """Send what is queued, and let it become final."""
        await self.send(chain)
        await self.payment_env.mine(1 + REQUIRED, chain)

    async def fail(self, refund_id: str, chain: str = "memory") -> None:
        """Have a refund be mined and revert."""
        await self.payment_env.sandbox.fail_payout(self.payment_env.test, FailPayout(payout_id=refund_id))
        await self.finish(chain)

    async def mine_failed(self, refund_id: str) -> None:
        """Have a refund that had failed be mined all the same, as after a reorganization deeper than is waited for."""
        env = self.payment_env
        handler = PayoutHandler(PaymentRefundHandler(env.ids), env.ids)
        async with env.db.transaction() as conn:
            found = await conn.execute(select(*COLUMNS).where(Payout.payout_id == refund_id))
            refund = payout_row(found.one())
            assert refund.intent_pk is not None
            mined = IntentUpdate(
                intent_pk=refund.intent_pk,
                reference=f"refund:{refund_id}",
                kind=refund.kind,
                mode=refund.mode,
                chain=refund.chain,
                scope=refund.scope,
                merchant_pk=refund.merchant_pk,
                source_pk=1,
                recipient_pk=None,
                to_address=refund.to_address,
                token=refund.token,
                contract=refund.contract,
                decimals=refund.decimals,
                units=refund.units,
                tx_id=refund.tx_id,
                incarnation=2,
            )
            await handler.on_final(conn, [mined], env.clock.now())

    async def pay_out(self, units: Units) -> None:
        """Queue a payout of so much USDX."""
        actor, chain = self.payment_env.test, self.payment_env.registry.chains["memory"]
        token = chain.token("USDX")
        assert token is not None
        to_address = named_address("somebody")
        new = NewPayout.of(
            actor, IntentKind.PAYOUT, self.payment_env.ids.new("po"), Asset(chain, token), to_address, units
        )
        async with self.payment_env.db.transaction() as conn:
            await debit_and_queue(conn, self.context, PlatformSettings(), [new])

    async def spend(self, units: int) -> None:
        """Take units out of the merchant's available USDX, as a payout that is on its way does."""
        token = self.payment_env.registry.chains["memory"].token("USDX")
        assert token is not None
        asset = asset_key("memory", token.contract)
        available, pending = (
            Account(self.payment_env.test.merchant_pk, asset, purpose)
            for purpose in (Purpose.AVAILABLE, Purpose.PENDING)
        )
        self.spent += units
        movement = Movement(available, pending, Units(units))
        async with self.payment_env.db.transaction() as conn:
            await post(
                conn, "sandbox", [Posting(mode="sandbox", kind="test", reference=str(units), movements=[movement])]
            )

    async def check_books(self) -> None:
        """Check all that must hold of the books."""
        async with self.payment_env.db.transaction() as conn:
            found = await broken(conn)
        if self.spent:
            found.pop("pending is what is under way", None)
        assert found == {}
