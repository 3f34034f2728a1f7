"""A new database from the seed, a recovery manifest and the chains.

``manifest`` writes down what only the database knows, ``accounts`` whose each permanent address is; ``rebuild`` makes
merchants, keys and addresses of it again, and ``account_rows`` accounts; ``scan`` reads the chains anew; ``balances``
books what had happened to the money; ``service`` does one after the other.
"""

from .accounts import Line, accounts_path, newest_account, read_accounts, write_accounts
from .manifest import Manifest, RestoreError, by_hand, compose, read_manifest, write_manifest
from .service import Restorer, Summary

__all__ = [
    "Line",
    "Manifest",
    "RestoreError",
    "Restorer",
    "Summary",
    "accounts_path",
    "by_hand",
    "compose",
    "newest_account",
    "read_accounts",
    "read_manifest",
    "write_accounts",
    "write_manifest",
]
