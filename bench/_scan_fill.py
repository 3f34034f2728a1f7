"""What is in the database before the scanning benchmark begins."""

from __future__ import annotations

import asyncio

from _chain import DEPOSIT_UNITS, USDT, paid_addresses

from cambist.db.engine import connect
from cambist.ports import SystemClock
from cambist_evm.addresses import spell


def fill(database_url: str, blocks: int, watched: int) -> None:
    """Put a merchant with this many addresses into an empty database, those that the chain pays to among them."""
    asyncio.run(_fill(database_url, blocks, watched))


async def _fill(database_url: str, blocks: int, watched: int) -> None:
    db = connect(database_url, application_name="bench")
    now = SystemClock().now()
    recipients = [spell(text[2:]) for text in paid_addresses(blocks)]
    async with db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO merchants (merchant_id, email, name, password_hash)"
            " VALUES ('mer_1', 'a@example.com', 'A', '-')"
        )
        await conn.exec_driver_sql(
            "INSERT INTO projects (project_id, merchant_id, name, mode, payment_webhook_url)"
            " SELECT 'prj_1', id, 'A', 'live', 'https://shop.example/hook' FROM merchants"
        )
        await conn.exec_driver_sql(
            "INSERT INTO payments (payment_id, public_id, project_id, merchant_id, mode, chain, scope, token, contract,"
            " decimals, address, pricing_mode, amount, expected_units, required_confirmations, expires_at, created_at,"
            " updated_at) SELECT 'pay_' || n, 'pub_' || n, p.id, p.merchant_id, 'live', 'ethereum', 0, 'USDT', $1, 6,"
            " a, 'direct_crypto', 1, $2, 12, $3, $3, $3"
            " FROM projects p, unnest($4::text[]) WITH ORDINALITY AS u (a, n)",
            (spell(USDT[2:]), DEPOSIT_UNITS, now, recipients),
        )
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, merchant_id, payment_id, account_index, change,"
            " address_index) SELECT 'live', 'evm', address, merchant_id, id, 1, 0, id FROM payments"
        )
        # The others were handed out once and are watched for ever. In order, and without foreign keys being looked
        # up, so that filling takes less time than measuring; the spelling is of no matter here.
        await conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
        await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, merchant_id, account_index, change, address_index)"
            " SELECT 'live', 'evm', address, p.id, 2, 0, n FROM merchants p, (SELECT address, row_number() OVER () AS n"
            " FROM (SELECT '0x' || left(encode(sha256(s::text::bytea), 'hex'), 40) AS address"
            " FROM generate_series(1, $1::int) AS s ORDER BY 1) AS sorted) AS numbered",
            (watched - len(recipients),),
        )
    async with db.autocommit() as conn:
        await conn.exec_driver_sql("ANALYZE")
    await db.close()
