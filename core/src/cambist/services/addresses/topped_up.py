"""Whether the stock of account keys is topped up, asked in one statement: topping up takes eight, and a lock."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.secrets import SecretsBox
from cambist.signer import XpubSource

from .account_keys import INDEXES, PLATFORM_ACCOUNT, check_origin, kinds_of

# In one pass over the keys: what topping up would find to do.
_TOPPED_UP = f"""
WITH accounts AS (
    SELECT account_index, count(*) AS keys, count(merchant_pk) AS claimed,
        min(next_index) AS least, max(next_index) AS most,
        count(*) FILTER (WHERE (mode, coin_type) IN (SELECT * FROM unnest($1::text[], $2::bigint[]))) AS kinds
    FROM account_keys GROUP BY account_index
)
SELECT count(*) > 0 AND count(*) = max(account_index) + 1 AND bool_and(kinds = cardinality($1::text[]))
    AND bool_and(claimed IN (0, keys))
    AND bool_and(account_index = {PLATFORM_ACCOUNT} OR claimed > 0 OR most = 0 OR least = {INDEXES})
    AND count(*) FILTER (WHERE account_index > {PLATFORM_ACCOUNT} AND claimed = 0 AND most = 0) >= $3
FROM accounts
"""  # noqa: S608  constants


async def is_topped_up(
    conn: AsyncConnection, signer: XpubSource, box: SecretsBox, *, coin_types: Collection[int], stock: int
) -> bool:
    """Whether topping up would find nothing to do; it is asked every few seconds, and nearly always so.

    Raises KeystoreError and SignerUnavailableError as that does.
    """
    kinds = kinds_of(coin_types)
    asked = ([mode for mode, _ in kinds], [coin_type for _, coin_type in kinds], stock)
    is_so: bool = (await conn.exec_driver_sql(_TOPPED_UP, asked)).scalar_one()
    if is_so:
        await check_origin(conn, signer, box, kinds)
    return is_so
