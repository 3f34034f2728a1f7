"""The chains that stories are told on, each with a real node, or the nearest thing to one."""

from .anvil import AnvilNetwork
from .base import CONFIRMATIONS, POLL_BESIDE_MS, Amount, Coin, Customer, Endpoint, Network, Onlooker
from .tron import TronNetwork

NETWORKS = {"anvil": AnvilNetwork, "tron": TronNetwork}
"""By the name that the tests' ids show."""

__all__ = [
    "CONFIRMATIONS", "NETWORKS", "POLL_BESIDE_MS", "Amount", "AnvilNetwork", "Coin", "Customer",
    "Endpoint", "Network", "Onlooker", "TronNetwork",
]  # fmt: skip
