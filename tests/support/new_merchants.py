"""Merchants as rows, with the keys that their addresses are derived from: one question to the database."""

from __future__ import annotations

from collections.abc import Sequence

from cambist.db.engine import Database

_ADD = """
WITH made AS (
    INSERT INTO merchants (merchant_id, email, name) VALUES ($1, $1 || '@example.com', 'Shop') RETURNING id
), keyed AS (
    UPDATE account_keys SET merchant_pk = made.id FROM made WHERE account_index =
        (SELECT min(account_index) FROM account_keys WHERE merchant_pk IS NULL AND account_index > 0)
), added AS (
    INSERT INTO projects (project_id, merchant_pk, name, mode, payment_webhook_url)
    SELECT project_id, made.id, 'Shop', mode, 'https://shop.example/hook'
    FROM made, unnest($2::text[], $3::text[]) WITH ORDINALITY AS wanted (project_id, mode, place) ORDER BY place
    RETURNING id
)
SELECT made.id AS merchant, added.id AS project FROM made LEFT JOIN added ON true ORDER BY added.id
"""


async def add_merchant(db: Database, merchant_id: str, projects: Sequence[tuple[str, str]]) -> tuple[int, list[int]]:
    """Add a merchant with projects, each by its id and mode; return all their primary keys."""
    names, modes = [name for name, _ in projects], [mode for _, mode in projects]
    async with db.autocommit() as conn:
        rows = (await conn.exec_driver_sql(_ADD, (merchant_id, names, modes))).all()
    return rows[0].merchant, [row.project for row in rows]
