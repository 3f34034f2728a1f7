"""Reading a chain's past for trackers: what is wanted and read as rows, and the lift that goes up the chain."""

from .reader import HistoryReader, Progress, Step

__all__ = ["HistoryReader", "Progress", "Step"]
