"""Stories of money on its whole way, on one gateway for each kind of chain, whose Redis can be killed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.opened import opened_by_folder as opened
from tests.support.valkey import MortalValkey, mortal_valkey

__all__ = ["opened"]


@pytest.fixture(scope="package")
def valkey(tmp_path_factory):
    with mortal_valkey(tmp_path_factory.mktemp("redis")) as valkey:
        yield valkey


@pytest.fixture(scope="module")
def story_redis_url(valkey: MortalValkey) -> str:
    return valkey.url


@pytest.fixture(scope="module")
def more_settings() -> Sequence[str]:
    """Collect what is worth it without being asked twice."""
    return ["[outbound]", "collect_interval_ms = 500"]
