"""What a clock that was ahead has put off is due once it is right again; what waits its time goes on waiting."""

from __future__ import annotations

import pytest

from cambist.services import due_times
from cambist.settings import WebhookSettings

# $1 tells rows apart, $2 is how long each waits, and $3 when it was written; both as seconds from now on.
ROWS = {
    "outbound_intents": """
        INSERT INTO outbound_intents (reference, kind, mode, chain, scope, source_address_pk, to_address, token,
            decimals, units, due_at, created_at, updated_at)
        SELECT 'payout:' || $1::int, 'payout', CASE $1::int WHEN 3 THEN 'sandbox' ELSE 'live' END, 'memory',
            CASE $1::int WHEN 3 THEN 1 ELSE 0 END, 1, 'mem1to', 'MEM', 18, 1, due, written, written
    """,
    "exchanges": """
        INSERT INTO exchanges (txn_id, kind, made_for, project_pk, merchant_pk, mode, scope, provider, source_chain,
            source_token, source_decimals, source_pk, units, dest_chain, dest_token, dest_decimals, recipient,
            quoted_units, units_min, slippage_bps, due_at, give_up_at, created_at, updated_at)
        SELECT 'xch_' || $1::int, 'swap', 'manual', 1, 1, 'live', 0, 'fair', 'memory', 'MEM', 18, 1, 1, 'memory',
            'USDX', 6, 'mem1to', 1, 1, 100, due, written, written, written
    """,
    "webhook_deliveries": """
        INSERT INTO webhook_deliveries (delivery_id, project_pk, event_pk, event, resource_id, due_at, created_at)
        SELECT 'evt_' || $1::int, 1, $1, 'payment.paid', 'pay', due, written
    """,
    "deferred_stages": """
        INSERT INTO deferred_stages (stage_pk, chain, scope, movement_pk, due_at)
        SELECT $1, 'memory', 0, extract(epoch FROM written - now())::bigint, due
    """,
    "tracker_histories": """
        INSERT INTO tracker_histories (tracker_pk, chain, scope, due_at, begun_at)
        SELECT $1, 'memory', 0, due, least(written, now())
    """,
    "jobs": """
        INSERT INTO jobs (job_id, kind, arguments, requested_by, due_at, created_at)
        SELECT 'job_' || $1::int, 'reconcile', '{}', 'operator', due, written
    """,
}
TIMES = """
    FROM (SELECT now() + $2::float8 * interval '1 second' AS due, now() + $3::float8 * interval '1 second' AS written) t
"""
HOURS_S = 5 * 3_600
WAITS_ITS_TIME_S = {
    "outbound_intents": 2 * 86_400, "exchanges": 600, "webhook_deliveries": 20, "deferred_stages": 3_600,
    "tracker_histories": 600, "jobs": 600,
}  # fmt: skip


async def write(db, statement, given=None):
    """Write a row. What it refers to does not matter here, and need not be there."""
    async with db.transaction() as conn:
        await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        await conn.exec_driver_sql(statement, given)


@pytest.fixture
def store(db):
    async def store(table, number, due_s, written_s=0):
        await write(db, ROWS[table] + TIMES, (number, due_s, written_s))

    return store


@pytest.fixture
def due(db):
    async def due(table):
        async with db.autocommit() as conn:
            found = await conn.exec_driver_sql(f"SELECT count(*) FROM {table} WHERE due_at <= now()")  # noqa: S608  one of ours
            return found.scalar_one()

    return due


@pytest.mark.parametrize("table", ROWS)
async def test_what_a_clock_that_was_ahead_has_put_off_is_due_once_it_is_right_again(db, store, due, table):
    await store(table, 1, WAITS_ITS_TIME_S[table])
    await store(table, 2, HOURS_S, HOURS_S)
    await store(table, 3, 365 * 86_400, 365 * 86_400)
    assert await due(table) == 0
    changed = await due_times.bring_back(db, WebhookSettings())
    assert {name: count for name, count in changed.items() if count} == {table: 2}
    assert await due(table) == 2
    assert not any((await due_times.bring_back(db, WebhookSettings())).values())


async def test_a_transaction_that_a_clock_ahead_has_sent_is_sent_again_and_replaced_in_its_time(db):
    await write(
        db,
        "INSERT INTO outbound_txs (slot_pk, chain, scope, tx_id, raw, fee_limit, fee_price, fee_tip, fee_extra,"
        " state, created_at, sent_at, tried_at) SELECT n, 'memory', 0, 'tx' || n, '', 1, 1, 0, 0, state, made,"
        " sent, tried FROM (VALUES (1, 'sent', now(), now(), now()),"
        " (2, 'sent', now(), now() + interval '1 year', now() + interval '1 year'),"
        " (3, 'stored', now(), NULL, now() + interval '1 year'),"
        " (4, 'stored', now() + interval '1 year', NULL, NULL)) AS t (n, state, made, sent, tried)",
    )
    assert (await due_times.bring_back(db, WebhookSettings()))["outbound_txs"] == 3
    async with db.autocommit() as conn:
        found = await conn.exec_driver_sql(
            "SELECT tried_at IS NULL, sent_at <= now(), created_at <= now() FROM outbound_txs ORDER BY id"
        )
        of_all = [tuple(row) for row in found]
    # What nobody has sent yet was not sent by this, either.
    assert of_all == [(False, True, True), (True, True, True), (True, None, True), (True, None, True)]


async def test_an_exchange_that_a_clock_ahead_has_only_claimed_is_looked_at_again(db, store, due):
    await store("exchanges", 1, HOURS_S)
    assert (await due_times.bring_back(db, WebhookSettings()))["exchanges"] == 1
    assert await due("exchanges") == 1


async def test_a_past_that_a_clock_ahead_has_begun_to_read_is_begun_again(db):
    await write(
        db,
        "INSERT INTO tracker_histories (tracker_pk, chain, scope, begun_at)"
        " VALUES (1, 'memory', 0, now() + interval '1 year'), (2, 'memory', 0, NULL)",
    )
    assert (await due_times.bring_back(db, WebhookSettings()))["tracker_histories"] == 1
    async with db.autocommit() as conn:
        found = await conn.exec_driver_sql(
            "SELECT begun_at <= now(), due_at FROM tracker_histories ORDER BY tracker_pk"
        )
        assert [tuple(row) for row in found] == [(True, None), (None, None)]


async def test_a_job_that_died_with_a_worker_whose_clock_was_ahead_is_taken_over(db, store):
    await store("jobs", 1, 0)
    async with db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE jobs SET state = 'running', leased_until = now() + interval '1 year'")
    assert (await due_times.bring_back(db, WebhookSettings()))["jobs"] == 1
    assert (await due_times.bring_back(db, WebhookSettings()))["jobs"] == 0
    async with db.autocommit() as conn:
        found = await conn.exec_driver_sql("SELECT leased_until - now() < interval '2 minutes' FROM jobs")
        assert found.scalar_one()


async def test_what_a_merchant_has_had_converted_while_the_clock_was_ahead_is_looked_at(db):
    await write(
        db,
        "INSERT INTO coin_settings (merchant_pk, mode, chain, symbol, auto_convert_enabled,"
        " auto_convert_dest_chain, auto_convert_dest_token, auto_convert_project_pk, auto_convert_due_at,"
        " updated_at) SELECT n, 'live', 'memory', 'MEM', true, 'memory', 'USDX', 1,"
        " now() + n * interval '30 minutes', now() FROM generate_series(1, 2) AS n",
    )
    assert (await due_times.bring_back(db, WebhookSettings()))["coin_settings"] == 1
    assert (await due_times.bring_back(db, WebhookSettings()))["coin_settings"] == 0


async def test_webhooks_whose_retries_are_days_apart_wait_for_them(db, store):
    await store("webhook_deliveries", 1, 2 * 86_400)
    rare = WebhookSettings(retries=7, base_delay_ms=3_600_000)
    assert not any((await due_times.bring_back(db, rare)).values())
