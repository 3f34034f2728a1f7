"""What authors of plugins test with: conformance kits, harnesses, and a chain in memory.

Needs the extra ``cambist-core[testing]``. The kits themselves are in ``cambist.testing.conformance``, apart,
because they need pytest.
"""

from .harness import Abilities, ChainHarness, FamilySamples, Sender
from .watch import EveryAddress, watching

__all__ = ["Abilities", "ChainHarness", "EveryAddress", "FamilySamples", "Sender", "watching"]
