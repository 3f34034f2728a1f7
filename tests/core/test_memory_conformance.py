"""The chains in memory pass the kit that every chain passes."""

from __future__ import annotations

import pytest

from cambist.testing.conformance import ChainConformance
from cambist.testing.memory import (
    MemoryChain,
    MemoryChainConfig,
    MemoryFees,
    MemoryHarness,
    MemoryKeyedChain,
    MemoryRules,
    memory_chain_info,
)
from tests.support.memory_calls import MemoryCallHarness


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


class TestMemoryChainThatSignsPublicKeys(ChainConformance):
    @pytest.fixture
    async def harness(self) -> MemoryHarness:
        return MemoryHarness(MemoryKeyedChain(memory_chain_info(), finality_lag_blocks=5))


class TestMemoryChainThatTakesNoDust(ChainConformance):
    @pytest.fixture
    async def harness(self) -> MemoryHarness:
        info = memory_chain_info(config=MemoryChainConfig(least_units=1_000_000))
        return MemoryHarness(MemoryChain(info, finality_lag_blocks=5))


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
