"""Deleting what is over, in small batches: nothing that a balance, an open case or a repeated request depends on.

Idempotency keys of money stay for ever: a payout that is asked for again after years must still be the same payout.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import structlog

from cambist.db.engine import Database
from cambist.services.kept_answers import KEPT
from cambist.services.webhooks.outbox import TELLS_OF
from cambist.settings import RetentionSettings

log = structlog.get_logger(__name__)

BATCH = 1_000

# Who holds a row is left alone: the next run finds it. A redelivery makes a delivery pending, and renews due_at.
_WEBHOOKS = """
WITH over AS (
    SELECT id FROM webhook_deliveries WHERE status <> 'pending' AND created_at < $1 AND due_at < $1
    LIMIT $2 FOR UPDATE SKIP LOCKED
), attempts AS (DELETE FROM webhook_attempts a USING over WHERE a.delivery_pk = over.id)
DELETE FROM webhook_deliveries d USING over WHERE d.id = over.id
"""
# An event goes after its deliveries, and an endpoint that was deleted after those of its own.
_EVENTS = """
DELETE FROM webhook_events told USING (
    SELECT id FROM webhook_events e WHERE created_at < $1
        AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.event_pk = e.id)
    LIMIT $2 FOR UPDATE SKIP LOCKED
) AS over WHERE told.id = over.id
"""
_ENDPOINTS = """
DELETE FROM webhook_endpoints gone USING (
    SELECT id FROM webhook_endpoints e WHERE deleted_at < $1
        AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.endpoint_pk = e.id)
    LIMIT $2 FOR UPDATE SKIP LOCKED
) AS over WHERE gone.id = over.id
"""
# What trackers were told, and what moved: nothing that a delivery, the fan-out or a judgement still needs. A transfer
# goes after all that was told of it and all that became of it.
_TRACKER_TRANSACTIONS = f"""
DELETE FROM tracker_transactions told USING (
    SELECT o.transaction_id FROM tracker_transactions o WHERE o.created_at < $1
        AND NOT EXISTS (SELECT FROM movements m WHERE m.id = o.movement_pk AND m.status = 'detected')
        AND (
            SELECT d.id FROM webhook_deliveries d WHERE {TELLS_OF.format(told="d", transaction="o.transaction_id")}
                AND CASE WHEN d.status = 'pending' THEN d.resource_id = o.transaction_id END
            ORDER BY d.delivery_id LIMIT 1
        ) IS NULL
    LIMIT $2 FOR UPDATE SKIP LOCKED
) AS over WHERE told.transaction_id = over.transaction_id
"""  # noqa: S608  a constant
_MOVEMENT_STAGES = """
DELETE FROM movement_stages told USING (
    SELECT s.id FROM movement_stages s WHERE s.at < $1
        AND s.id <= (SELECT c.stage_pk FROM tracker_cursors c WHERE c.chain = s.chain AND c.scope = s.scope)
        AND NOT EXISTS (SELECT FROM deferred_stages d WHERE d.stage_pk = s.id)
    LIMIT $2 FOR UPDATE SKIP LOCKED
) AS over WHERE told.id = over.id
"""
_MOVEMENTS = """
DELETE FROM movements gone USING (
    SELECT m.id FROM movements m WHERE m.stored_at < $1 AND m.status <> 'detected'
        AND NOT EXISTS (SELECT FROM movement_stages s WHERE s.movement_pk = m.id)
        AND NOT EXISTS (SELECT FROM tracker_transactions o WHERE o.movement_pk = m.id)
    LIMIT $2 FOR UPDATE SKIP LOCKED
) AS over WHERE gone.id = over.id
"""
_SESSIONS = """
DELETE FROM sessions s USING (
    SELECT id FROM sessions WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
) AS over WHERE s.id = over.id
"""
_RESETS = """
DELETE FROM password_resets r USING (
    SELECT token_hash FROM password_resets WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
) AS over WHERE r.token_hash = over.token_hash
"""
_ANSWERS = """
DELETE FROM kept_answers k USING (
    SELECT id FROM kept_answers WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
) AS over WHERE k.id = over.id
"""
_OPERATOR_SESSIONS = _SESSIONS.replace("sessions", "operator_sessions")
_OPERATOR_LINKS = _RESETS.replace("password_resets", "operator_links")
_JOBS = """
DELETE FROM jobs j USING (
    SELECT id FROM jobs WHERE finished_at < $1 ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED
) AS over WHERE j.id = over.id
"""
# The last success of each recurring job stays: while a job fails, its metric says since when.
_CRON_RUNS = """
DELETE FROM cron_runs r USING (
    SELECT name, due_at FROM cron_runs run
    WHERE due_at < $1 AND (finished_at IS NULL OR error IS NOT NULL OR EXISTS (
        SELECT FROM cron_runs later WHERE later.name = run.name AND later.due_at > run.due_at
            AND later.finished_at IS NOT NULL AND later.error IS NULL))
    ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED
) AS over WHERE r.name = over.name AND r.due_at = over.due_at
"""
# What may still be given back, or be metered again by a redelivery, stays; so does what was given back, as long as
# the record stays that it was given back for.
_USAGE = """
DELETE FROM usage_records u USING (
    SELECT id FROM usage_records r WHERE posted AND created_at < $1
        AND NOT EXISTS (SELECT FROM payouts p WHERE p.payout_id = r.reference
            AND p.status NOT IN ('completed', 'failed', 'cancelled'))
        AND NOT EXISTS (SELECT FROM exchanges e WHERE e.txn_id = r.reference AND e.status = 'pending')
        AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.delivery_id = r.reference)
        AND NOT EXISTS (SELECT FROM usage_records spent WHERE r.operation = 'return'
            AND spent.operation = split_part(r.reference, ':', 1)
            AND spent.reference = substr(r.reference, strpos(r.reference, ':') + 1))
    LIMIT $2 FOR UPDATE SKIP LOCKED
) AS over WHERE u.id = over.id
"""


async def delete_batch(db: Database, settings: RetentionSettings, now: datetime) -> Mapping[str, int]:
    """Delete up to ``BATCH`` rows of each table; return how many of each. A full batch says that more may be left.

    What fails does not keep the other tables from their turn, and is raised after it.
    """
    # Who asks for a delivery again needs what it is about.
    trackers_days = max(settings.trackers_days, settings.webhooks_days)
    rules = (
        ("webhook_deliveries", _WEBHOOKS, settings.webhooks_days),
        ("webhook_events", _EVENTS, settings.webhooks_days),
        ("webhook_endpoints", _ENDPOINTS, settings.webhooks_days),
        ("tracker_transactions", _TRACKER_TRANSACTIONS, trackers_days),
        ("movement_stages", _MOVEMENT_STAGES, trackers_days),
        ("movements", _MOVEMENTS, trackers_days),
        ("sessions", _SESSIONS, settings.sessions_days),
        ("password_resets", _RESETS, settings.sessions_days),
        ("operator_sessions", _OPERATOR_SESSIONS, settings.sessions_days),
        ("operator_links", _OPERATOR_LINKS, settings.sessions_days),
        ("kept_answers", _ANSWERS, KEPT.days),
        ("jobs", _JOBS, settings.jobs_days),
        ("cron_runs", _CRON_RUNS, settings.cron_runs_days),
        ("usage_records", _USAGE, settings.usage_days),
    )
    async with db.autocommit() as conn:
        # A worker whose clock is ahead must not delete what is young.
        now = (await conn.exec_driver_sql("SELECT least($1::timestamptz, now())", (now,))).scalar_one()
    deleted, errors = {}, []
    for name, statement, days in rules:
        try:
            async with db.transaction() as conn:
                done = await conn.exec_driver_sql(statement, (now - timedelta(days=days), BATCH))
                deleted[name] = done.rowcount
        except Exception as error:
            log.exception("retention_failed", table=name)
            errors.append(error)
    if errors:
        raise errors[0]
    return deleted
