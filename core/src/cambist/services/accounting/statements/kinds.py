"""What merchants call the ledger's postings, and which way their amounts count.

::

    type         from → to                  what happened
    deposit      (outside) → held           a transfer has its confirmations
    allocation   held → available           a payment ended, and this belonged to its order; or it counts for an account
    release      held → available           surplus, late or mistaken money was accepted or released
    reversal     any → (outside)            a reorg took a deposit back
    payout       available → pending        asked for; back again where it failed
                 pending → (outside)        deep in the chain
    refund, withdrawal, auto_payout         as a payout; a refund may also come from held
    exchange     available → pending        asked for; back again where it failed
                 pending → (outside)        a swap is final; a bridge was filled or comes back, and its fee is taken
                 held → available           what came of it, or came back
    restore      any                        booked when the database was restored from the chains
    adjustment   any                        anything else
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from cambist.domain.intents import EXCHANGING, FACTS

ADJUSTMENT = "adjustment"

PATTERNS: Mapping[str, str] = MappingProxyType(
    {
        "deposit": "deposit",
        "allocation": "allocation",
        "release": "(release|resolution|accept)(_.*)?",
        "reversal": "deposit_reversal|reversal",
        **{str(kind): f"{kind}(_.*)?" for kind, facts in FACTS.items() if facts.spends_merchant_money},
        "exchange": f"({'|'.join(sorted(EXCHANGING))})(_.*)?",
        "restore": "restore(_.*)?",
    }
)
"""Each type with the ledger's kinds that it stands for, as a pattern that Python and PostgreSQL read alike."""

TYPES = (*PATTERNS, ADJUSTMENT)

# How near to being spent money is. What comes nearer counts as plus, what goes further away as minus.
_RANKS = {None: 0, "pending": 1, "held": 2, "receivable": 3, "available": 4}


def type_of(kind: str) -> str:
    return next((name for name, pattern in PATTERNS.items() if re.fullmatch(pattern, kind)), ADJUSTMENT)


def kinds_of(type_name: str) -> tuple[str, bool]:
    """Return a pattern for PostgreSQL, and whether the kinds of the type are those that match it, or the others."""
    if type_name == ADJUSTMENT:
        return f"^({'|'.join(PATTERNS.values())})$", False
    return f"^({PATTERNS[type_name]})$", True


def sign_of(from_balance: str | None, to_balance: str | None) -> int:
    """Return 1 for what comes nearer to being spent, -1 for what goes away; None stands for outside."""
    return 1 if _RANKS[to_balance] > _RANKS[from_balance] else -1
