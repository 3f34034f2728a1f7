"""Reading chains into deposits: poll, store, confirm, judge, credit; one transaction a step, with the cursor."""

from .addresses import AddressCache
from .filter_snapshots import SnapshotError
from .watcher import PollResult, Watcher

__all__ = ["AddressCache", "PollResult", "SnapshotError", "Watcher"]
