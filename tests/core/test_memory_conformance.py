"""The chains in memory pass the kit that every chain passes."""

from __future__ import annotations

import pytest

from cambist.testing.conformance import ChainConformance
from cambist.testing.memory import MemoryChain, MemoryFees, MemoryHarness, MemoryRules, memory_chain_info
from tests.core.memory_calls import MemoryCallHarness


class TestMemoryChain(ChainConformance):
    @pytest.fixture
    async def harness(self) -> MemoryHarness:
        return MemoryHarness()


class TestMemoryChainThatCountsFromElsewhere(ChainConformance):
    @pytest.fixture
    async def harness(self) -> MemoryHarness:
        harness = MemoryHarness()
        harness.memory.accounts.first_sequence = 96_000_017
        return harness


class TestMemoryChainWithLegacyFees(ChainConformance):
    @pytest.fixture
    async def harness(self) -> MemoryHarness:
        return MemoryHarness(MemoryChain(memory_chain_info(), finality_lag_blocks=5, fees=MemoryFees(legacy=True)))


class TestMemoryChainThatExpires(ChainConformance):
    @pytest.fixture
    async def harness(self) -> MemoryHarness:
        return MemoryHarness(MemoryChain(memory_chain_info(), rules=MemoryRules()))


class TestMemoryLendingChain(ChainConformance):
    @pytest.fixture
    async def harness(self) -> MemoryHarness:
        return MemoryHarness.lending()


class TestMemoryContractChain(ChainConformance):
    @pytest.fixture
    async def harness(self) -> MemoryHarness:
        return MemoryCallHarness()
