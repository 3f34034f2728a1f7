"""Which handler gets the updates of which kind of intent; ``cambist.domain.intents`` names it for each."""

from __future__ import annotations

from typing import assert_never

from cambist.domain.intents import FACTS, HandlerName
from cambist.ports import Ids

from .payouts.handler import PayoutHandler
from .reversals.refunds.handler import PaymentRefundHandler
from .sending.collections.handler import CollectionHandler
from .sending.gas.posting import TopUpHandler
from .sending.gas.stakes import StakeHandler
from .sending.handler import IntentHandler, IntentHandlers
from .sending.sweeps.handler import SweepHandler


def intent_handlers(ids: Ids) -> IntentHandlers:
    """Return the handlers of all kinds."""
    return IntentHandlers({kind: _handler(facts.handler, ids) for kind, facts in FACTS.items()})


def _handler(name: HandlerName, ids: Ids) -> IntentHandler:
    match name:
        case HandlerName.PAYOUTS:
            return PayoutHandler(PaymentRefundHandler(ids), ids)
        case HandlerName.COLLECTIONS:
            return CollectionHandler()
        case HandlerName.SWEEPS:
            return SweepHandler(CollectionHandler())
        case HandlerName.TOP_UPS:
            return TopUpHandler()
        case HandlerName.STAKES:
            return StakeHandler()
        case HandlerName.NONE:
            return IntentHandler()
        case _:
            assert_never(name)
