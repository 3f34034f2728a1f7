"""Takes the signer's store back to a clock that was far ahead once, without forgetting anything that was signed.

Nothing is signed earlier or more freely for it: what was counted ahead counts for an hour from now on, and an address
that was learned ahead is fresh again.
"""

from __future__ import annotations

import sqlite3
from collections import Counter

from .policy import MINUTE_S


def take_back(connection: sqlite3.Connection, now: int) -> None:
    """Have no time in the store be later than ``now``, in seconds since 1970. Within a transaction."""
    run = connection.execute
    minute = now // MINUTE_S
    ahead = Counter[str]()
    # Sums of an hour can be larger than what SQLite adds up.
    for row in run("SELECT counter, amount FROM spent WHERE minute >= ?", (minute,)):
        ahead[row["counter"]] += int(row["amount"])
    run("DELETE FROM spent WHERE minute >= ?", (minute,))
    for counter, amount in ahead.items():
        run("INSERT INTO spent VALUES (?, ?, ?)", (counter, minute, str(amount)))
    run("DELETE FROM known_addresses WHERE since > ?", (now,))
    run("UPDATE known_addresses SET used_at = ? WHERE used_at > ?", (now, now))
    run("UPDATE slots SET at = ? WHERE at > ?", (now, now))
    run("UPDATE approvals SET asked_at = ? WHERE asked_at > ?", (now, now))
    run("UPDATE approvals SET approved_at = ? WHERE approved_at > ?", (now, now))
    run("UPDATE voided SET at = ? WHERE at > ?", (now, now))
    run("UPDATE wrong_codes SET at = ? WHERE at > ?", (now, now))
    run("UPDATE state SET now = ?, known = (SELECT count(*) FROM known_addresses)", (now,))
