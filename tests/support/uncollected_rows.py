"""What lies on addresses and is not collected, as rows that the engine would have written."""

from __future__ import annotations

from cambist.db.engine import Database

_UNCOLLECTED = """
WITH m AS (SELECT id FROM merchants WHERE merchant_id = $1), a AS (
    INSERT INTO addresses (mode, family, address, purpose, merchant_pk, account_index, change, address_index)
    SELECT 'live', 'memory', 'mem1lies' || $3::text, 'payment', m.id, 7, 0, $4 FROM m RETURNING id, merchant_pk
), d AS (
    INSERT INTO deposits (deposit_id, chain, scope, tx_id, position, mode, merchant_pk, address_pk, matches, token,
        contract, decimals, units, height, block_hash, ordinal, mined_at, required_confirmations, status)
    SELECT 'dep_lies' || $3::text, 'memory', 0, 'lies' || $3::text, '0', 'live', a.merchant_pk, a.id, true, 'USDX',
        'mem1usdx', 6, 3500000, 1, 'b', 0, now(), 1, 'confirmed' FROM a
)
INSERT INTO uncollected_funds (uncollected_id, chain, scope, address_pk, merchant_pk, token, contract, decimals, units,
    reason, value_usd, fee_usd, judged_at, created_at)
SELECT 'unc_' || $3::text, 'memory', 0, a.id, a.merchant_pk, 'USDX', 'mem1usdx', 6, 3500000, $2, 3.5, 0.84219, now(),
    now() FROM a
RETURNING uncollected_id
"""

# Where nothing was read, nothing lies.
_READ = """
INSERT INTO chain_cursors (chain, scope, height, hash, head, updated_at)
VALUES ('memory', 0, 1, 'b', 1, now()) ON CONFLICT DO NOTHING
"""


async def insert_uncollected(
    db: Database, merchant_id: str, reason: str = "below_minimum", *, index: int = 901
) -> tuple[str, str]:
    """Insert a confirmed deposit of 3.5 USDX, and that it stays on its address; return the row's id and the address."""
    async with db.transaction() as conn:
        found = await conn.exec_driver_sql(_UNCOLLECTED, (merchant_id, reason, str(index), index))
        await conn.exec_driver_sql(_READ)
        return found.scalar_one(), f"mem1lies{index}"
