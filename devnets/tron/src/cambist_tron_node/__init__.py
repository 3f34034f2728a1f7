"""A TRON node of one's own, for development and for tests of this plugin and of the gateway. Needs anvil."""

from .faults import Face, Fault, Faults
from .machine import Machine, NoMachine
from .node import TronNode
from .params import Parameters
from .sending import NotCarriedOutError
from .tokens import TronContract, TronToken

__all__ = [
    "Face",
    "Fault",
    "Faults",
    "Machine",
    "NoMachine",
    "NotCarriedOutError",
    "Parameters",
    "TronContract",
    "TronNode",
    "TronToken",
]
