"""Answers about withdrawals."""

from __future__ import annotations

from collections.abc import Sequence

from cambist.services.payouts.withdrawals import WithdrawalView
from cambist_web.schemas import Answer, MadeAnswer, PageAnswer


class WithdrawalMade(MadeAnswer, frozen=True, kw_only=True):
    """A withdrawal. `idempotent` is there, and true, where it was made before."""

    withdrawal: WithdrawalView


class WithdrawalAnswer(Answer, frozen=True, kw_only=True):
    """A withdrawal."""

    withdrawal: WithdrawalView


class WithdrawalList(PageAnswer, frozen=True, kw_only=True):
    """One page of withdrawals, newest first. `total` counts all pages."""

    withdrawals: Sequence[WithdrawalView]
