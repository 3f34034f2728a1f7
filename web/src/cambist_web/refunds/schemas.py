"""Answers about refunds."""

from __future__ import annotations

from collections.abc import Sequence

from cambist.services.reversals.refunds.read import RefundView
from cambist_web.schemas import Answer, MadeAnswer, PageAnswer


class RefundMade(MadeAnswer, frozen=True, kw_only=True):
    """A refund. `idempotent` is there, and true, where it was made before."""

    refund: RefundView


class RefundAnswer(Answer, frozen=True, kw_only=True):
    """A refund."""

    refund: RefundView


class RefundList(PageAnswer, frozen=True, kw_only=True):
    """One page of refunds, newest first. `total` counts all pages."""

    refunds: Sequence[RefundView]
