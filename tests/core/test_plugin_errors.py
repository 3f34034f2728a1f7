"""What an error of a plugin says beside its sentence is what programs can use, whatever a server has said."""

from __future__ import annotations

import math
from copy import copy

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


@pytest.mark.parametrize("kind", [RateLimitedError, ProviderUnavailableError])
def test_an_error_of_a_plugins_own_below_it_waits_as_well_whatever_it_sets(kind):
    """Also where its author forgot to call what is above: who catches it asks how long to wait."""

    class OwnError(kind):
        def __init__(self, response) -> None:
            self.response = response

    class SetsItError(OwnError):
        def __init__(self, response) -> None:
            super().__init__(response)
            self.retry_after = response

    assert OwnError({}).retry_after == 0.0
    assert [SetsItError(said).retry_after for said in (None, "30", "soon")] == [0.0, 30.0, 0.0]
    assert copy(kind("busy", retry_after=3)).retry_after == 3.0


def test_a_refusal_of_a_plugins_own_below_it_has_a_reason_that_programs_know():
    class OwnError(ExchangeRefusedError):
        def __init__(self, response) -> None:
            self.response = response

    refused = OwnError({})
    assert refused.reason == "refused"
    refused.reason = "INSUFFICIENT"
    assert refused.reason == "refused"
