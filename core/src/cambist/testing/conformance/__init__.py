"""The conformance kits: test classes that every plugin's tests subclass, ours included.

A chain's whole test module, runnable as it stands::

    import pytest
    from cambist.testing.conformance import ChainConformance
    from cambist.testing.memory import MemoryHarness


    class TestMemoryChain(ChainConformance):
        @pytest.fixture
        async def harness(self):
            yield MemoryHarness()

``ChainConformance`` includes ``AddressFamilyConformance``, which can also be used alone where there is no node.
Beside ``ChainConformance``, ``SweepConformance`` is for chains that sweep, and ``SetupConformance`` for plugins whose
chains can be changed while the gateway runs. ``PriceSourceConformance`` is for price sources, ``SwapConformance`` and
``BridgeConformance`` are for providers of exchanges.
"""

from .bridges import BridgeConformance, BridgeHarness
from .chain import ChainConformance
from .exchanges import ExchangeHarness, SwapConformance
from .family import AddressFamilyConformance
from .prices import PriceHarness, PriceSourceConformance
from .setups import Configured, SetupConformance
from .sweeping import SweepConformance

__all__ = [
    "AddressFamilyConformance",
    "BridgeConformance",
    "BridgeHarness",
    "ChainConformance",
    "Configured",
    "ExchangeHarness",
    "PriceHarness",
    "PriceSourceConformance",
    "SetupConformance",
    "SwapConformance",
    "SweepConformance",
]
