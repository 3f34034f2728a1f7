"""The kit for chains: everything a chain plugin promises, from its addresses to reorgs and to what it sends."""

from __future__ import annotations

import pytest

from cambist.plugin import AddressFamily
from cambist.testing.harness import ChainHarness, FamilySamples

from .activation import ActivationConformance
from .blocks import BlockConformance
from .calls import CallConformance
from .expiry import ExpiryConformance
from .family import AddressFamilyConformance
from .finality import FinalityConformance
from .info import ChainInfoConformance
from .lending import LendingConformance
from .payloads import PayloadConformance
from .sending import SendingConformance
from .sequences import SequenceConformance
from .states import StateConformance
from .transfers import TransferConformance
from .trials import TrialConformance


class ChainConformance(
    ChainInfoConformance,
    BlockConformance,
    FinalityConformance,
    TransferConformance,
    StateConformance,
    SendingConformance,
    SequenceConformance,
    ExpiryConformance,
    ActivationConformance,
    LendingConformance,
    TrialConformance,
    CallConformance,
    PayloadConformance,
    AddressFamilyConformance,
):
    """Subclass it, and give the fixture ``harness``, which yields a ChainHarness on a network that can be changed."""

    @pytest.fixture
    def family(self, harness: ChainHarness) -> AddressFamily:
        return harness.family

    @pytest.fixture
    def samples(self, harness: ChainHarness) -> FamilySamples:
        return harness.samples
