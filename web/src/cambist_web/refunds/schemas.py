"""Answers about refunds."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from cambist.services.refunds.read import RefundView
from cambist_web.schemas import Answer


class RefundMade(Answer, frozen=True, kw_only=True):
    """A refund. `idempotent` is there, and true, where it was made before."""

    refund: RefundView
    idempotent: bool | UnsetType = UNSET


class RefundAnswer(Answer, frozen=True, kw_only=True):
    """A refund."""

    refund: RefundView


class RefundList(Answer, frozen=True, kw_only=True):
    """One page of refunds, newest first. `total` counts all pages."""

    refunds: Sequence[RefundView]
    page: int
    limit: int
    total: int
