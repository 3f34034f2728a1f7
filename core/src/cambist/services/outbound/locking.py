"""Locks before news: what telling of several intents touches one after the other is locked in one go, first of all.

Whoever asks for a payout locks the merchant's accounts together, and looks at the chain lock its cursor before rows
and accounts. News comes kind by kind, each with rows and accounts of its own; told without this, they would wait for
those two in a circle.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.deposits.deciding import hold_chain
from cambist.services.ledger import PLATFORM, Account, lock_balances
from cambist.services.payouts.queue import OPERATIONS, SPENDING

from .outcomes import Sent
from .rows import Site


async def hold_still(conn: AsyncConnection, site: Site) -> None:
    """Keep looks at the chain, and other engines' news, from being stored until the transaction ends."""
    await hold_chain(conn, *site.key)


async def lock_spending(conn: AsyncConnection, site: Site, sent: Sequence[Sent]) -> None:
    """Lock what merchants spend from, of all that news is about. The chain is held."""
    paid = [one for one in sent if one.kind in OPERATIONS]
    accounts = [Account(one.merchant_row or PLATFORM, one.asset, purpose) for one in paid for purpose in SPENDING]
    await lock_balances(conn, site.mode, accounts)
