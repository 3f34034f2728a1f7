"""The kit for chains: everything a chain plugin promises, from its addresses to reorgs and to what it sends."""

from __future__ import annotations

import pytest

from cambist.plugin import AddressFamily
from cambist.testing.harness import ChainHarness, FamilySamples

from .blocks import BlockConformance
from .family import AddressFamilyConformance
from .info import ChainInfoConformance
from .payloads import PayloadConformance
from .sending import SendingConformance
from .sequences import SequenceConformance
from .states import StateConformance
from .transfers import TransferConformance


class ChainConformance(
    ChainInfoConformance,
    BlockConformance,
    TransferConformance,
    StateConformance,
    SendingConformance,
    SequenceConformance,
    PayloadConformance,
    AddressFamilyConformance,
):
    """Subclass it, and give the fixture ``harness``, which yields a ChainHarness on a network that can be changed."""

    @pytest.fixture
    def family(self, harness: ChainHarness) -> AddressFamily:
        """Return the harness's."""
        return harness.family

    @pytest.fixture
    def samples(self, harness: ChainHarness) -> FamilySamples:
        """Return the harness's."""
        return harness.samples
