"""The chain in memory passes the kit that every chain passes."""

from __future__ import annotations

import pytest

from cambist.testing.conformance import ChainConformance
from cambist.testing.memory import MemoryHarness


class TestMemoryChain(ChainConformance):
    @pytest.fixture
    async def harness(self) -> MemoryHarness:
        return MemoryHarness()
