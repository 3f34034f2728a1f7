"""What needs an operator's attention, over all merchants and chains. Counted as ``attention.py`` counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.signing import reports

from .attention import COUNT_MAX, RECENT, SLOW, WAITS_FOR_DECISION, Attention, Kind, counted

SIGNER_SILENT = timedelta(minutes=5)
_POLLS_FAIL = _NO_PRICE = timedelta(minutes=2)
_DAY = timedelta(days=1)

# Each job once, since the first failure after its last success: some run every two seconds, and one that ended well
# since then needs nobody. Of a job that no version has any more, the last run stays: after a day it says nothing.
_FAILING_RECURRING = """SELECT failing.due_at FROM (
        WITH RECURSIVE names AS (
            (SELECT name FROM cron_runs ORDER BY name LIMIT 1)
            UNION ALL
            SELECT (SELECT r.name FROM cron_runs r WHERE r.name > names.name ORDER BY r.name LIMIT 1)
            FROM names WHERE names.name IS NOT NULL
        )
        SELECT name FROM names WHERE name IS NOT NULL
    ) AS job
    CROSS JOIN LATERAL (
        SELECT r.error, r.due_at > $2 AS is_recent FROM cron_runs r
        WHERE r.name = job.name AND r.finished_at IS NOT NULL
        ORDER BY r.due_at DESC LIMIT 1
    ) AS last
    CROSS JOIN LATERAL (
        SELECT r.due_at FROM cron_runs r WHERE r.name = job.name AND r.error IS NOT NULL AND r.due_at > coalesce((
            SELECT well.due_at FROM cron_runs well
            WHERE well.name = job.name AND well.finished_at IS NOT NULL AND well.error IS NULL
            ORDER BY well.due_at DESC LIMIT 1
        ), '-infinity')
        ORDER BY r.due_at LIMIT 1
    ) AS failing
    WHERE $1::text IS NOT NULL AND last.error IS NOT NULL AND last.is_recent"""

# ``$1`` is the mode.
_KINDS = (
    Kind(
        code="CHAINS_FAILING",
        message="Chains cannot be read: what comes in there is seen later.",
        where="/api/admin/chains",
        rows="""SELECT coalesce(failing_since, seen_at) FROM chain_states
            WHERE $1 = 'live' AND (problem IS NOT NULL OR failing_since < $2)""",
        until=_POLLS_FAIL,
    ),
    Kind(
        code="CHAIN_CHANGES_REFUSED",
        message="A change of a chain's endpoints or tokens is not in force: the worker goes on with what it had.",
        where="/api/admin/chains",
        rows="SELECT seen_at FROM chain_states WHERE $1 = 'live' AND seen_at <= $2 AND setup_problem IS NOT NULL",
    ),
    Kind(
        code="ENDPOINTS_SET_ASIDE",
        message="Endpoints of chains are not asked: they failed, lag, or tell other blocks than the others.",
        where="/api/admin/chains",
        rows="""SELECT NULL::timestamptz FROM chain_endpoints WHERE $1 = 'live' AND $2::timestamptz IS NOT NULL
            AND state = 'in_use' AND set_aside IS NOT NULL""",
    ),
    Kind(
        code="CHAINS_PAUSED",
        message="Operators have paused the watching of chains, or the sending on them.",
        where="/api/admin/chains",
        rows="SELECT paused_at FROM chain_pauses WHERE $1 = 'live' AND paused_at <= $2",
    ),
    Kind(
        code="GAS_LOW",
        message="Gas stations are low on coin or on stake: transfers will wait.",
        where="/api/admin/gas-stations",
        rows="""SELECT NULL::timestamptz FROM gas_stations
            WHERE mode = $1 AND $2::timestamptz IS NOT NULL AND (is_low OR is_stake_low)""",
    ),
    Kind(
        code="OUTBOUND_WAITING",
        message="Transfers have waited to be sent for more than an hour.",
        where="/api/admin/outbound",
        rows="""SELECT created_at FROM outbound_intents
            WHERE state = 'waiting' AND (scope = 0) = ($1 = 'live') AND created_at < $2
                AND reason IS DISTINCT FROM 'merchant_suspended'""",
        until=SLOW,
    ),
    Kind(
        code="OUTBOUND_UNCONFIRMED",
        message="Transactions were broadcast more than an hour ago, and no block has them.",
        where="/api/admin/outbound",
        rows="""SELECT sent_at FROM outbound_txs
            WHERE state IN ('stored', 'sent', 'mined') AND state = 'sent' AND (scope = 0) = ($1 = 'live')
                AND sent_at < $2""",
        until=SLOW,
    ),
    Kind(
        code="RESOLUTIONS_OPEN",
        message="Deposits that belong to no order wait for their merchants' decisions.",
        where="/api/admin/resolutions",
        rows=f"""SELECT deposits.mined_at FROM deposits LEFT JOIN payments ON payments.id = deposits.payment_pk
            WHERE deposits.mode = $1 AND deposits.merchant_pk IS NOT NULL AND deposits.mined_at <= $2
                AND {WAITS_FOR_DECISION}""",  # noqa: S608  constants
    ),
    Kind(
        code="RECEIVABLE_OUTSTANDING",
        message="Reorganizations of chains took back what merchants had spent: they owe it, each in a coin.",
        where="/api/admin/merchants",
        rows="""SELECT NULL::timestamptz FROM ledger_accounts WHERE mode = $1 AND purpose = 'receivable' AND balance < 0
            AND merchant_pk IS NOT NULL AND $2::timestamptz IS NOT NULL""",
    ),
    Kind(
        code="WEBHOOKS_FAILED",
        message="Events of the last seven days were delivered to nobody: every attempt failed.",
        where="/api/admin/webhooks/deliveries",
        rows=f"""SELECT created_at FROM (SELECT created_at FROM webhook_deliveries WHERE status = 'dropped'
                ORDER BY id DESC LIMIT {COUNT_MAX}) AS newest WHERE $1::text IS NOT NULL AND created_at > $2""",  # noqa: S608  constants
        until=RECENT,
    ),
    Kind(
        code="JOBS_FAILED",
        message="Jobs of the last seven days have failed.",
        where="/api/admin/jobs",
        rows="""SELECT finished_at FROM jobs
            WHERE $1::text IS NOT NULL AND finished_at IS NOT NULL AND finished_at > $2 AND state = 'failed'""",
        until=RECENT,
    ),
    Kind(
        code="RECURRING_JOBS_FAILED",
        message="Recurring jobs failed when they last ran.",
        where="/api/admin/jobs/recurring",
        rows=_FAILING_RECURRING,
        until=_DAY,
    ),
    Kind(
        code="BOOKS_DIFFER",
        message="The last comparison found that books and chains differ, or could not read a chain.",
        where="/api/admin/reconcile",
        # One of some chains alone ends no alarm.
        rows="""SELECT finished_at FROM (SELECT finished_at, result FROM jobs
                WHERE kind = 'reconcile' AND state = 'succeeded'
                    AND (arguments -> 'chains' IS NULL OR result ->> 'agrees' = 'false')
                ORDER BY finished_at DESC, id DESC LIMIT 1) AS last
            WHERE $1 = 'live' AND $2::timestamptz IS NOT NULL AND last.result ->> 'agrees' = 'false'""",
    ),
    Kind(
        code="AUDIT_LOG_CHANGED",
        message="The last verification found that the audit log is not what was sealed.",
        where="/api/admin/audit",
        rows="""SELECT finished_at FROM (SELECT finished_at, result FROM jobs
                WHERE kind = 'audit_verification' AND state = 'succeeded' AND result ->> 'agrees' IS NOT NULL
                ORDER BY finished_at DESC, id DESC LIMIT 1) AS last
            WHERE $1 = 'live' AND $2::timestamptz IS NOT NULL AND last.result ->> 'agrees' = 'false'""",
    ),
    Kind(
        code="PRICE_SOURCES_SET_ASIDE",
        message="Operators have set price sources aside.",
        where="/api/admin/prices",
        rows="SELECT set_aside_at FROM price_sources_set_aside WHERE $1::text IS NOT NULL AND set_aside_at <= $2",
    ),
    Kind(
        code="PRICE_SOURCES_WRONG",
        message="Price sources are not believed: they are far from the others, too old, or give no answer.",
        where="/api/admin/prices",
        rows="""SELECT since FROM price_source_states one WHERE $1::text IS NOT NULL AND since <= $2
            AND verdict <> 'used'
            AND NOT EXISTS (SELECT FROM price_sources_set_aside aside WHERE aside.source = one.source)""",
    ),
    Kind(
        code="PRICES_MISSING",
        message="Coins have no price: what needs one is refused, such as payments in a currency.",
        where="/api/admin/prices",
        rows="SELECT since FROM prices_missing WHERE $1::text IS NOT NULL AND since <= $2",
        # A source that is late once is no alarm.
        until=_NO_PRICE,
    ),
)


async def of_operators(conn: AsyncConnection, mode: str, now: datetime) -> Sequence[Attention]:
    """Return what needs an operator's attention in a mode, without what there is none of."""
    of_signer = await _signer(conn, now) if mode == "live" else []
    return [*of_signer, *await counted(conn, _KINDS, mode, now=now)]


async def _signer(conn: AsyncConnection, now: datetime) -> list[Attention]:
    """Tell of questions that wait for a person, and of a signer from which nobody has heard."""
    copied, where = await reports.load(conn), "/api/admin/signer"
    if copied is None:
        return []
    found = []
    if copied.report.questions:
        text = "The signer asks whether it may sign: until somebody has answered, it does not."
        since = min(one.asked_at for one in copied.report.questions)
        count = len(copied.report.questions)
        found.append(Attention(code="APPROVALS_WAITING", message=text, count=count, since=since, where=where))
    if now - copied.reported_at > SIGNER_SILENT:
        text = "No worker has heard from the signer for minutes: nothing is signed."
        since = copied.reported_at
        found.append(Attention(code="SIGNER_SILENT", message=text, count=1, since=since, where=where))
    return found
