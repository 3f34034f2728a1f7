"""The kits for providers of swaps and bridges, on the tiny ones: each test passes there, and catches a broken one."""

from __future__ import annotations

import sys

import pytest

from cambist.plugin import ExchangeError
from cambist.testing.conformance import BridgeConformance, SwapConformance
from tests.core.broken_exchanges import BROKEN
from tests.support.fair import FairBridgeHarness, FairSwapHarness

GUARD = "test_no_test_of_the_kit_is_overridden_quietly"
KITS = {
    name: kit
    for kit in (SwapConformance, BridgeConformance)
    for name in dir(kit)
    if name.startswith("test_") and name != GUARD
}


@pytest.fixture(autouse=True)
def _recursion_limit():
    """As in a process of its own: what tests of plugins import may have raised it in this one."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)
    yield
    sys.setrecursionlimit(before)


class TestFairSwaps(SwapConformance):
    @pytest.fixture
    async def harness(self):
        return FairSwapHarness()


class TestFairBridge(BridgeConformance):
    @pytest.fixture
    async def harness(self):
        return FairBridgeHarness()


def test_for_each_test_of_the_kits_there_is_a_broken_provider():
    assert sorted(BROKEN) == sorted(KITS)


@pytest.mark.parametrize("name", sorted(KITS))
async def test_a_broken_provider_is_caught(name):
    harness = BROKEN[name]()
    kit = BridgeConformance if isinstance(harness, FairBridgeHarness) else SwapConformance
    with pytest.raises((AssertionError, pytest.fail.Exception, ExchangeError, UnicodeDecodeError)):
        await getattr(kit(), name)(harness)
