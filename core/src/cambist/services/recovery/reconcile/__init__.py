"""Compares what the chains say with what the books say, and prints every difference."""

from .books import Impossible
from .check import ChainReport, as_text, compare_chain, reconcile_chain

__all__ = ["ChainReport", "Impossible", "as_text", "compare_chain", "reconcile_chain"]
