"""Answers about withdrawals."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from cambist.services.withdrawals import WithdrawalView
from cambist_web.schemas import Answer


class WithdrawalMade(Answer, frozen=True, kw_only=True):
    """A withdrawal. `idempotent` is there, and true, where it was made before."""

    withdrawal: WithdrawalView
    idempotent: bool | UnsetType = UNSET


class WithdrawalAnswer(Answer, frozen=True, kw_only=True):
    """A withdrawal."""

    withdrawal: WithdrawalView


class WithdrawalList(Answer, frozen=True, kw_only=True):
    """One page of withdrawals, newest first. `total` counts all pages."""

    withdrawals: Sequence[WithdrawalView]
    page: int
    limit: int
    total: int
