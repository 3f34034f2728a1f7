"""What is over is deleted in small batches; what a balance or an open case depends on stays, and so do keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.exc import ProgrammingError
from structlog.testing import capture_logs

from cambist.services import retention
from cambist.services.accounting import usage
from cambist.settings import RetentionSettings
from tests.support.webhooks import make_project

SETTINGS = RetentionSettings()
OLD = timedelta(days=500)


@pytest.fixture
async def merchant(db, ids):
    await make_project(db, ids)
    async with db.autocommit() as conn:
        return (await conn.exec_driver_sql("SELECT id FROM merchants")).scalar_one()


@pytest.fixture
def run(db):
    async def execute(statement, values=()):
        async with db.transaction() as conn:
            found = await conn.exec_driver_sql(statement, values)
            return list(found.scalars()) if found.returns_rows else []

    return execute


@pytest.fixture
def delete(db, clock):
    async def delete_all(settings=SETTINGS):
        return await retention.delete_batch(db, settings, clock.now())

    return delete_all


async def test_deliveries_that_are_done_go_with_their_attempts_and_those_still_tried_stay(run, delete, clock, merchant):
    now = clock.now()
    for number, (status, made, due) in enumerate([
        ("delivered", OLD, OLD), ("dropped", OLD, OLD), ("no_target", OLD, OLD),
        ("pending", OLD, OLD), ("delivered", timedelta(days=29), timedelta(days=29)),
        ("delivered", OLD, timedelta(days=1)),  # delivered again yesterday
    ]):  # fmt: skip
        await run(
            "WITH delivery AS (INSERT INTO webhook_deliveries (delivery_id, project_pk, event, resource_id, body,"
            " status, due_at, created_at) SELECT $1, id, 'payment.paid', 'pay', '', $2, $3, $4 FROM projects"
            " RETURNING id) INSERT INTO webhook_attempts (delivery_pk, number, attempted_at, duration_ms)"
            " SELECT id, 1, $4, 1 FROM delivery",
            (f"evt_{number}", status, now - due, now - made),
        )
    assert (await delete())["webhook_deliveries"] == 3
    assert await run("SELECT delivery_id FROM webhook_deliveries ORDER BY 1") == ["evt_3", "evt_4", "evt_5"]
    assert await run("SELECT count(*) FROM webhook_attempts") == [3]


async def test_sessions_and_resets_go_some_time_after_their_end(run, delete, clock, merchant):
    for days in (8, 6, -1):
        ended = clock.now() - timedelta(days=days)
        await run(
            "INSERT INTO sessions (session_id, merchant_pk, refresh_hash, expires_at) VALUES ($1, $2, $3, $4)",
            (f"ses_{days}", merchant, str(days).encode(), ended),
        )
        await run(
            "INSERT INTO password_resets (token_hash, merchant_pk, expires_at) VALUES ($1, $2, $3)",
            (str(days).encode(), merchant, ended),
        )
    deleted = await delete()
    assert (deleted["sessions"], deleted["password_resets"]) == (1, 1)
    assert set(await run("SELECT session_id FROM sessions")) == {"ses_6", "ses_-1"}


async def test_jobs_that_ended_go_with_their_files_and_unfinished_ones_stay(run, delete, clock):
    for state, ended in (("succeeded", OLD), ("failed", OLD), ("cancelled", timedelta(days=1)), ("queued", None)):
        await run(
            "WITH job AS (INSERT INTO jobs (job_id, kind, arguments, requested_by, state, due_at, created_at,"
            " finished_at) VALUES ($1, 'reconcile', '{}', 'operator', $1, $2, $2, $3) RETURNING id)"
            " INSERT INTO job_outputs (job_pk, number, content) SELECT id, 0, 'piece' FROM job",
            (state, clock.now() - OLD, None if ended is None else clock.now() - ended),
        )
    assert (await delete())["jobs"] == 2
    assert set(await run("SELECT job_id FROM jobs")) == {"cancelled", "queued"}
    assert await run("SELECT count(*) FROM job_outputs") == [2]


async def test_moments_of_recurring_jobs_go_after_a_day(run, delete, clock):
    for hours in (25, 23):
        due = clock.now() - timedelta(hours=hours)
        await run(
            "INSERT INTO cron_runs (name, due_at, worker, claimed_at, leased_until) VALUES ('usage', $1, '', $1, $1)",
            (due,),
        )
    assert (await delete())["cron_runs"] == 1


async def test_the_last_success_of_a_recurring_job_stays_however_old(run, delete, clock):
    for days, error in ((9, None), (8, None), (7, "LookupError")):
        await run(
            "INSERT INTO cron_runs (name, due_at, worker, claimed_at, leased_until, finished_at, error)"
            " VALUES ('usage', $1, '', $1, $1, $1, $2)",
            (clock.now() - timedelta(days=days), error),
        )
    assert (await delete())["cron_runs"] == 2
    assert await run("SELECT due_at FROM cron_runs") == [clock.now() - timedelta(days=8)]


async def test_a_worker_whose_clock_is_ahead_deletes_nothing_young(run, db):
    await run(
        "INSERT INTO cron_runs (name, due_at, worker, claimed_at, leased_until)"
        " VALUES ('usage', now(), '', now(), now())"
    )
    ahead = datetime.now(UTC) + timedelta(days=31)
    assert (await retention.delete_batch(db, SETTINGS, ahead))["cron_runs"] == 0


async def test_a_table_that_fails_does_not_keep_the_others_from_their_turn(run, delete, clock):
    await run(
        "INSERT INTO cron_runs (name, due_at, worker, claimed_at, leased_until) VALUES ('usage', $1, '', $1, $1)",
        (clock.now() - OLD,),
    )
    await run("ALTER TABLE webhook_deliveries RENAME TO gone")
    try:
        with capture_logs() as logs, pytest.raises(ProgrammingError, match="webhook_deliveries"):
            await delete()
    finally:
        await run("ALTER TABLE gone RENAME TO webhook_deliveries")
    assert "webhook_deliveries" in [entry.get("table") for entry in logs if entry["event"] == "retention_failed"]
    assert await run("SELECT count(*) FROM cron_runs") == [0]


@pytest.fixture
def used(run, clock, merchant):
    async def record(operation, reference, *, age=OLD, posted=True):
        await run(
            "INSERT INTO usage_records (merchant_pk, mode, operation, reference, weight, posted, created_at)"
            " VALUES ($1, 'live', $2, $3, 10, $4, $5)",
            (merchant, operation, reference, posted, clock.now() - age),
        )

    return record


async def references(run):
    return set(await run("SELECT reference FROM usage_records"))


async def test_usage_goes_once_it_is_posted_and_old_and_never_before(run, delete, db, used, merchant):
    await used("payment", "pay_old")
    await used("payment", "pay_young", age=timedelta(days=399))
    await used("payment", "pay_unposted", posted=False)
    async with db.autocommit() as conn:
        before = await usage.balance(conn, merchant, "live")
    assert (await delete())["usage_records"] == 1
    assert await references(run) == {"pay_young", "pay_unposted"}
    async with db.autocommit() as conn:
        assert await usage.balance(conn, merchant, "live") == before


@pytest.mark.parametrize("status, stays", [("processing", True), ("broadcast", True), ("completed", False)])
async def test_usage_of_a_payout_stays_as_long_as_it_may_be_given_back(
    run, delete, clock, db, used, merchant, status, stays
):
    await run(
        "INSERT INTO payouts (payout_id, kind, project_pk, merchant_pk, mode, chain, scope, token, decimals, units,"
        " to_address, status, created_at, updated_at) SELECT 'po_1', 'payout', id, $1, 'live', 'memory', 0, 'USDX', 6,"
        " 1, 'there', $2, $3, $3 FROM projects",
        (merchant, status, clock.now() - OLD),
    )
    await used("payout", "po_1")
    await delete()
    assert ("po_1" in await references(run)) is stays


async def test_credits_are_given_back_once_even_after_records_were_deleted(run, delete, clock, db, used, merchant):
    await used("payout", "po_1", age=timedelta(days=1))
    await used("return", "payout:po_1")
    await used("return", "payout:po_gone")
    await delete()
    assert await references(run) == {"po_1", "payout:po_1"}
    async with db.transaction() as conn:
        await usage.give_back(conn, "payout", ["po_1"], clock.now())
    assert await references(run) == {"po_1", "payout:po_1"}


async def test_a_delivery_that_is_kept_keeps_its_record_so_that_it_is_never_charged_twice(
    run, delete, clock, used, merchant
):
    await run(
        "INSERT INTO webhook_deliveries (delivery_id, project_pk, event, resource_id, body, status, due_at, created_at)"
        " SELECT 'evt_1', id, 'payment.paid', 'pay', '', 'pending', $1, $1 FROM projects",
        (clock.now() - OLD,),
    )
    await used("webhook_delivery", "evt_1")
    await used("webhook_delivery", "evt_2")
    await delete()
    assert await references(run) == {"evt_1"}


async def test_idempotency_keys_stay_for_ever(run, delete, clock, merchant):
    for operation in ("payment", "payout", "payout_batch", "refund", "withdrawal"):
        await run(
            "INSERT INTO idempotency_keys (merchant_pk, mode, operation, key, project_pk, request_hash, resource_id,"
            " created_at) SELECT $1, 'live', $2, 'key', id, '', 'po_1', $3 FROM projects",
            (merchant, operation, clock.now() - timedelta(days=5_000)),
        )
    await delete()
    assert await run("SELECT count(*) FROM idempotency_keys") == [5]


async def test_a_run_deletes_a_batch_and_leaves_what_somebody_holds(run, delete, db, clock, monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 3)
    old = clock.now() - OLD
    for number in range(5):
        await run(
            "INSERT INTO cron_runs (name, due_at, worker, claimed_at, leased_until) VALUES ($1, $2, '', $2, $2)",
            (f"job {number}", old),
        )
    async with db.transaction() as conn:
        await conn.exec_driver_sql("SELECT 1 FROM cron_runs WHERE name = 'job 0' FOR UPDATE")
        assert [(await delete())["cron_runs"] for _ in range(3)] == [3, 1, 0]
    assert (await delete())["cron_runs"] == 1
