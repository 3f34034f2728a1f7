"""Locks taken before handlers are called: all that the updates of several kinds touch, in one go and in one order.

Whoever asks for a payout locks the merchant's accounts together, and polls of the chain lock its cursor before rows
and accounts. Updates come kind by kind, each with rows and accounts of its own; told without this, they would wait for
those two in a circle.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.intents import SPENDING as SPENDING_KINDS
from cambist.services.accounting.ledger import PLATFORM, SPENDING, Account, lock_balances
from cambist.services.chain_scope import ChainScope
from cambist.services.receiving.deposits.locks import lock_cursor

from .handler import IntentUpdate


async def lock_chain(conn: AsyncConnection, chain_scope: ChainScope) -> None:
    """Keep polls of the chain, and other engines, from storing anything until the transaction ends."""
    await lock_cursor(conn, *chain_scope.key)


async def lock_spending(conn: AsyncConnection, chain_scope: ChainScope, updates: Sequence[IntentUpdate]) -> None:
    """Lock what merchants spend from, of all that the updates are about. The chain is held."""
    paid = [one for one in updates if one.kind in SPENDING_KINDS]
    accounts = [Account(one.merchant_pk or PLATFORM, one.asset, purpose) for one in paid for purpose in SPENDING]
    await lock_balances(conn, chain_scope.mode, accounts)
