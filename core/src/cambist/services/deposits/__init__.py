"""Reading chains into deposits: look, store, settle, judge, credit; one transaction a step, with the cursor."""

from .addresses import AddressWatch
from .watcher import Look, Watcher

__all__ = ["AddressWatch", "Look", "Watcher"]
