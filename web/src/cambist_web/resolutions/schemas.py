"""Answers about money somebody has to decide about."""

from __future__ import annotations

from collections.abc import Sequence

from cambist.services.reversals.resolutions.read import ResolutionView
from cambist_web.schemas import Answer, PageAnswer


class ResolutionList(PageAnswer, frozen=True, kw_only=True):
    """One page of deposits that wait for a decision, newest first. `total` counts all pages."""

    resolutions: Sequence[ResolutionView]


class ResolutionAnswer(Answer, frozen=True, kw_only=True):
    """A deposit, after the decision."""

    resolution: ResolutionView
