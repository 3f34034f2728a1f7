"""Makes due what a clock that was ahead has put off.

Each process reckons by its machine's clock when something is tried next. What it wrote while that clock was hours or
years ahead would wait that long once the clock is right again: payouts, exchanges, webhooks. PostgreSQL's clock says
what lies ahead, and recurring jobs run in no worker that is ahead of that one (``jobs/cron_runs.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from cambist.db.engine import Database
from cambist.settings import WebhookSettings

from .exchanges.rows import IDLE_PAUSE
from .payouts.auto_convert import PAUSE_MAX as AUTO_CONVERT_PAUSE_MAX
from .receiving.history.rows import RETRY_MAX_S
from .trackers.deferred import LONGEST_PAUSE as TRACKERS_PAUSE_MAX

BATCH = 1_000
TOLERANCE = timedelta(minutes=1)
"""How far a machine's clock may be ahead and count as right."""
JOBS_PAUSE_MAX = timedelta(minutes=10)

# Transfers say when they were put off: those by a clock that was ahead are due now, and $1 is the tolerance. Of the
# others $1 is the longest time that what is written now waits, too. Who claims an exchange only moves its time on, so
# that how new it is does not tell. Sandboxes keep to the same clock.
# A job's lease is left a minute, in which whoever still works on it prolongs it.
# Who holds a row is left alone: the next run finds it.
_STATEMENTS = {
    "outbound_intents": """
        UPDATE outbound_intents i SET due_at = now(), updated_at = now() FROM (
            SELECT id FROM outbound_intents
            WHERE state = 'waiting' AND due_at > now() + $1 AND updated_at > now() + $1
            ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
        ) AS ahead WHERE i.id = ahead.id
    """,
    "outbound_txs": """
        UPDATE outbound_txs t SET tried_at = NULL, created_at = least(t.created_at, now()),
            sent_at = CASE WHEN t.sent_at > now() THEN now() ELSE t.sent_at END
        FROM (
            SELECT id FROM outbound_txs WHERE state IN ('stored', 'sent') AND scope = 0
                AND (tried_at > now() + $1 OR sent_at > now() + $1 OR created_at > now() + $1)
            ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
        ) AS ahead WHERE t.id = ahead.id
    """,
    "exchanges": """
        UPDATE exchanges e SET due_at = now(), updated_at = least(e.updated_at, now()) FROM (
            SELECT id FROM exchanges WHERE due_at > now() + $1
            ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
        ) AS ahead WHERE e.id = ahead.id
    """,
    "webhook_deliveries": """
        UPDATE webhook_deliveries d SET due_at = now() FROM (
            SELECT id FROM webhook_deliveries WHERE status = 'pending' AND due_at > now() + $1
            ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
        ) AS ahead WHERE d.id = ahead.id
    """,
    "deferred_stages": """
        UPDATE deferred_stages s SET due_at = now() FROM (
            SELECT stage_pk FROM deferred_stages WHERE due_at > now() + $1
            ORDER BY stage_pk LIMIT $2 FOR UPDATE SKIP LOCKED
        ) AS ahead WHERE s.stage_pk = ahead.stage_pk
    """,
    "coin_settings": """
        UPDATE coin_settings c SET auto_convert_due_at = now() FROM (
            SELECT merchant_pk, mode, chain, symbol FROM coin_settings
            WHERE auto_convert_enabled AND auto_convert_due_at > now() + $1
            ORDER BY merchant_pk, mode, chain, symbol LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED
        ) AS ahead
        WHERE (c.merchant_pk, c.mode, c.chain, c.symbol) = (ahead.merchant_pk, ahead.mode, ahead.chain, ahead.symbol)
    """,
    "tracker_histories": """
        UPDATE tracker_histories h SET due_at = CASE WHEN h.due_at > now() THEN now() ELSE h.due_at END,
            begun_at = CASE WHEN h.begun_at > now() THEN now() ELSE h.begun_at END
        FROM (
            SELECT tracker_pk FROM tracker_histories
            WHERE state = 'reading' AND (due_at > now() + $1 OR begun_at > now() + $1)
            ORDER BY tracker_pk LIMIT $2 FOR UPDATE SKIP LOCKED
        ) AS ahead WHERE h.tracker_pk = ahead.tracker_pk
    """,
    "jobs": """
        UPDATE jobs j SET due_at = least(j.due_at, now()),
            leased_until = CASE WHEN j.state = 'running' THEN now() + interval '1 minute' END
        FROM (
            SELECT id FROM jobs
            WHERE state = 'queued' AND due_at > now() + $1 OR state = 'running' AND leased_until > now() + $1
            ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
        ) AS ahead WHERE j.id = ahead.id
    """,
}


async def bring_back(db: Database, webhooks: WebhookSettings) -> Mapping[str, int]:
    """Make due what lies further ahead than anything that is written now; return how many of each, ``BATCH`` at most.

    Each table is a transaction of its own.
    """
    longest = {
        "exchanges": IDLE_PAUSE,
        "webhook_deliveries": _longest_webhook_pause(webhooks),
        "deferred_stages": TRACKERS_PAUSE_MAX,
        "coin_settings": AUTO_CONVERT_PAUSE_MAX,
        "tracker_histories": timedelta(seconds=RETRY_MAX_S),
        "jobs": JOBS_PAUSE_MAX,
    }
    changed = {}
    for name, statement in _STATEMENTS.items():
        async with db.autocommit() as conn:
            bound = longest.get(name, timedelta()) + TOLERANCE
            changed[name] = (await conn.exec_driver_sql(statement, (bound, BATCH))).rowcount
    return changed


def _longest_webhook_pause(settings: WebhookSettings) -> timedelta:
    """Return the pause before the last attempt, or how long one that is under way is leased, whichever is longer."""
    last = timedelta(milliseconds=settings.base_delay_ms << max(settings.retries - 1, 0))
    return last + timedelta(milliseconds=settings.timeout_ms) + TOLERANCE
