"""The chains in memory pass the kit that every chain passes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from cambist.plugin import ChainUnavailableError, Step, Token, Unprepared, UnsignedTx
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
from tests.support.reserving import ReservingChain


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


class TestMemoryChainOfAccountsThatKeepCoin(ChainConformance):
    @pytest.fixture
    async def harness(self) -> MemoryHarness:
        info = memory_chain_info(config=MemoryChainConfig(least_units=ReservingChain.reserve))
        return MemoryHarness(ReservingChain(info, finality_lag_blocks=5))


class TestMemoryChainThatExpires(ChainConformance):
    @pytest.fixture
    async def harness(self) -> MemoryHarness:
        return MemoryHarness(MemoryChain(memory_chain_info(), rules=MemoryRules()))


class SpendsWhatIsThere(MemoryChain):
    """As where transactions spend outputs: it prepares nothing for whom it knows no coin of."""

    async def prepare(self, steps: Sequence[tuple[Step, int | None]]) -> Sequence[UnsignedTx | Unprepared]:
        held = await self.balances([(step.sender, self.info.native) for step, _ in steps])
        if any(step.native_needed > units for (step, _), units in zip(steps, held, strict=True)):
            raise ChainUnavailableError("nothing is free to be spent")
        return await super().prepare(steps)


class OutputsHarness(MemoryHarness):
    def units_max(self, token: Token) -> int:
        return 10**9 if token.is_native else super().units_max(token)


class TestMemoryChainThatSpendsOutputs(ChainConformance):
    @pytest.fixture
    async def harness(self) -> MemoryHarness:
        harness = OutputsHarness(SpendsWhatIsThere(memory_chain_info(), rules=MemoryRules()))
        harness.abilities = replace(harness.abilities, outputs=True)
        return harness


class TestMemoryLendingChain(ChainConformance):
    @pytest.fixture
    async def harness(self) -> MemoryHarness:
        return MemoryHarness.lending()


class TestMemoryContractChain(ChainConformance):
    @pytest.fixture
    async def harness(self) -> MemoryHarness:
        return MemoryCallHarness()
