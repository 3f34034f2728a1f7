"""What is in the database before a scanning benchmark begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from _chain import DEPOSIT_UNITS
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import connect
from cambist.ports import SystemClock

ROWS_AT_ONCE = 50_000


class WatchedAddresses(Struct, frozen=True, kw_only=True):
    """The addresses that are watched on a chain, and the token that is paid to ``recipients`` among them.

    ``others`` makes the rest, on chains where an address is not simply 20 bytes in hex.
    """

    chain: str
    family: str
    contract: str
    recipients: Sequence[str]
    others: Callable[[int], Sequence[str]] | None = None


def fill(database_url: str, watching: WatchedAddresses, watched: int) -> None:
    """Put a merchant with this many addresses into an empty database, those that the chain pays to among them."""
    asyncio.run(_fill(database_url, watching, watched))


async def _fill(database_url: str, watching: WatchedAddresses, watched: int) -> None:
    db = connect(database_url, application_name="bench")
    now = SystemClock().now()
    async with db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO merchants (merchant_id, email, name) VALUES ('mer_1', 'a@example.com', 'A')"
        )
        await conn.exec_driver_sql(
            "INSERT INTO projects (project_id, merchant_pk, name, mode, payment_webhook_url)"
            " SELECT 'prj_1', id, 'A', 'live', 'https://shop.example/hook' FROM merchants"
        )
        await conn.exec_driver_sql(
            "INSERT INTO payments (payment_id, public_id, project_pk, merchant_pk, mode, chain, scope, token, contract,"
            " decimals, address, pricing_mode, amount, expected_units, required_confirmations, expires_at, created_at,"
            " updated_at, address_mac) SELECT 'pay_' || n, 'pub_' || n, p.id, p.merchant_pk, 'live', $5, 0,"
            " 'USDT', $1, 6, a, 'direct_crypto', 1, $2, 12, $3, $3, $3, ''"
            " FROM projects p, unnest($4::text[]) WITH ORDINALITY AS u (a, n)",
            (watching.contract, DEPOSIT_UNITS, now, list(watching.recipients), watching.chain),
        )
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, merchant_pk, payment_pk, account_index, change,"
            " address_index) SELECT 'live', $1, address, merchant_pk, id, 1, 0, id FROM payments",
            (watching.family,),
        )
        # The others were handed out once and stay watched. In order, and without foreign keys being looked
        # up, so that filling takes less time than measuring; their spelling does not matter here.
        await conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
        await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        await _fill_others(conn, watching, watched - len(watching.recipients))
    async with db.autocommit() as conn:
        await conn.exec_driver_sql("ANALYZE")
    await db.close()


async def _fill_others(conn: AsyncConnection, watching: WatchedAddresses, count: int) -> None:
    if watching.others is None:
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, merchant_pk, account_index, change, address_index)"
            " SELECT 'live', $1, address, p.id, 2, 0, n FROM merchants p,"
            " (SELECT address, row_number() OVER () AS n"
            " FROM (SELECT '0x' || left(encode(sha256(s::text::bytea), 'hex'), 40) AS address"
            " FROM generate_series(1, $2::int) AS s ORDER BY 1) AS sorted) AS numbered",
            (watching.family, count),
        )
        return
    others = sorted(watching.others(count))
    for start in range(0, count, ROWS_AT_ONCE):
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, merchant_pk, account_index, change, address_index)"
            " SELECT 'live', $1, address, p.id, 2, 0, $3::int + row"
            " FROM merchants p, unnest($2::text[]) WITH ORDINALITY AS u (address, row)",
            (watching.family, others[start : start + ROWS_AT_ONCE], start),
        )
