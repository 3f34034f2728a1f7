"""What is known of a merchant's second factor, and how wrong codes are counted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

WRONG_CODES_MAX = 5
LOCK_S = 900
LOCK_S_MAX = 86_400

_READ = (
    "SELECT secret_encrypted, pending_encrypted, pending_at, last_step, wrong_codes, locked_until"
    " FROM two_factor_states WHERE merchant_pk = $1 FOR UPDATE"
)

log = structlog.get_logger(__name__)


class State(NamedTuple):
    """What is known of a merchant's authenticator; see the model."""

    secret_encrypted: bytes | None
    pending_encrypted: bytes | None
    pending_at: datetime | None
    last_step: int
    wrong_codes: int
    locked_until: datetime | None


async def lock_merchant(conn: AsyncConnection, merchant_pk: int) -> None:
    """Let nobody else enrol this merchant, or sign in, until the transaction ends."""
    await conn.exec_driver_sql("SELECT FROM merchants WHERE id = $1 FOR NO KEY UPDATE", (merchant_pk,))


async def read(conn: AsyncConnection, merchant_pk: int) -> State | None:
    """Return the state and lock it: a merchant's codes are judged one after another."""
    row = (await conn.exec_driver_sql(_READ, (merchant_pk,))).one_or_none()
    return None if row is None else State._make(row)


async def count_wrong(conn: AsyncConnection, merchant_pk: int, wrong_codes: int, now: datetime) -> None:
    rounds, within = divmod(wrong_codes, WRONG_CODES_MAX)
    locked_until = None
    if within == 0:
        locked_until = now + timedelta(seconds=min(LOCK_S * 2 ** min(rounds - 1, 10), LOCK_S_MAX))
        log.warning(
            "two_factor_locked", merchant_pk=merchant_pk, wrong_codes=wrong_codes, until=locked_until.isoformat()
        )
    await conn.exec_driver_sql(
        "UPDATE two_factor_states SET wrong_codes = $2, locked_until = $3 WHERE merchant_pk = $1",
        (merchant_pk, wrong_codes, locked_until),
    )


async def forgive(conn: AsyncConnection, merchant_pk: int) -> None:
    await conn.exec_driver_sql(
        "UPDATE two_factor_states SET wrong_codes = 0, locked_until = NULL WHERE merchant_pk = $1", (merchant_pk,)
    )


async def forget(conn: AsyncConnection, merchant_pk: int) -> None:
    await conn.exec_driver_sql("DELETE FROM two_factor_states WHERE merchant_pk = $1", (merchant_pk,))
