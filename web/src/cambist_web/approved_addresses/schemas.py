"""Answers about approved addresses."""

from __future__ import annotations

from collections.abc import Sequence

from cambist.services.payouts.approved_addresses import ApprovedAddress
from cambist_web.schemas import Answer


class ApprovedAnswer(Answer, frozen=True, kw_only=True):
    """An approved address."""

    approved_address: ApprovedAddress


class ApprovedList(Answer, frozen=True, kw_only=True):
    """All approved addresses, oldest first."""

    approved_addresses: Sequence[ApprovedAddress]
