"""The branches of an account's keys, ``m/44'/coin'/account'/branch/index``: what an address is for, its path tells.

The signer derives every address that it signs for. So what it must not agree to for a kind of address, whoever asks and
whatever stands in a database, it knows by the branch.
"""

from __future__ import annotations

from typing import Final

ONE_TIME_BRANCH: Final = 0
"""Addresses of payments, one for each. They alone may delegate. The platform's gas station is its account's first."""
WALLET_BRANCH: Final = 1
"""A merchant's main wallet is the first address of it; the others are nobody's."""
PERMANENT_BRANCH: Final = 2
"""Addresses of accounts, which are paid again and again. No contract ever gets power over one."""
BRANCHES: Final = (ONE_TIME_BRANCH, WALLET_BRANCH, PERMANENT_BRANCH)
"""An index is handed out once for all of them (``IndexLeaser``), so a merchant's addresses differ in it, too."""
