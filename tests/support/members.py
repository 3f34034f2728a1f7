"""Members of merchants, for tests of people who sign in."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection

_ADD = """
WITH merchant AS (INSERT INTO merchants (merchant_id, email, name) VALUES ('mer_' || $1, $2, $1) RETURNING id)
INSERT INTO members (member_id, merchant_pk, email, name, password_hash)
SELECT 'mem_' || $1, id, $2, $1, $1 FROM merchant RETURNING id
"""


async def a_member(conn: AsyncConnection, name: str, email: str) -> int:
    """Add a merchant and its first member; return the member's primary key."""
    pk: int = (await conn.exec_driver_sql(_ADD, (name, email))).scalar_one()
    return pk


async def another_member(conn: AsyncConnection, merchant_pk: int, name: str, email: str) -> int:
    """Add one more member of a merchant; return the member's primary key."""
    row = (
        "INSERT INTO members (member_id, merchant_pk, email, name, password_hash) VALUES ('mem_' || $1, $2, $3, $1, $1)"
    )
    pk: int = (await conn.exec_driver_sql(row + " RETURNING id", (name, merchant_pk, email))).scalar_one()
    return pk
