"""Quotes: what a payment would ask for, without making one."""

from __future__ import annotations

from datetime import datetime

import msgspec
from litestar import Controller, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from cambist.services.actor import Actor
from cambist.services.pricing.quotes import Ask
from cambist.services.receiving.payments.quote import Asking, quote
from cambist_web.auth import key_routes, needs, project_routes
from cambist_web.context import Web
from cambist_web.schemas import Answer


class QuoteAnswer(Answer, frozen=True, kw_only=True):
    """What a payment made now would ask for. `rate` is null where the price is in tokens."""

    rate: str | None
    expected_amount: str
    expected_amount_raw: str
    decimals: int
    source: str
    valid_until: datetime


class Quotes(Controller):
    tags = ("Quotes",)

    @post("/", status_code=200, summary="Ask what a payment would cost", opt=needs("payments"))
    async def quote(self, data: JSONBody[Ask], actor: NamedDependency[Actor], web: NamedDependency[Web]) -> QuoteAnswer:
        """Return the amount in tokens. It is advice: the rate is locked when the payment is made, and may differ."""
        gateway = web.gateway
        asking = Asking(
            chains=gateway.registry.chains,
            token_rules=gateway.token_rules,
            pauses=await gateway.pauses.get(),
            rates=gateway.rates,
        )
        found = await quote(asking, actor, data, web.clock.now())
        return QuoteAnswer(**msgspec.structs.asdict(found))


controllers = [key_routes("/api/payment/quote", Quotes), project_routes("/payments/quote", Quotes)]
