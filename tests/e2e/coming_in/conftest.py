"""Stories of deposits, of which nothing is paid out: they share a gateway on each kind of chain.

It reaches its chains by endpoints that can be told to fail, and are honest but where a story is about that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.gateway import ADMIN_KEY, Merchant
from tests.support.networks import POLL_BESIDE_MS, Endpoint, Network
from tests.support.opened import Opened
from tests.support.opened import opened_by_folder as opened
from tests.support.valkey import story_redis_url
from tests.support.valkey import valkey_by_folder as valkey

__all__ = ["opened", "story_redis_url", "valkey"]


@pytest.fixture(scope="module")
async def endpoint(opened: Opened, network: Network) -> Endpoint:
    return await opened.once(("endpoint", network), network.endpoint)


@pytest.fixture(scope="module")
async def first_of_two(opened: Opened, other: Network) -> Endpoint:
    return await opened.once(("endpoint", other), other.endpoint)


@pytest.fixture(scope="module")
def tables(
    network: Network, other: Network, endpoint: Endpoint, first_of_two: Endpoint
) -> Mapping[str, Mapping[str, Any]]:
    """Reach the one chain by a faulty endpoint alone, and the other by two, of which one can hang."""
    beside = other.settings(first_of_two.url, other.url, request_timeout_ms=1000, poll_interval_ms=POLL_BESIDE_MS)
    return {**network.settings(endpoint.url, request_timeout_ms=1000), **beside}


@pytest.fixture(scope="module")
async def merchant(merchant: Merchant) -> Merchant:
    """Have the operator collect nothing: there is no gas, and each deposit would be tried again and again."""
    rule = {"collection": {"minValueUsd": "10000000"}}
    await merchant.put("/api/admin/settings", rule, headers={"X-Admin-Key": ADMIN_KEY})
    return merchant
