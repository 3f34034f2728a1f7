"""Answers about simulated chains."""

from __future__ import annotations

from collections.abc import Sequence

from cambist.services.payouts.views import PayoutView
from cambist.services.receiving.payments.views import PaymentView
from cambist.services.sandbox.service import ChainState
from cambist_web.schemas import Answer


class ChainAnswer(Answer, frozen=True, kw_only=True):
    """Where the chain stands now."""

    chain: str
    height: int
    block_hash: str


class DepositAnswer(ChainAnswer, frozen=True, kw_only=True):
    """The transfer that was made, and what became of the payment."""

    tx_hash: str
    payment: PaymentView


class ChainsAnswer(Answer, frozen=True, kw_only=True):
    """Where the chains stand now."""

    chains: Sequence[ChainState]


class FailingPayout(Answer, frozen=True, kw_only=True):
    """A payout that will fail, as it is until its block is mined."""

    payout: PayoutView
