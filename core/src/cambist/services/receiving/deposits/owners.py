"""Whose an address is that money came to, what it was given out for, and what we sent there ourselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.intents import INTERNAL
from cambist.domain.payments import HeldReason
from cambist.plugin import AddressFamily, Token, Transfer
from cambist.services.chain_scope import ChainScope
from cambist.services.trackers import movements

from .sent import Sent

Owner = Row[Any]
"""A row of ``owners_of``: ``takes_chain`` says that the address is an account's, which was given this chain."""
Owners = Mapping[str, Owner]
Minimums = Mapping[tuple[int, str], int]
"""The least deposit that counts for an account, in units, by its merchant and the coin's symbol."""

# What is nobody's payment or account is known on shared chains, and on a simulated one only where its project's
# merchant has it: nothing that one merchant plays at may reach another.
_OWNERS = """
SELECT a.address, a.id AS address_pk, a.merchant_pk, p.id AS payment_pk, p.chain, p.contract,
       p.required_confirmations, a.account_pk,
       EXISTS (SELECT FROM account_chains c WHERE c.account_pk = a.account_pk AND c.chain = $5) AS takes_chain
FROM addresses a LEFT JOIN payments p ON p.id = a.payment_pk LEFT JOIN accounts u ON u.id = a.account_pk
WHERE a.mode = $1 AND a.family = $2 AND a.address = ANY($3::text[])
    AND (
        p.scope = $4
        OR u.id IS NOT NULL AND ($4 = 0 OR u.project_pk = $4)
        OR p.id IS NULL AND u.id IS NULL
            AND ($4 = 0 OR a.merchant_pk = (SELECT j.merchant_pk FROM projects j WHERE j.id = $4))
    )
"""

# Beside them, which ends of transfers are those that trackers watch.
_ENDS = f"""
SELECT known.*, false AS is_tracked FROM ({_OWNERS}) AS known
UNION ALL
SELECT address, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, true FROM tracked_addresses
WHERE mode = $1 AND family = $2 AND address = ANY($6::text[])
"""  # noqa: S608  a constant

_OURS = """
SELECT address, purpose, merchant_pk FROM addresses WHERE mode = $1 AND family = $2 AND address = ANY($3::text[])
"""

_SENT = """
SELECT t.tx_id, i.kind FROM outbound_txs t
    JOIN outbound_slots s ON s.id = t.slot_pk JOIN outbound_intents i ON i.id = s.intent_pk
WHERE t.chain = $1 AND t.scope = $2 AND t.tx_id = ANY($3::text[])
"""

_MINIMUMS = """
SELECT merchant_pk, symbol, min_deposit FROM coin_settings
WHERE mode = $1 AND chain = $2 AND merchant_pk = ANY($3::bigint[]) AND min_deposit IS NOT NULL
"""


class Ends(NamedTuple):
    """What is known of the ends of transfers: the recipients that are ours, and all that trackers watch."""

    owners: Owners
    tracked: Collection[str]


async def ends_of(conn: AsyncConnection, chain_scope: ChainScope, transfers: Sequence[Transfer]) -> Ends:
    """Return what ``owners_of`` does, and who is tracked, in one statement."""
    if not transfers:
        return Ends({}, ())
    recipients = list({transfer.recipient for transfer in transfers})
    scope = (chain_scope.mode, chain_scope.info.family, recipients, chain_scope.scope, chain_scope.info.id)
    found = await conn.exec_driver_sql(_ENDS, (*scope, list(movements.ends(transfers))))
    owners: dict[str, Owner] = {}
    tracked: set[str] = set()
    for row in found:
        if row.is_tracked:
            tracked.add(row.address)
        else:
            owners[row.address] = row
    return Ends(owners, tracked)


async def owners_of(
    conn: AsyncConnection, chain_scope: ChainScope, family: AddressFamily, transfers: Sequence[Transfer]
) -> Owners:
    """Return what is known of the recipients that are ours, and of what they were handed out for.

    This judges what the filter of addresses let through, in one statement over an index for all of it. Who is not in
    the answer is none of ours: somebody whom a tracker watches, or whom the filter mistook.
    """
    if not transfers:
        return {}
    recipients = list({transfer.recipient for transfer in transfers})
    found = await conn.exec_driver_sql(
        _OWNERS, (chain_scope.mode, family.name, recipients, chain_scope.scope, chain_scope.info.id)
    )
    return {row.address: row for row in found}


async def internal_txs(  # noqa: PLR0913, PLR0917  what moved, and what is known of it
    conn: AsyncConnection,
    chain_scope: ChainScope,
    family: AddressFamily,
    transfers: Sequence[Transfer],
    owners: Owners,
    sent: Mapping[str, Sent] | None = None,
) -> Collection[str]:
    """Return the transactions in which we moved money between addresses of ours.

    ``sent`` are those of ours among them, where that is known.

    The books of what we sent decide, also where the chain does not tell who sent it. Where they do not know a
    transaction, because they begin after it, gas is never a deposit, nor is what a merchant's address sends to another
    of its own.
    """
    senders = list({transfer.sender for transfer in transfers if transfer.sender is not None})
    ours: dict[str | None, Row[Any]] = {}
    if senders:
        found = await conn.exec_driver_sql(_OURS, (chain_scope.mode, family.name, senders))
        ours = {row.address: row for row in found}
    suspects = [transfer for transfer in transfers if transfer.sender is None or transfer.sender in ours]
    if not suspects:
        return set()
    if sent is not None:
        kinds = {tx_id: one.kind for tx_id, one in sent.items()}
    else:
        tx_ids = list({transfer.tx_id for transfer in suspects})
        kinds = {row.tx_id: row.kind for row in await conn.exec_driver_sql(_SENT, (*chain_scope.key, tx_ids))}
    internal = set()
    for transfer in suspects:
        kind, sender = kinds.get(transfer.tx_id), ours.get(transfer.sender)
        same_owner = sender is not None and sender.merchant_pk == owners[transfer.recipient].merchant_pk
        is_gas = sender is not None and sender.purpose == "gas"
        if kind in INTERNAL or (kind is None and (is_gas or same_owner)):
            internal.add(transfer.tx_id)
    return internal


async def minimums_of(conn: AsyncConnection, chain_scope: ChainScope, owners: Collection[Owner]) -> Minimums:
    """Return the least deposits that the merchants of these accounts have set for coins of this chain."""
    merchants = sorted({owner.merchant_pk for owner in owners if owner.account_pk is not None})
    if not merchants:
        return {}
    rows = await conn.exec_driver_sql(_MINIMUMS, (chain_scope.mode, chain_scope.info.id, merchants))
    return {(row.merchant_pk, row.symbol): int(row.min_deposit) for row in rows}


def why_not_counted(owner: Owner, token: Token, units: int, minimums: Minimums) -> HeldReason | None:
    """Return why a deposit to an account's address does not count for the account; None where it does."""
    if not owner.takes_chain:
        return HeldReason.WRONG_CHAIN
    if units < minimums.get((owner.merchant_pk, token.symbol), 0):
        return HeldReason.BELOW_MINIMUM
    return None
