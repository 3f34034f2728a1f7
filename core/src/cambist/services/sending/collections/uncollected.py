"""The statements of what is not collected: what lies where, and why it stays there as it was last judged."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import AnyRow, transposed
from cambist.domain.collections import (
    FAILURES_COUNT_FOR,
    RETRY_PAUSES,
    Hindrance,
    Holding,
    Judgement,
    UncollectedReason,
    Wish,
)
from cambist.domain.intents import IntentKind
from cambist.plugin import Token, Units
from cambist.ports import Ids
from cambist.services.chain_scope import ChainScope
from cambist.services.chains.sendable import IS_NOT_SENDABLE
from cambist.services.sending.shortages import WAITS_FOR_FUNDS

UNCOLLECTED_MAX = 500
"""Addresses considered in one go."""

Key: TypeAlias = tuple[int, str | None]


class Uncollected(Struct, frozen=True, kw_only=True):
    """Confirmed deposits of one token on one address, and their row of ``uncollected_funds`` if they have one.

    ``is_needed``: a payout of the merchant waits for the token, and may have it from here.
    """

    address_pk: int
    address: str
    merchant_pk: int
    token: Token
    units: Units
    holding: Holding
    is_needed: bool
    row_pk: int | None
    units_before: Units | None
    judged: Judgement | None
    asked_at: datetime | None
    wish: Wish | None

    @property
    def key(self) -> Key:
        """What tells it from others of its chain."""
        return self.address_pk, self.token.contract

    def is_news(self, why: Judgement) -> bool:
        """Whether this has to be written down."""
        return self.units != self.units_before or why.is_news_to(self.judged)


UNCOLLECTED = """
FROM deposits d JOIN addresses a ON a.id = d.address_pk AND a.purpose IN ('payment', 'account')
    WHERE d.chain = $1 AND d.scope = $2 AND d.status = 'confirmed' AND d.collection_pk IS NULL
"""
"""The confirmed deposits that no collection has yet, and that are where a collection begins."""
KNOWN = "FROM uncollected_funds u WHERE u.chain = $1 AND u.scope = $2"

NEEDS = f"""
SELECT i.merchant_pk, i.contract, sum(i.units) - coalesce((
        SELECT sum(c.units) FROM outbound_intents c WHERE c.kind = '{IntentKind.COLLECTION}'
            AND c.state IN ('waiting', 'sending') AND c.chain = $1 AND c.scope = $2 AND c.merchant_pk = i.merchant_pk
            AND c.contract IS NOT DISTINCT FROM i.contract
    ), 0) AS units
FROM outbound_intents i WHERE i.chain = $1 AND i.scope = $2 AND i.state = 'waiting' AND i.reason = $3
GROUP BY i.merchant_pk, i.contract
"""  # noqa: S608  a constant
"""What payouts on chain $1 and scope $2 wait for as $3 says, without what is on its way for them."""

# All of these deposits of one token on one address, together; and rows of what is there no more, which
# come first. Then what payouts wait for, the largest first, what operators want, and what was never judged. The rest
# takes turns: however much lies there for good, everything else is looked at.
_UNCOLLECTED = f"""
WITH uncollected AS (
    SELECT d.address_pk, d.contract, min(d.token) AS token, min(d.decimals) AS decimals, d.merchant_pk,
           sum(d.units) AS units, min(d.confirmed_at) AS oldest_at
    {UNCOLLECTED}
    GROUP BY d.address_pk, d.contract, d.merchant_pk
), needed AS ({NEEDS}
), known AS (
    SELECT u.* {KNOWN}
), failed AS (
    SELECT i.source_address_pk, i.contract,
        max(i.finished_at) + ($7::interval[])[least(count(*), cardinality($7::interval[]))] AS retry_at
    FROM uncollected p JOIN outbound_intents i ON i.source_address_pk = p.address_pk
        AND i.contract IS NOT DISTINCT FROM p.contract
    -- A collection that is done has taken all that was confirmed: what failed before is over.
    WHERE i.chain = $1 AND i.scope = $2 AND i.kind = '{IntentKind.COLLECTION}' AND i.state = 'failed'
        AND i.finished_at >= greatest(p.oldest_at, $4::timestamptz - $8::interval)
    GROUP BY i.source_address_pk, i.contract
), found AS (
    SELECT p.*, u.id AS row_pk, u.units AS units_before, u.reason, u.detail, u.value_usd, u.fee_usd, u.until,
        u.asked_at, u.asked_fee_share_bps, f.retry_at, coalesce(w.units, 0) > 0 AS is_wanted,
        -- The signer would refuse it, and what is swept with it: it is left where it is until it can be sent.
        NOT EXISTS (
            SELECT FROM chain_tokens t
            WHERE $2::bigint = 0 AND t.chain = $1 AND t.contract = p.contract AND {IS_NOT_SENDABLE}
        ) AS is_sendable
    FROM uncollected p
        FULL JOIN known u ON u.address_pk = p.address_pk AND coalesce(u.contract, '') = coalesce(p.contract, '')
        LEFT JOIN needed w ON w.merchant_pk = p.merchant_pk AND w.contract IS NOT DISTINCT FROM p.contract
        LEFT JOIN failed f ON f.source_address_pk = p.address_pk AND f.contract IS NOT DISTINCT FROM p.contract
), ranked AS (
    SELECT f.*, f.is_wanted AND f.is_sendable AND coalesce(f.retry_at <= $4, true) AS is_needed FROM found f
)
SELECT f.*, src.address FROM ranked f LEFT JOIN addresses src ON src.id = f.address_pk
ORDER BY f.address_pk IS NULL DESC, f.is_needed DESC, CASE WHEN f.is_needed THEN f.units ELSE 0 END DESC,
    f.asked_at IS NOT NULL DESC, f.row_pk IS NULL DESC, coalesce(f.row_pk > $6, true) DESC, f.row_pk, f.oldest_at
LIMIT $5
"""  # noqa: S608  a constant


_DELETE = """
WITH gone AS (SELECT id FROM uncollected_funds WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE)
DELETE FROM uncollected_funds u USING gone WHERE u.id = gone.id
"""


async def read_page(
    conn: AsyncConnection, chain_scope: ChainScope, now: datetime, place: int
) -> tuple[Sequence[Uncollected], int]:
    """Return what is not collected, and the place at which the next page goes on.

    Rows of what is there no more are deleted.
    """
    values = (
        *(*chain_scope.key, WAITS_FOR_FUNDS, now, UNCOLLECTED_MAX, place),
        *(RETRY_PAUSES, FAILURES_COUNT_FOR),
    )
    rows = (await conn.exec_driver_sql(_UNCOLLECTED, values)).all()
    gone = [row.row_pk for row in rows if row.address_pk is None]
    if gone:
        await conn.exec_driver_sql(_DELETE, (gone,))
    if len(rows) < UNCOLLECTED_MAX:
        place = 0
    elif rows[-1].row_pk is not None:
        place = rows[-1].row_pk
    return [_uncollected(row) for row in rows if row.address_pk is not None], place


def _uncollected(row: AnyRow) -> Uncollected:
    judged = None
    if row.row_pk is not None:
        judged = Judgement(
            reason=UncollectedReason(row.reason),
            detail=row.detail,
            value=row.value_usd,
            fee=row.fee_usd,
            until=row.until,
        )
    return Uncollected(
        address_pk=row.address_pk,
        address=row.address,
        merchant_pk=row.merchant_pk,
        token=Token(symbol=row.token, contract=row.contract, decimals=row.decimals, label=row.token),
        units=Units(int(row.units)),
        holding=Holding(oldest_at=row.oldest_at, retry_at=row.retry_at, is_sendable=row.is_sendable),
        is_needed=row.is_needed,
        row_pk=row.row_pk,
        units_before=None if row.units_before is None else Units(int(row.units_before)),
        judged=judged,
        asked_at=row.asked_at,
        wish=None if row.asked_at is None else Wish(max_fee_share_bps=row.asked_fee_share_bps),
    )


_NOTE = """
INSERT INTO uncollected_funds AS u (
    chain, scope, judged_at, uncollected_id, address_pk, merchant_pk, token, contract, decimals, units, reason, detail,
    value_usd, fee_usd, until, created_at
)
SELECT $1, $2, $3, n.uncollected_id, n.address_pk, n.merchant_pk, n.token, n.contract, n.decimals, n.units, n.reason,
    n.detail, n.value_usd, n.fee_usd, n.until, n.created_at
FROM unnest(
    $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::bigint[], $10::numeric[], $11::text[],
    $12::text[], $13::numeric[], $14::numeric[], $15::timestamptz[], $16::timestamptz[]
) AS n (
    uncollected_id, address_pk, merchant_pk, token, contract, decimals, units, reason, detail, value_usd, fee_usd,
    until, created_at
)
ON CONFLICT (chain, scope, address_pk, (coalesce(contract, ''))) DO UPDATE SET
    units = excluded.units, reason = excluded.reason, detail = excluded.detail, value_usd = excluded.value_usd,
    fee_usd = excluded.fee_usd, until = excluded.until, judged_at = excluded.judged_at,
    created_at = excluded.created_at
"""
# What was asked for in the meantime is for the next check.
_ANSWER = """
UPDATE uncollected_funds u SET asked_at = NULL, asked_fee_share_bps = NULL, hindrance = NULL, hindrance_detail = NULL,
    hindered_at = NULL, refusal = n.refusal, refused_at = $1
FROM unnest($2::bigint[], $3::timestamptz[], $4::text[]) AS n (id, asked_at, refusal)
WHERE u.id = n.id AND u.asked_at = n.asked_at
"""


async def note(
    conn: AsyncConnection,
    chain_scope: ChainScope,
    ids: Ids,
    judged: Sequence[tuple[Uncollected, Judgement]],
    now: datetime,
) -> None:
    """Write down why these stay where they are, where that is news, or why somebody's wish is not met."""
    news = [(one, why) for one, why in judged if one.asked_at is None and one.is_news(why)]
    if news:
        rows = [
            (
                ids.new("unc"),
                *(one.address_pk, one.merchant_pk, one.token.symbol, one.token.contract, one.token.decimals, one.units),
                *(str(why.reason), why.detail, why.value, why.fee, why.until, one.holding.oldest_at),
            )
            for one, why in sorted(news, key=lambda each: (each[0].address_pk, each[0].token.contract or ""))
        ]
        await conn.exec_driver_sql(_NOTE, (*chain_scope.key, now, *transposed(rows)))
    answered = [(one.row_pk, one.asked_at, str(why.reason)) for one, why in judged if one.asked_at is not None]
    if answered:
        await conn.exec_driver_sql(_ANSWER, (now, *transposed(answered)))


_HINDER = """
WITH asked AS (
    SELECT id FROM uncollected_funds WHERE chain = $1 AND scope = $2 AND asked_at <= $3 ORDER BY id FOR NO KEY UPDATE
)
UPDATE uncollected_funds u SET hindrance = $4, hindrance_detail = $5, hindered_at = $6 FROM asked WHERE u.id = asked.id
"""


async def note_hindrance(  # noqa: PLR0913, PLR0917  of which, why and when
    conn: AsyncConnection,
    chain_scope: ChainScope,
    asked_at: datetime,
    hindrance: Hindrance,
    detail: str | None,
    now: datetime,
) -> None:
    """Write down why the wishes until then, those that are left, have no answer yet."""
    await conn.exec_driver_sql(_HINDER, (*chain_scope.key, asked_at, str(hindrance), detail, now))


async def is_wanted_still(conn: AsyncConnection, one: Uncollected) -> bool:
    """Whether what somebody wanted when it was judged is wanted still, and lock its row; True where nobody did."""
    if one.asked_at is None:
        return True
    locked = "SELECT asked_at FROM uncollected_funds WHERE id = $1 FOR UPDATE"
    return (await conn.exec_driver_sql(locked, (one.row_pk,))).scalar_one_or_none() == one.asked_at


async def forget(conn: AsyncConnection, chain_scope: ChainScope, one: Uncollected) -> None:
    """Delete the row of what a collection has taken."""
    await conn.exec_driver_sql(
        "DELETE FROM uncollected_funds WHERE chain = $1 AND scope = $2 AND address_pk = $3"
        " AND coalesce(contract, '') = coalesce($4::text, '')",
        (*chain_scope.key, one.address_pk, one.token.contract),
    )
