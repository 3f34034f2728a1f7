"""A new database from the seed, a recovery manifest and the chains.

``manifest`` writes down what only the database knows; ``rebuild`` makes merchants, keys and addresses of it again;
``scan`` reads the chains anew; ``balances`` books what had happened to the money; ``service`` does one after the other.
"""

from .manifest import Manifest, RestoreError, by_hand, compose, read_manifest, write_manifest
from .service import Restorer, Summary

__all__ = [
    "Manifest",
    "RestoreError",
    "Restorer",
    "Summary",
    "by_hand",
    "compose",
    "read_manifest",
    "write_manifest",
]
