"""What needs somebody's attention, each with how many there are, since when, and where to look.

``of_merchant`` is for a merchant, in one mode, of all projects or some. All of it is counted by indexes that hold only
what is open or recent, up to ``COUNT_MAX``, so that a page costs the same whatever the merchant has behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from sqlalchemy import ColumnElement, and_
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.accounting import cpt_months, usage
from cambist.services.platform import PlatformSettings
from cambist.services.reversals.resolutions.read import HELD, waiting

COUNT_MAX = 1_000
"""Up to here is counted; that there are more makes no difference to whoever is told."""
RECENT = timedelta(days=7)
SLOW = timedelta(hours=1)
"""How long a payout may wait before somebody should know."""
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


class Kind(Struct, frozen=True, kw_only=True):
    """What is looked for: ``rows`` selects a time for each of whom ``counted`` names; the last parameter is a time.

    That is now, less ``until``.
    """

    code: str
    message: str
    where: str
    rows: str
    until: timedelta = timedelta()


def _text(*conditions: ColumnElement[bool]) -> str:
    """Write conditions on ``deposits`` and ``payments`` as a statement's text has them."""
    return str(and_(*conditions).compile(compile_kwargs={"literal_binds": True}))


WAITS_FOR_DECISION = _text(*HELD, *waiting(None))
_OWN = "merchant_pk = $1 AND mode = $2 AND ($3::bigint[] IS NULL OR project_pk = ANY($3))"
_PROJECTS = "SELECT id FROM projects WHERE merchant_pk = $1 AND mode = $2 AND ($3::bigint[] IS NULL OR id = ANY($3))"

# ``$1`` to ``$3`` are ``Whose``.
_KINDS = (
    Kind(
        code="RESOLUTIONS_OPEN",
        message="Deposits that belong to no order wait for a decision.",
        where="/api/dashboard/projects/{projectId}/resolutions",
        rows=f"""SELECT deposits.mined_at FROM deposits LEFT JOIN payments ON payments.id = deposits.payment_pk
            LEFT JOIN accounts ON accounts.id = deposits.account_pk
            WHERE deposits.merchant_pk = $1 AND deposits.mode = $2 AND {WAITS_FOR_DECISION}
                AND ($3::bigint[] IS NULL OR coalesce(payments.project_pk, accounts.project_pk) = ANY($3))
                AND $4::timestamptz IS NOT NULL""",  # noqa: S608  constants
    ),
    Kind(
        code="WEBHOOKS_FAILED",
        message="Events of the last seven days were delivered to nobody: every attempt failed.",
        where="/api/dashboard/projects/{projectId}/deliveries",
        rows=f"""SELECT d.created_at FROM webhook_deliveries d
            WHERE d.project_pk IN ({_PROJECTS}) AND d.status = 'dropped' AND d.created_at > $4""",  # noqa: S608  constants
        until=RECENT,
    ),
    Kind(
        code="PAYOUTS_WAITING",
        message="Payouts, refunds or withdrawals have waited for more than an hour.",
        where="/api/dashboard/projects/{projectId}/wallet/payouts",
        rows=f"""SELECT created_at FROM payouts WHERE {_OWN}
            AND status IN ('requested', 'processing') AND created_at < $4""",  # noqa: S608  constants
        until=SLOW,
    ),
    Kind(
        code="PAYOUTS_FAILED",
        message="Payouts, refunds or withdrawals of the last seven days have failed; their money is back.",
        where="/api/dashboard/projects/{projectId}/wallet/payouts",
        rows=f"SELECT finished_at FROM payouts WHERE {_OWN} AND status = 'failed' AND finished_at > $4",  # noqa: S608  constants
        until=RECENT,
    ),
    Kind(
        code="KEYS_EXPIRING",
        message="API keys expire within two weeks.",
        where="/api/merchant/projects/{projectId}/api-keys",
        rows=f"""SELECT k.expires_at FROM api_keys k WHERE k.project_pk IN ({_PROJECTS}) AND k.revoked_at IS NULL
            AND k.expires_at > $4 AND k.expires_at <= $4 + interval '14 days'""",  # noqa: S608  constants
    ),
    Kind(
        code="AUTO_CONVERT_REFUSED",
        message="Coins are not converted, although their rule says so: nobody exchanges them now.",
        where="/api/dashboard/projects/{projectId}/wallet/coins",
        rows="""SELECT NULL::timestamptz FROM coin_settings WHERE merchant_pk = $1 AND mode = $2
            AND auto_convert_enabled AND auto_convert_refusal IS NOT NULL
            AND ($3::bigint[] IS NULL OR auto_convert_project_pk = ANY($3)) AND $4::timestamptz IS NOT NULL""",
    ),
    Kind(
        code="RECEIVABLE_OUTSTANDING",
        message="A reorganization of the chain took back money that was spent; nothing of these coins is paid out.",
        where="/api/dashboard/projects/{projectId}/wallet",
        rows="""SELECT NULL::timestamptz FROM ledger_accounts WHERE merchant_pk = $1 AND mode = $2
            AND purpose = 'receivable' AND balance < 0
            AND ($3::bigint[] IS NULL OR true) AND $4::timestamptz IS NOT NULL""",  # the wallet is of all projects
    ),
)


async def of_merchant(
    conn: AsyncConnection, whose: Whose, settings: PlatformSettings, now: datetime
) -> Sequence[Attention]:
    """Return what needs the merchant's attention, without what there is none of."""
    found = await counted(conn, _KINDS, whose.merchant_pk, whose.mode, whose.project_pks, now=now)
    if (low := await _credits(conn, whose, settings, now)) is not None:
        found.append(low)
    return found


async def counted(conn: AsyncConnection, kinds: Iterable[Kind], *whose: object, now: datetime) -> list[Attention]:
    """Count each kind, whose first parameters say of whom; leave out what there is none of."""
    found = []
    for kind in kinds:
        number = f"SELECT count(*) AS number, min(at) AS since FROM ({kind.rows} LIMIT {COUNT_MAX}) AS one (at)"  # noqa: S608  constants
        row = (await conn.exec_driver_sql(number, (*whose, now - kind.until))).one()
        if row.number:
            found.append(
                Attention(code=kind.code, message=kind.message, count=row.number, since=row.since, where=kind.where)
            )
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
