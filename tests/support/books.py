"""What must hold of the books at every moment, whoever wrote them and however many at once: asked of the database."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

# Each selects what breaks it, so that nothing found is the good answer.
INVARIANTS = {
    "each mode and asset sums to zero": """
        SELECT mode, asset, sum(balance) FROM ledger_accounts GROUP BY mode, asset HAVING sum(balance) <> 0""",
    "a balance is the sum of its movements": """
        SELECT a.mode, a.asset, a.purpose, a.balance FROM ledger_accounts a WHERE a.balance <>
            coalesce((SELECT sum(units) FROM ledger_movements WHERE credit_account_pk = a.id), 0)
            - coalesce((SELECT sum(units) FROM ledger_movements WHERE debit_account_pk = a.id), 0)""",
    "what can be spent is never below zero": """
        SELECT mode, merchant_pk, asset, purpose, balance FROM ledger_accounts
        WHERE purpose IN ('available', 'pending', 'held') AND (balance < 0 OR NOT guarded)""",
    "each thing is posted once": """
        SELECT kind, reference, count(*) FROM ledger_transactions GROUP BY kind, reference HAVING count(*) > 1""",
    "nothing is posted without movements": """
        SELECT t.kind, t.reference FROM ledger_transactions t
        WHERE NOT EXISTS (SELECT FROM ledger_movements m WHERE m.transaction_pk = t.id)""",
    "there is one account for each purpose": """
        SELECT mode, merchant_pk, asset, purpose FROM ledger_accounts
        GROUP BY mode, merchant_pk, asset, purpose HAVING count(*) > 1""",
    "whoever owes something has nothing to spend": """
        SELECT mode, merchant_pk, asset FROM ledger_accounts WHERE purpose IN ('available', 'receivable')
        GROUP BY mode, merchant_pk, asset
        HAVING max(balance) FILTER (WHERE purpose = 'available') > 0
            AND min(balance) FILTER (WHERE purpose = 'receivable') < 0""",
    "nobody is owed more than they have": """
        SELECT mode, merchant_pk, asset, balance FROM ledger_accounts WHERE purpose = 'receivable' AND balance > 0""",
    "pending is what is under way": """
        WITH books AS (
            SELECT mode, merchant_pk, asset, balance FROM ledger_accounts WHERE purpose = 'pending' AND balance <> 0
        ), facts AS (
            SELECT mode, merchant_pk, asset, sum(units) AS units FROM (
                SELECT mode, merchant_pk, chain || '/' || coalesce(contract, 'native') AS asset, units
                FROM payouts p WHERE status IN ('requested', 'processing', 'broadcast', 'cancelling')
                    AND NOT EXISTS (SELECT FROM exchanges e WHERE e.payout_pk = p.id)
                UNION ALL
                SELECT e.mode, e.merchant_pk, e.source_chain || '/' || coalesce(e.source_contract, 'native'), e.units
                FROM exchanges e JOIN outbound_intents i ON i.id = e.intent_pk
                WHERE e.status <> 'failed' AND NOT e.is_closed
                    AND (i.state IN ('waiting', 'sending') OR i.state = 'done' AND e.kind = 'bridge')
            ) AS under_way GROUP BY 1, 2, 3
        )
        SELECT * FROM books FULL JOIN facts USING (mode, merchant_pk, asset) WHERE balance IS DISTINCT FROM units""",
    "held is what deposits say is held of them": """
        WITH books AS (
            SELECT mode, merchant_pk, asset, balance FROM ledger_accounts WHERE purpose = 'held' AND balance <> 0
        ), facts AS (
            SELECT mode, merchant_pk, chain || '/' || coalesce(contract, 'native') AS asset,
                sum(units - available_units - returned_units) AS units
            FROM deposits WHERE status = 'confirmed' AND merchant_pk IS NOT NULL GROUP BY 1, 2, 3
        )
        SELECT * FROM books FULL JOIN facts USING (mode, merchant_pk, asset)
        WHERE coalesce(balance, 0) <> coalesce(units, 0)""",
    "whose money it is and where it lies agree, with what came in and went out": """
        WITH books AS (
            SELECT mode, merchant_pk, asset,
                sum(balance) FILTER (WHERE NOT debit_normal) AS owned, -sum(balance) FILTER (WHERE debit_normal) AS lies
            FROM ledger_accounts WHERE merchant_pk IS NOT NULL
                AND purpose IN ('available', 'pending', 'held', 'receivable', 'custody_deposits', 'custody_wallet',
                    'between_chains')
            GROUP BY 1, 2, 3
        ), facts AS (
            SELECT mode, merchant_pk, asset, sum(units) AS units FROM (
                SELECT mode, merchant_pk, chain || '/' || coalesce(contract, 'native') AS asset, units
                FROM deposits WHERE status = 'confirmed' AND merchant_pk IS NOT NULL
                UNION ALL
                SELECT mode, merchant_pk, chain || '/' || coalesce(contract, 'native'), -units
                FROM payouts p WHERE status = 'completed'
                    AND NOT EXISTS (SELECT FROM exchanges e WHERE e.payout_pk = p.id)
                UNION ALL
                SELECT e.mode, e.merchant_pk, e.source_chain || '/' || coalesce(e.source_contract, 'native'),
                    - CASE WHEN e.kind = 'swap' THEN CASE i.state WHEN 'done' THEN e.units ELSE 0 END
                        WHEN NOT e.is_closed THEN 0
                        WHEN e.status = 'failed' THEN e.units - e.fee_units ELSE e.units END
                FROM exchanges e JOIN outbound_intents i ON i.id = e.intent_pk
                UNION ALL
                SELECT mode, merchant_pk, dest_chain || '/' || coalesce(dest_contract, 'native'), unseen_units
                FROM exchanges
            ) AS moved GROUP BY 1, 2, 3
        )
        SELECT * FROM books FULL JOIN facts USING (mode, merchant_pk, asset)
        WHERE coalesce(owned, 0) <> coalesce(lies, 0) OR coalesce(lies, 0) <> coalesce(units, 0)""",
    "a payment's refunds are counted on it": """
        SELECT y.payment_id, y.refunded_units FROM payments y WHERE y.refunded_units <> coalesce((
            SELECT sum(units) FROM payouts p
            WHERE p.payment_pk = y.id AND p.kind = 'refund' AND p.status NOT IN ('failed', 'cancelled')), 0)""",
    "credits are what was given less what was used": """
        WITH books AS (
            SELECT mode, merchant_pk, balance FROM ledger_accounts WHERE purpose = 'cpt' AND merchant_pk IS NOT NULL
        ), facts AS (
            SELECT mode, merchant_pk, sum(units) AS units FROM (
                SELECT mode, merchant_pk, CASE operation WHEN 'return' THEN weight ELSE -weight END AS units
                FROM usage_records WHERE posted
                UNION ALL
                SELECT a.mode, a.merchant_pk, CASE a.id WHEN m.credit_account_pk THEN m.units ELSE -m.units END
                FROM ledger_transactions t JOIN ledger_movements m ON m.transaction_pk = t.id
                    JOIN ledger_accounts a ON a.id IN (m.credit_account_pk, m.debit_account_pk) AND a.purpose = 'cpt'
                WHERE t.kind IN ('cpt_grant', 'cpt_allowance')
            ) AS given GROUP BY 1, 2
        )
        SELECT * FROM books FULL JOIN facts USING (mode, merchant_pk)
        WHERE coalesce(balance, 0) <> coalesce(units, 0)""",
}


_BROKEN = " UNION ALL ".join(
    f"SELECT $${name}$$ AS name, to_jsonb(found)::text AS row FROM ({statement}) AS found"  # noqa: S608  ours
    for name, statement in INVARIANTS.items()
)


async def broken(conn: AsyncConnection) -> dict[str, list[dict[str, Any]]]:
    """Return the invariants that do not hold, with what breaks them."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name, row in await conn.exec_driver_sql(_BROKEN):
        found.setdefault(name, []).append(msgspec.json.decode(row))
    return found
