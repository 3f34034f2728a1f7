"""A new database from the seed, a recovery manifest and the chains.

``manifest`` writes down what only the database knows, ``accounts`` whose each permanent address is, both into ``files``
that are whole or not there; ``rebuild`` makes merchants, keys and addresses of it again, and ``account_rows`` accounts;
``scan`` reads the chains anew; ``balances`` books what had happened to the money; ``service`` does one after the other.
"""

from .accounts import Line, newest_account, read_accounts, why_kept, write_accounts
from .files import accounts_path, knows_more, move_aside, read_before, write_manifest
from .manifest import Manifest, RestoreError, by_hand, compose, read_manifest
from .rebuild import keep_indexes
from .service import Added, Restorer, Summary

__all__ = [
    "Added",
    "Line",
    "Manifest",
    "RestoreError",
    "Restorer",
    "Summary",
    "accounts_path",
    "by_hand",
    "compose",
    "keep_indexes",
    "knows_more",
    "move_aside",
    "newest_account",
    "read_accounts",
    "read_before",
    "read_manifest",
    "why_kept",
    "write_accounts",
    "write_manifest",
]
