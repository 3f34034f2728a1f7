"""What needs an operator's attention, over all merchants and chains. Counted as ``attention.py`` counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.signing import reports

from .attention import COUNT_MAX, RECENT, SLOW, Attention

SIGNER_SILENT = timedelta(minutes=5)
_POLLS_FAIL = timedelta(minutes=2)
_DAY = timedelta(days=1)


class _Kind(Struct, frozen=True, kw_only=True):
    """What is looked for: ``rows`` selects a time for each. ``$1`` is the mode, ``$2`` a time."""

    code: str
    message: str
    where: str
    rows: str
    until: timedelta = timedelta()


_KINDS = (
    _Kind(
        code="CHAINS_FAILING",
        message="Chains cannot be read: what comes in there is seen later.",
        where="/api/admin/chains",
        rows="""SELECT coalesce(failing_since, seen_at) FROM chain_states
            WHERE $1 = 'live' AND (problem IS NOT NULL OR failing_since < $2)""",
        until=_POLLS_FAIL,
    ),
    _Kind(
        code="CHAIN_CHANGES_REFUSED",
        message="A change of a chain's endpoints or tokens is not in force: the worker goes on with what it had.",
        where="/api/admin/chains",
        rows="SELECT seen_at FROM chain_states WHERE $1 = 'live' AND seen_at <= $2 AND setup_problem IS NOT NULL",
    ),
    _Kind(
        code="ENDPOINTS_SET_ASIDE",
        message="Endpoints of chains are not asked: they failed, lag, or tell other blocks than the others.",
        where="/api/admin/chains",
        rows="""SELECT NULL::timestamptz FROM chain_endpoints WHERE $1 = 'live' AND $2::timestamptz IS NOT NULL
            AND state = 'in_use' AND set_aside IS NOT NULL""",
    ),
    _Kind(
        code="CHAINS_PAUSED",
        message="Operators have paused the watching of chains, or the sending on them.",
        where="/api/admin/chains",
        rows="SELECT paused_at FROM chain_pauses WHERE $1 = 'live' AND paused_at <= $2",
    ),
    _Kind(
        code="GAS_LOW",
        message="Gas stations are low on coin or on stake: transfers will wait.",
        where="/api/admin/gas-stations",
        rows="""SELECT NULL::timestamptz FROM gas_stations
            WHERE mode = $1 AND $2::timestamptz IS NOT NULL AND (is_low OR is_stake_low)""",
    ),
    _Kind(
        code="OUTBOUND_WAITING",
        message="Transfers have waited to be sent for more than an hour.",
        where="/api/admin/outbound",
        rows="""SELECT created_at FROM outbound_intents
            WHERE state = 'waiting' AND (scope = 0) = ($1 = 'live') AND created_at < $2
                AND reason IS DISTINCT FROM 'merchant_suspended'""",
        until=SLOW,
    ),
    _Kind(
        code="OUTBOUND_UNCONFIRMED",
        message="Transactions were broadcast more than an hour ago, and no block has them.",
        where="/api/admin/outbound",
        rows="""SELECT sent_at FROM outbound_txs
            WHERE state IN ('stored', 'sent', 'mined') AND state = 'sent' AND (scope = 0) = ($1 = 'live')
                AND sent_at < $2""",
        until=SLOW,
    ),
    _Kind(
        code="RESOLUTIONS_OPEN",
        message="Deposits that belong to no order wait for their merchants' decisions.",
        where="/api/admin/resolutions",
        rows="""SELECT d.mined_at FROM deposits d LEFT JOIN payments p ON p.id = d.payment_pk
            WHERE d.mode = $1 AND d.merchant_pk IS NOT NULL AND d.status = 'confirmed' AND d.mined_at <= $2
                AND d.available_units + d.returned_units < d.units
                AND (p.id IS NULL OR NOT d.matches OR p.status NOT IN ('pending', 'detected', 'confirming'))
                AND (d.resolution IS NULL OR d.resolution <> 'accepted' OR p.status <> 'expired')""",
    ),
    _Kind(
        code="WEBHOOKS_FAILED",
        message="Events of the last seven days were delivered to nobody: every attempt failed.",
        where="/api/admin/webhooks/deliveries",
        rows=f"""SELECT created_at FROM (SELECT created_at FROM webhook_deliveries WHERE status = 'dropped'
                ORDER BY id DESC LIMIT {COUNT_MAX}) AS newest WHERE $1::text IS NOT NULL AND created_at > $2""",  # noqa: S608  constants
        until=RECENT,
    ),
    _Kind(
        code="JOBS_FAILED",
        message="Jobs of the last seven days have failed.",
        where="/api/admin/jobs",
        rows="""SELECT finished_at FROM jobs
            WHERE $1::text IS NOT NULL AND finished_at IS NOT NULL AND finished_at > $2 AND state = 'failed'""",
        until=RECENT,
    ),
    _Kind(
        code="RECURRING_JOBS_FAILED",
        message="Recurring jobs have failed within a day.",
        where="/api/admin/jobs/recurring",
        rows="SELECT due_at FROM cron_runs WHERE $1::text IS NOT NULL AND due_at > $2 AND error IS NOT NULL",
        until=_DAY,
    ),
    _Kind(
        code="BOOKS_DIFFER",
        message="The last comparison found that books and chains differ, or could not read a chain.",
        where="/api/admin/reconcile",
        # One of some chains alone ends no alarm.
        rows="""SELECT finished_at FROM (SELECT finished_at, result FROM jobs
                WHERE kind = 'reconcile' AND state = 'succeeded'
                    AND (arguments -> 'chains' IS NULL OR result ->> 'agrees' = 'false')
                ORDER BY id DESC LIMIT 1) AS last
            WHERE $1 = 'live' AND $2::timestamptz IS NOT NULL AND last.result ->> 'agrees' = 'false'""",
    ),
    _Kind(
        code="AUDIT_LOG_CHANGED",
        message="The last verification found that the audit log is not what was sealed.",
        where="/api/admin/audit",
        rows="""SELECT finished_at FROM (SELECT finished_at, result FROM jobs
                WHERE kind = 'audit_verification' AND state = 'succeeded' AND result ->> 'agrees' IS NOT NULL
                ORDER BY id DESC LIMIT 1) AS last
            WHERE $1 = 'live' AND $2::timestamptz IS NOT NULL AND last.result ->> 'agrees' = 'false'""",
    ),
    _Kind(
        code="PRICE_SOURCES_SET_ASIDE",
        message="Operators have set price sources aside.",
        where="/api/admin/prices",
        rows="SELECT set_aside_at FROM price_sources_set_aside WHERE $1::text IS NOT NULL AND set_aside_at <= $2",
    ),
)


async def of_operators(conn: AsyncConnection, mode: str, now: datetime) -> Sequence[Attention]:
    """Return what needs an operator's attention in a mode, without what there is none of."""
    found = await _signer(conn, now) if mode == "live" else []
    for kind in _KINDS:
        counted = f"SELECT count(*) AS number, min(at) AS since FROM ({kind.rows} LIMIT {COUNT_MAX}) AS one (at)"  # noqa: S608  constants
        row = (await conn.exec_driver_sql(counted, (mode, now - kind.until))).one()
        if row.number:
            found.append(
                Attention(code=kind.code, message=kind.message, count=row.number, since=row.since, where=kind.where)
            )
    return found


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
