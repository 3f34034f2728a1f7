"""The example chain: a whole network in one process, for tests and for trying the plugin out.

``python -m cambist_florin.testing`` runs it. When the plugin speaks to a real network, its own node takes this
package's place: one that runs locally, or a faithful imitation of one.
"""

from .ledger import FINALITY_BLOCKS, Ledger, LedgerTransfer
from .node import ExampleNode

__all__ = ["FINALITY_BLOCKS", "ExampleNode", "Ledger", "LedgerTransfer"]
