"""What only a person may do with a payment."""

from __future__ import annotations

from litestar import Controller, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from cambist.services.actor import Actor
from cambist.services.receiving.payments.recalculate import Recalculate, recalculate
from cambist_web.context import Web

from .schemas import PaymentChanged


class PaymentsInPerson(Controller):
    """Decisions of the merchant in person."""

    tags = ("Payments",)

    @post("/{payment_id:str}/recalculate", status_code=200, summary="Refresh an expired payment's rate")
    async def recalculate(
        self,
        payment_id: FromPath[str],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        data: JSONBody[Recalculate | None] = None,
    ) -> PaymentChanged:
        """Open an expired fiat payment again: what remains of it is priced at the rate of now."""
        gateway = web.gateway
        async with web.db.transaction() as conn:
            payment = await recalculate(
                conn,
                actor,
                payment_id,
                data or Recalculate(),
                chains=gateway.registry.chains,
                rates=gateway.rates,
                clock=gateway.clock,
                ids=gateway.ids,
            )
        await gateway.hints.publish("webhooks", f"payment:{payment.public_id}")
        return PaymentChanged(payment=payment)
