"""Every kind of intent, and what it does when something happens to it."""

from __future__ import annotations

from collections.abc import Mapping

from cambist.services.payouts.outcomes import PayoutOutcomes
from cambist.services.refunds.outcomes import RefundOutcomes
from cambist.services.stakes import KINDS as STAKE_KINDS
from cambist.services.stakes import StakeOutcomes

from .collected import CollectionOutcomes
from .lending import LOAN, LOAN_RETURN
from .mending import REPAIR
from .outcomes import Outcomes, QuietOutcomes
from .posting import TopUpOutcomes
from .swept import SweepOutcomes


def outcomes() -> Mapping[str, Outcomes]:
    """Return them by kind."""
    payouts = PayoutOutcomes(RefundOutcomes())
    collections = CollectionOutcomes()
    return {
        "payout": payouts,
        "refund": payouts,
        "withdrawal": payouts,
        "auto_payout": payouts,
        "collection": collections,
        REPAIR: QuietOutcomes(),
        "sweep": SweepOutcomes(collections),
        "top_up": TopUpOutcomes(),
        LOAN: QuietOutcomes(),
        LOAN_RETURN: QuietOutcomes(),
        **dict.fromkeys(STAKE_KINDS, StakeOutcomes()),
    }
