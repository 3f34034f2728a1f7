"""What is over is deleted in small batches; what a balance or an open case depends on stays, and so do keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from sqlalchemy.exc import ProgrammingError
from structlog.testing import capture_logs

from cambist.secrets import SecretsBox
from cambist.services import retention
from cambist.services.accounting import usage
from cambist.services.addresses.macs import AddressMacs
from cambist.settings import RetentionSettings
from cambist.testing.memory import MemoryFamily, memory_chain_info
from tests.support.account_rows import insert_account, insert_deposit
from tests.support.members import a_member
from tests.support.webhooks import make_project

SETTINGS = RetentionSettings()
OLD = timedelta(days=500)
DELIVERY = """
told AS (
    INSERT INTO webhook_events (event_id, project_pk, event, resource, resource_id, body, created_at)
    SELECT $1, id, 'payment.paid', 'payment', 'pay', '', $4 FROM projects RETURNING *
), delivery AS (
    INSERT INTO webhook_deliveries (delivery_id, project_pk, event_pk, event, resource_id, status, due_at, created_at)
    SELECT event_id, project_pk, id, event, resource_id, $2, $3, created_at FROM told RETURNING id
)
"""


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
        ("paused", OLD, OLD),
    ]):  # fmt: skip
        await run(
            f"WITH {DELIVERY}, done AS (SELECT id FROM delivery)"  # noqa: S608  no values
            " INSERT INTO webhook_attempts (delivery_pk, number, attempted_at, duration_ms)"
            " SELECT id, 1, $4, 1 FROM done",
            (f"dlv_{number}", status, now - due, now - made),
        )
    assert (await delete())["webhook_deliveries"] == 4
    assert await run("SELECT delivery_id FROM webhook_deliveries ORDER BY 1") == ["dlv_3", "dlv_4", "dlv_5"]
    assert await run("SELECT count(*) FROM webhook_attempts") == [3]
    assert await run("SELECT event_id FROM webhook_events ORDER BY 1") == ["dlv_3", "dlv_4", "dlv_5"]


async def test_an_event_stays_for_30_days_at_least_whether_it_was_told_or_not(run, delete, clock, merchant):
    for days in (29, 31):
        await run(
            "INSERT INTO webhook_events (event_id, project_pk, event, resource, resource_id, body, created_at)"
            " SELECT $1, id, 'payment.paid', 'payment', 'pay', '', $2 FROM projects",
            (f"evt_{days}", clock.now() - timedelta(days=days)),
        )
    assert (await delete())["webhook_events"] == 1
    assert await run("SELECT event_id FROM webhook_events") == ["evt_29"]
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"webhooks_days": 29}, RetentionSettings)


async def test_what_trackers_were_told_goes_when_nothing_needs_it_any_more(run, delete, clock, merchant):
    old, young = clock.now() - timedelta(days=31), clock.now() - timedelta(days=29)
    [tracker] = await run(
        "INSERT INTO trackers (webhook_id, project_pk, mode, chain, scope, url, name, start_block, max_addresses,"
        " token_hash, token_encrypted, secret_encrypted)"
        " SELECT 'trk', id, 'live', 'memory', 0, 'https://shop.example', 'Mine', 0, 1, '', '', '' FROM projects"
        " RETURNING id"
    )
    stages = {}
    for name, status, moment in [
        ("over", "confirmed", old), ("gone", "orphaned", old), ("open", "detected", old), ("young", "confirmed", young),
        ("waits", "confirmed", old), ("heard", "confirmed", old), ("deferred", "confirmed", old),
        ("untold", "confirmed", old),
    ]:  # fmt: skip
        [movement] = await run(
            "INSERT INTO movements (chain, scope, tx_id, position, recipient, token, decimals, units, height,"
            " block_hash, mined_at, first_mined_at, required_confirmations, status, stored_at)"
            " VALUES ('memory', 0, $1, '0', 'a', 'USDX', 6, 1, 1, '0x', $3, $3, 3, $2, $3) RETURNING id",
            (name, status, moment),
        )
        [stages[name]] = await run(
            "INSERT INTO movement_stages (chain, scope, movement_pk, stage, head, at)"
            " VALUES ('memory', 0, $1, 'detected', 1, $2) RETURNING id",
            (movement, moment),
        )
        if name not in {"deferred", "untold"}:
            await run(
                "INSERT INTO tracker_transactions (transaction_id, tracker_pk, movement_pk, direction, address,"
                " created_at) VALUES ($1, $2, $3, 'in', 'a', $4)",
                (name, tracker, movement, moment),
            )
    # Both deliveries stay, the second as it was sent again: nothing is left to be sent of that one.
    for name, status, due_at in [("waits", "pending", old), ("heard", "delivered", young)]:
        await run(
            "INSERT INTO webhook_deliveries (delivery_id, project_pk, tracker_pk, event, resource_id, url, body,"
            " status, due_at, created_at) SELECT 'evt' || substr($1, 4) || 'd1', project_pk, id,"
            " 'transaction.detected', $1, url, '{}', $2, $3, $4 FROM trackers",
            (name, status, due_at, old),
        )
    await run(
        "INSERT INTO deferred_stages (stage_pk, chain, scope, movement_pk, due_at)"
        " SELECT id, chain, scope, movement_pk, at FROM movement_stages WHERE id = $1",
        (stages["deferred"],),
    )
    await run("INSERT INTO tracker_cursors (chain, scope, stage_pk) VALUES ('memory', 0, $1)", (stages["deferred"],))
    for _ in range(2):
        await delete()
    assert await run("SELECT resource_id FROM webhook_deliveries ORDER BY id") == ["waits", "heard"]
    left = "SELECT transaction_id FROM tracker_transactions ORDER BY id"
    assert await run(left) == ["open", "young", "waits"]
    assert await run("SELECT id FROM movement_stages ORDER BY id") == [
        stages[name] for name in ("young", "deferred", "untold")
    ]
    kept = ["open", "young", "waits", "deferred", "untold"]
    assert await run("SELECT tx_id FROM movements ORDER BY id") == kept
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"trackers_days": 29}, RetentionSettings)
    await delete(RetentionSettings(webhooks_days=30, trackers_days=60))
    assert await run(left) == ["open", "young", "waits"]


async def test_an_endpoint_that_was_deleted_goes_after_its_deliveries(run, delete, clock, merchant):
    now = clock.now()
    for number, (deleted, with_delivery) in enumerate([(OLD, False), (OLD, True), (timedelta(days=1), False)]):
        await run(
            "INSERT INTO webhook_endpoints (endpoint_id, project_pk, url, secret_rotated_at, deleted_at)"
            " SELECT $1, id, 'https://shop.example', $2, $2 FROM projects",
            (f"whe_{number}", now - deleted),
        )
        if with_delivery:
            await run(f"WITH {DELIVERY} SELECT 1", ("dlv_1", "pending", now, now - OLD))
            await run("UPDATE webhook_deliveries SET endpoint_pk = (SELECT max(id) FROM webhook_endpoints)")
    await delete()
    assert await run("SELECT endpoint_id FROM webhook_endpoints ORDER BY 1") == ["whe_1", "whe_2"]


async def test_sessions_and_resets_go_some_time_after_their_end(db, run, delete, clock):
    async with db.transaction() as conn:
        member = await a_member(conn, "ada", "ada@shop.example")
    for days in (8, 6, -1):
        ended = clock.now() - timedelta(days=days)
        await run(
            "INSERT INTO sessions (session_id, member_pk, refresh_hash, expires_at) VALUES ($1, $2, $3, $4)",
            (f"ses_{days}", member, str(days).encode(), ended),
        )
        await run(
            "INSERT INTO password_resets (token_hash, member_pk, expires_at) VALUES ($1, $2, $3)",
            (str(days).encode(), member, ended),
        )
    deleted = await delete()
    assert (deleted["sessions"], deleted["password_resets"]) == (1, 1)
    assert set(await run("SELECT session_id FROM sessions")) == {"ses_6", "ses_-1"}


async def test_sessions_and_links_of_operators_go_likewise(run, delete, clock):
    await run(
        "INSERT INTO operators (operator_id, email, name, role, password_hash) VALUES ('o', 'o', 'o', 'owner', 'x')"
    )
    for days in (8, 6, -1):
        ended = clock.now() - timedelta(days=days)
        await run(
            "INSERT INTO operator_sessions (session_id, operator_pk, refresh_hash, expires_at)"
            " SELECT $1, id, $2, $3 FROM operators",
            (f"ses_{days}", str(days).encode(), ended),
        )
        await run(
            "INSERT INTO operator_links (token_hash, operator_pk, expires_at) SELECT $1, id, $2 FROM operators",
            (str(days).encode(), ended),
        )
    deleted = await delete()
    assert (deleted["operator_sessions"], deleted["operator_links"]) == (1, 1)
    assert set(await run("SELECT session_id FROM operator_sessions")) == {"ses_6", "ses_-1"}


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


@pytest.mark.parametrize("status, step, stays", [("pending", "queued", True), ("failed", "ended", False)])
async def test_usage_of_an_exchange_stays_as_long_as_it_may_be_given_back(
    run, delete, clock, used, merchant, status, step, stays
):
    await run(
        "INSERT INTO addresses (mode, family, address, purpose, merchant_pk, account_index, change, address_index)"
        " VALUES ('live', 'memory', 'here', 'wallet', $1, 1, 1, 0)",
        (merchant,),
    )
    await run(
        "INSERT INTO exchanges (txn_id, kind, made_for, project_pk, merchant_pk, mode, scope, provider, source_chain,"
        " source_token, source_decimals, source_pk, units, dest_chain, dest_token, dest_decimals, recipient,"
        " quoted_units, units_min, slippage_bps, status, step, due_at, give_up_at, created_at, updated_at)"
        " SELECT 'xch_1', 'swap', 'payout', p.id, $1, 'live', 0, 'fair', 'memory', 'MEM', 18, a.id, 5, 'memory',"
        " 'USDX', 6, 'there', 2, 1, 100, $2, $3, CASE WHEN $3 = 'queued' THEN $4::timestamptz END, $4, $4, $4"
        " FROM projects p, addresses a WHERE a.address = 'here'",
        (merchant, status, step, clock.now() - OLD),
    )
    await used("swap", "xch_1")
    await delete()
    assert ("xch_1" in await references(run)) is stays


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
    await run(f"WITH {DELIVERY} SELECT 1", ("dlv_1", "pending", clock.now() - OLD, clock.now() - OLD))
    await used("webhook_delivery", "dlv_1")
    await used("webhook_delivery", "dlv_2")
    await delete()
    assert await references(run) == {"dlv_1"}


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


async def test_nothing_that_an_accounts_balance_depends_on_ever_goes(db, run, delete, clock, merchant):
    (project,) = await run("SELECT id FROM projects")
    macs, now = AddressMacs(SecretsBox([bytes(32)], bytes)), clock.now()
    public_id, _ = await insert_account(db, macs, MemoryFamily(), project_pk=project, chains=["memory"], now=now - OLD)
    token = memory_chain_info().native
    for number, status in enumerate(("confirmed", "orphaned", "detected")):
        await insert_deposit(db, public_id, token, 5, height=1, mined_at=now - OLD, tx_id=f"tx{number}", status=status)
    await run("UPDATE deposits SET detected_at = $1, confirmed_at = $1 WHERE status = 'confirmed'", (now - OLD,))
    await run("UPDATE accounts SET created_at = $1, updated_at = $1, is_active = false", (now - OLD,))
    tables = ("accounts", "account_chains", "addresses", "deposits")
    rows = {table: f"SELECT to_jsonb(t)::text FROM {table} t ORDER BY 1" for table in tables}  # noqa: S608  constants
    before = {table: await run(statement) for table, statement in rows.items()}
    clock.advance(10 * 365 * 86_400)
    await delete()
    assert {table: await run(statement) for table, statement in rows.items()} == before
    assert {table: len(found) for table, found in before.items()} == dict(zip(tables, (1, 1, 1, 3), strict=True))
