"""Across of one's own, for development and for tests of its plugin and of the gateway. Needs anvil."""

from .artifacts import ContractsMissingError
from .deposits import Deposit, FillStatus, Relay
from .faults import Fault, Faults
from .network import AcrossNetwork
from .refunds import NotExpiredError, Refunds
from .relayer import Behaviour, Relayer
from .side import Side, Token

__all__ = [
    "AcrossNetwork",
    "Behaviour",
    "ContractsMissingError",
    "Deposit",
    "Fault",
    "Faults",
    "FillStatus",
    "NotExpiredError",
    "Refunds",
    "Relay",
    "Relayer",
    "Side",
    "Token",
]
