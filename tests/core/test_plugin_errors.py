"""What an error of a plugin says beside its sentence is what programs can use, whatever a server has said."""

from __future__ import annotations

import math

import pytest

from cambist.plugin import ExchangeRefusedError, ProviderUnavailableError, RateLimitedError


@pytest.mark.parametrize("kind", [RateLimitedError, ProviderUnavailableError])
@pytest.mark.parametrize(
    "said, seconds",
    [
        (1.5, 1.5),
        ("30", 30.0),
        ("Mon, 30 Nov 2026 05:00:00 GMT", 0.0),
        (None, 0.0),
        (-1, 0.0),
        (math.nan, 0.0),
        (math.inf, 0.0),
        (10**400, 0.0),
        ([], 0.0),
    ],
    ids=repr,
)
def test_a_wait_is_a_number_of_seconds(kind, said, seconds):
    assert kind("busy", retry_after=said).retry_after == seconds


@pytest.mark.parametrize(
    "said, reason",
    [("no_liquidity", "no_liquidity"), ("INSUFFICIENT", "refused"), (None, "refused"), (["too", "low"], "refused")],
    ids=repr,
)
def test_a_reason_is_one_of_those_that_programs_know(said, reason):
    assert ExchangeRefusedError("no", reason=said).reason == reason
