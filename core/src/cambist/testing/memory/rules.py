"""What kind of network a chain in memory is, where it is not one on which senders number their transactions."""

from __future__ import annotations

from msgspec import Struct

DAY_S = 86_400
LIFETIME_MAX_S = DAY_S
"""A node takes nothing that expires later than this."""

RESERVE = 1
"""What an address must have been sent of the native coin, where addresses are activated."""


class MemoryRules(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A network whose transactions have no sequence, and expire ``lifetime_s`` after the block they were made on.

    ``activation_price`` is what whoever first sends native coin to an address pays for that; zero where addresses need
    no activation. Tokens activate nothing, and until it is activated an address can send nothing. ``stake_per_work`` is
    how much native coin an address must have staked for each unit of work that it need not pay for within
    ``recovery_s``; None where nothing can be staked. What is unstaked can be withdrawn ``unstaking_s`` later.
    """

    lifetime_s: int = 60
    activation_price: int = 0
    stake_per_work: int | None = None
    recovery_s: int = DAY_S
    unstaking_s: int = 14 * DAY_S
