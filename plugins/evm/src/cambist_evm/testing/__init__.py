"""A real node and a faulty way to reach it, for tests of this plugin and of the gateway. Needs anvil."""

from .anvil import Anvil, Contract
from .proxy import Fault, FaultyProxy
from .wallet import Wallet

__all__ = [
    "Anvil",
    "Contract",
    "Fault",
    "FaultyProxy",
    "Wallet",
]
