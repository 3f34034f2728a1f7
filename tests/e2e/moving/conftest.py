"""Stories of money on its whole way, on one gateway for each kind of chain, whose Redis can be killed.

Each watches one chain: that two are kept apart is seen in going_out, exchanging and core's test_sending_two_chains.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.opened import opened_by_folder as opened
from tests.support.valkey import story_redis_url
from tests.support.valkey import valkey_by_folder as valkey

__all__ = ["opened", "story_redis_url", "valkey"]


@pytest.fixture(scope="module")
def has_another() -> bool:
    return False


@pytest.fixture(scope="module")
def more_settings() -> Sequence[str]:
    """Collect what is worth it without being asked twice."""
    return ["[outbound]", "collect_interval_ms = 500"]
