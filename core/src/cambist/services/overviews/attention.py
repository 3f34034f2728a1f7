"""What needs somebody's attention, each with how many there are, since when, and where to look.

``of_merchant`` is for a merchant, in one mode, of all projects or some. All of it is counted by indexes that hold only
what is open or recent, up to ``COUNT_MAX``, so that a page costs the same whatever the merchant has behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.accounting import cpt_months, usage
from cambist.services.platform import PlatformSettings

COUNT_MAX = 1_000
"""Up to here is counted; that there are more makes no difference to whoever is told."""
RECENT = timedelta(days=7)
SLOW = timedelta(hours=1)
"""How long a payout may wait before somebody should know."""
KEY_EXPIRES = timedelta(days=14)
CREDITS_DAYS = 7


class Attention(Struct, frozen=True, kw_only=True, rename="camel"):
    """One thing that needs attention: a name for programs, and a sentence. `count` is at most 1,000, which is or more.

    `since` is the oldest of them, null where that says nothing. `where` is the path of the API that tells more.
    """

    code: str
    message: str
    count: int
    since: datetime | None
    where: str


class Whose(Struct, frozen=True, kw_only=True):
    """Of which merchant, in which mode, and of which projects: None stands for all of them."""

    merchant_pk: int
    mode: str
    project_pks: Sequence[int] | None = None


class _Kind(Struct, frozen=True, kw_only=True):
    """What is looked for: ``rows`` selects a time for each. ``$1`` to ``$3`` are ``Whose``, ``$4`` is a time."""

    code: str
    message: str
    where: str
    rows: str
    until: timedelta = timedelta()


_OWN = "merchant_pk = $1 AND mode = $2 AND ($3::bigint[] IS NULL OR project_pk = ANY($3))"
_PROJECTS = "SELECT id FROM projects WHERE merchant_pk = $1 AND mode = $2 AND ($3::bigint[] IS NULL OR id = ANY($3))"

_KINDS = (
    _Kind(
        code="RESOLUTIONS_OPEN",
        message="Deposits that belong to no order wait for a decision.",
        where="/api/dashboard/projects/{projectId}/resolutions",
        rows="""SELECT d.mined_at FROM deposits d LEFT JOIN payments p ON p.id = d.payment_pk
            LEFT JOIN accounts a ON a.id = d.account_pk
            WHERE d.merchant_pk = $1 AND d.mode = $2 AND d.status = 'confirmed'
                AND d.available_units + d.returned_units < d.units
                AND (p.id IS NULL OR NOT d.matches OR p.status NOT IN ('pending', 'detected', 'confirming'))
                AND (d.resolution IS NULL OR d.resolution <> 'accepted' OR p.status <> 'expired')
                AND ($3::bigint[] IS NULL OR coalesce(p.project_pk, a.project_pk) = ANY($3))
                AND $4::timestamptz IS NOT NULL""",
    ),
    _Kind(
        code="WEBHOOKS_FAILED",
        message="Events of the last seven days were delivered to nobody: every attempt failed.",
        where="/api/dashboard/projects/{projectId}/deliveries",
        rows="""SELECT d.created_at FROM webhook_deliveries d
            WHERE d.project_pk IN ({projects}) AND d.status = 'dropped' AND d.created_at > $4""",
        until=RECENT,
    ),
    _Kind(
        code="PAYOUTS_WAITING",
        message="Payouts, refunds or withdrawals have waited for more than an hour.",
        where="/api/dashboard/projects/{projectId}/wallet/payouts",
        rows="""SELECT created_at FROM payouts WHERE {own}
            AND status IN ('requested', 'processing') AND created_at < $4""",
        until=SLOW,
    ),
    _Kind(
        code="PAYOUTS_FAILED",
        message="Payouts, refunds or withdrawals of the last seven days have failed; their money is back.",
        where="/api/dashboard/projects/{projectId}/wallet/payouts",
        rows="SELECT created_at FROM payouts WHERE {own} AND status = 'failed' AND created_at > $4",
        until=RECENT,
    ),
    _Kind(
        code="KEYS_EXPIRING",
        message="API keys expire within two weeks.",
        where="/api/merchant/projects/{projectId}/api-keys",
        rows="""SELECT k.expires_at FROM api_keys k WHERE k.project_pk IN ({projects}) AND k.revoked_at IS NULL
            AND k.expires_at > $4 AND k.expires_at <= $4 + interval '14 days'""",
    ),
    _Kind(
        code="AUTO_CONVERT_REFUSED",
        message="Coins are not converted, although their rule says so: nobody exchanges them now.",
        where="/api/dashboard/projects/{projectId}/wallet/coins",
        rows="""SELECT NULL::timestamptz FROM coin_settings WHERE merchant_pk = $1 AND mode = $2
            AND auto_convert_enabled AND auto_convert_refusal IS NOT NULL
            AND ($3::bigint[] IS NULL OR auto_convert_project_pk = ANY($3)) AND $4::timestamptz IS NOT NULL""",
    ),
    _Kind(
        code="RECEIVABLE_OUTSTANDING",
        message="A reorganization of the chain took back money that was spent; nothing of these coins is paid out.",
        where="/api/dashboard/projects/{projectId}/wallet",
        rows="""SELECT NULL::timestamptz FROM ledger_accounts WHERE merchant_pk = $1 AND mode = $2
            AND purpose = 'receivable' AND balance < 0 AND $3::bigint[] IS NULL AND $4::timestamptz IS NOT NULL""",
    ),
)


async def of_merchant(
    conn: AsyncConnection, whose: Whose, settings: PlatformSettings, now: datetime
) -> Sequence[Attention]:
    """Return what needs the merchant's attention, without what there is none of."""
    found = []
    for kind in _KINDS:
        rows = kind.rows.format(own=_OWN, projects=_PROJECTS)
        counted = f"SELECT count(*) AS number, min(at) AS since FROM ({rows} LIMIT {COUNT_MAX}) AS one (at)"  # noqa: S608  constants
        values: tuple[Any, ...] = (whose.merchant_pk, whose.mode, whose.project_pks, now - kind.until)
        row = (await conn.exec_driver_sql(counted, values)).one()
        if row.number:
            found.append(
                Attention(code=kind.code, message=kind.message, count=row.number, since=row.since, where=kind.where)
            )
    if (low := await _credits(conn, whose, settings, now)) is not None:
        found.append(low)
    return found


async def _credits(conn: AsyncConnection, whose: Whose, settings: PlatformSettings, now: datetime) -> Attention | None:
    """Tell of usage credits that are used up, or will be within a week at this month's pace."""
    left = await usage.balance(conn, whose.merchant_pk, whose.mode)
    used = (await cpt_months.read_month(conn, whose.merchant_pk, whose.mode, now)).used
    where = "/api/dashboard/projects/{projectId}/usage"
    if left <= settings.cpt.floor:
        text = "Usage credits are used up: payouts, refunds and exchanges are refused."
        return Attention(code="CREDITS_USED_UP", message=text, count=1, since=None, where=where)
    if (left - settings.cpt.floor) * now.day < used * CREDITS_DAYS:
        text = "Usage credits will be used up within a week, at this month's pace."
        return Attention(code="CREDITS_LOW", message=text, count=1, since=None, where=where)
    return None
