"""Compares what the chains say with what the books say, and prints every difference."""

from .balances import Impossible
from .check import reconcile_chain
from .report import AddressLine, ChainReport, GroupLine, as_text

__all__ = ["AddressLine", "ChainReport", "GroupLine", "Impossible", "as_text", "reconcile_chain"]
