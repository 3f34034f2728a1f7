"""Random actions in the sandbox projects of a money model: payments, refunds, payouts and reorgs."""

from __future__ import annotations

from typing import Any

import msgspec

from cambist.services.actor import Actor
from cambist.services.errors import NotFoundError
from cambist.services.payouts import create as payouts
from cambist.services.payouts.requests import PayoutRequest
from cambist.services.reversals.refunds import create as refunds
from cambist.services.reversals.refunds.create import RefundRequest
from cambist.services.reversals.resolutions import decide
from cambist.services.sandbox.requests import AdvanceTime, Deposit, FailPayout, Mine, Reorg
from cambist.testing.memory.family import named_address
from tests.support.money_model import MoneyModel

SOMEBODY = named_address("somebody")
DECISIONS = ("accept", "release", "refund")


class SandboxActions:
    """What merchants do in their sandboxes. Things are named by number, counted over what there is by then."""

    def __init__(self, money_model: MoneyModel) -> None:
        self.money_model, self.payment_env, self.sandbox = (
            money_model,
            money_model.payment_env,
            money_model.payment_env.sandbox,
        )
        self.payments: list[tuple[Actor, str]] = []

    async def pay(self, merchant: int, symbol: str, amount: int, deposits: list[int]) -> None:
        """Make a payment, and send deposits to it, each with some confirmations."""
        actor = self.money_model.test[merchant]
        made = await self.payment_env.create(actor, token=symbol, amount=str(amount))
        self.payments.append((actor, made.payment.payment_id))
        for confirmations, units in enumerate(deposits):
            await self.payment_env.deposit(
                made.payment.payment_id, actor, amount=str(units), confirmations=confirmations
            )

    async def deposit(self, pick: int, symbol: str, amount: int, confirmations: int) -> None:
        actor, payment_id = self._pick(self.payments, pick)
        request = {"paymentId": payment_id, "token": symbol, "amount": str(amount), "confirmations": confirmations}
        await self.sandbox.deposit(actor, msgspec.convert(request, Deposit))

    async def mine(self, merchant: int, blocks: int) -> None:
        await self.sandbox.mine(self.money_model.test[merchant], Mine(chain="memory", blocks=blocks))

    async def reorg(self, merchant: int, depth: int, *, drop: bool) -> None:
        request = Reorg(chain="memory", depth=depth, transactions="drop" if drop else "return")
        await self.sandbox.reorg(self.money_model.test[merchant], request)

    async def wait(self, merchant: int, seconds: int) -> None:
        await self.sandbox.advance_time(self.money_model.test[merchant], AdvanceTime(seconds=seconds))

    async def pay_out(self, merchant: int, symbol: str, amount: int) -> None:
        actor = self.money_model.test[merchant]
        body = {"chain": "memory", "token": symbol, "toAddress": SOMEBODY, "amount": str(amount)}
        async with self.money_model.db.transaction() as conn:
            await payouts.create_payout(
                conn, self.money_model.context, actor, msgspec.convert(body, PayoutRequest), None
            )
        await self._send(actor)

    async def refund(self, pick: int, amount: int | None) -> None:
        actor, payment_id = self._pick(self.payments, pick)
        async with self.money_model.db.transaction() as conn:
            await refunds.create_refund(conn, self.money_model.context, actor, payment_id, self._refund(amount), None)
        await self._send(actor)

    async def resolve(self, merchant: int, pick: int, decision: str, amount: int | None) -> None:
        actor, context = self.money_model.test[merchant], self.money_model.context
        deposit_id = self._pick(await self._named(actor, "SELECT deposit_id FROM deposits WHERE scope = $1"), pick)
        async with self.money_model.db.transaction() as conn:
            if decision == "refund":
                await decide.refund(conn, context, actor, deposit_id, self._refund(amount), None)
            else:
                await getattr(decide, decision)(conn, context, actor, deposit_id)
        await self._send(actor)

    async def fail(self, merchant: int, pick: int) -> None:
        """Have something that was sent revert when it is mined."""
        actor = self.money_model.test[merchant]
        payout_id = self._pick(await self._named(actor, "SELECT payout_id FROM payouts WHERE scope = $1"), pick)
        await self.sandbox.fail_payout(actor, FailPayout(payout_id=payout_id))

    async def _send(self, actor: Actor) -> None:
        await self.sandbox.send_queued(actor.project_pk, ["memory"])

    def _refund(self, amount: int | None) -> RefundRequest:
        body = {"toAddress": SOMEBODY} | ({} if amount is None else {"amount": str(amount)})
        return msgspec.convert(body, RefundRequest)

    async def _named(self, actor: Actor, statement: str) -> list[str]:
        async with self.money_model.db.autocommit() as conn:
            found = await conn.exec_driver_sql(f"{statement} ORDER BY id", (actor.project_pk,))
            return list(found.scalars())

    def _pick(self, things: list[Any], pick: int) -> Any:
        if not things:
            raise NotFoundError("NOTHING_THERE", "There is none yet.")
        return things[pick % len(things)]
