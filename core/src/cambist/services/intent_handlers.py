"""Which handler gets the updates of which kind of intent; ``cambist.domain.intents`` names it for each."""

from __future__ import annotations

from typing import assert_never

from cambist.domain.intents import FACTS, HandlerName
from cambist.ports import Ids

from .exchanges.calls import Readers
from .exchanges.ending import Endings
from .exchanges.handler import ApprovalHandler, ExchangeHandler
from .payouts.handler import PayoutHandler
from .payouts.swapped import SwappedPayouts
from .reversals.refunds.handler import PaymentRefundHandler
from .sending.collections.handler import CollectionHandler
from .sending.gas.posting import TopUpHandler
from .sending.gas.stakes import StakeHandler
from .sending.handler import IntentHandler, IntentHandlers
from .sending.sweeps.handler import SweepHandler

NOBODY_READS = Readers(readers=(), infos={})


def intent_handlers(ids: Ids, readers: Readers = NOBODY_READS) -> IntentHandlers:
    """Return the handlers of all kinds. ``readers`` tell a forgotten call of an exchange by what it does."""
    return IntentHandlers({kind: _handler(facts.handler, ids, readers) for kind, facts in FACTS.items()})


def endings(ids: Ids) -> Endings:
    """Return how exchanges end, those that payouts wait for included."""
    return Endings(ids, SwappedPayouts(ids))


def _handler(name: HandlerName, ids: Ids, readers: Readers) -> IntentHandler:
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
        case HandlerName.APPROVALS:
            return ApprovalHandler()
        case HandlerName.EXCHANGES:
            return ExchangeHandler(endings(ids), readers)
        case HandlerName.NONE:
            return IntentHandler()
        case _:
            assert_never(name)
