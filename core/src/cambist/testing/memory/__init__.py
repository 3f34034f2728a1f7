"""A chain in memory: a real plugin with blocks, transfers, reorgs and faults, but no node and no network.

::

    chain = MemoryChain(memory_chain_info())
    tx_id = chain.transfer(chain.info.native, "mem1...", 5)
    chain.mine()
    chain.reorg(1)  # the transfer is gone
    chain.faults.unavailable = True  # and now nobody can be asked

It sends, too: ``plan``, ``prepare`` and ``broadcast`` are those of a strict node, signatures are real, fees are paid,
and ``chain.faults`` and ``chain.fees`` make it lose, forget, refuse and ask for more. Transactions have sequences, as
on Ethereum; those of a ``MemoryKeyedChain`` also name the public key of who signs them. With rules they expire instead,
as on TRON, addresses may need activation, and stakes can be lent::

    chain = MemoryLendingChain(memory_chain_info(), rules=MemoryRules(activation_price=10**15, stake_per_work=10**12))
    chain.endow(sponsor, 10**18)
    chain.faults.forgotten_txs = 1  # the next one is accepted, and never heard of again
"""

from .blocks import Output
from .chain import MemoryChain, MemoryLendingChain
from .family import MemoryFamily
from .faults import MemoryFaults
from .fees import MemoryFees
from .harness import MEMORY_SAMPLES, MemoryHarness
from .keyed import MemoryKeyedChain
from .plugin import MemoryChainConfig, MemoryConfig, MemoryPlugin, memory_chain_info
from .rules import MemoryRules
from .view import MemoryView

__all__ = [
    "MEMORY_SAMPLES",
    "MemoryChain",
    "MemoryChainConfig",
    "MemoryConfig",
    "MemoryFamily",
    "MemoryFaults",
    "MemoryFees",
    "MemoryHarness",
    "MemoryKeyedChain",
    "MemoryLendingChain",
    "MemoryPlugin",
    "MemoryRules",
    "MemoryView",
    "Output",
    "memory_chain_info",
]
