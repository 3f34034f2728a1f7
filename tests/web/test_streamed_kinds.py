"""What streams tell of each kind of thing: that a row of it changed, and nothing that no page shows."""

from __future__ import annotations

import pytest

from cambist_web.live import hub
from cambist_web.live.messages import KINDS
from tests.support.streams import served
from tests.support.web import ADMIN_KEY

ADMIN = {"X-Admin-Key": ADMIN_KEY}
STREAM = "/api/admin/stream"


class Row:
    """Something to change, and what is told of it: its id, and its status if that is told."""

    def __init__(self, table, change, told, which="true"):
        one = f"SELECT ctid FROM {table} WHERE {which} LIMIT 1"  # noqa: S608  the test's own words
        self.statement = f"UPDATE {table} SET {change} WHERE ctid = ({one}) RETURNING {told}"  # noqa: S608


AGAIN, LATER = "incarnation = incarnation + 1", "interval '1 second'"
WAITS, TRIED = "waits_for = 'a test'", "status = 'pending', attempts = attempts + 1"
OF_SLOT = "(SELECT intent_id FROM outbound_intents WHERE id = intent_pk), NULL"
CHANGED = {
    "payment": [Row("payments", f"expires_at = expires_at + {LATER}", "payment_id, status")],
    "deposit": [Row("deposits", AGAIN, "deposit_id, status", "account_pk IS NULL")],
    "account_deposit": [Row("deposits", AGAIN, "deposit_id, status", "account_pk IS NOT NULL")],
    "resolution": [Row("deposits", "resolution = 'accepted'", "deposit_id, resolution", "payment_pk IS NOT NULL")],
    "payout": [Row("payouts", WAITS, "payout_id, status", "kind = 'payout'")],
    "refund": [Row("payouts", WAITS, "payout_id, status", "kind = 'refund'")],
    "withdrawal": [Row("payouts", WAITS, "payout_id, status", "kind = 'withdrawal'")],
    "exchange": [Row("exchanges", "is_closed = NOT is_closed", "txn_id, status")],
    "tracker": [Row("trackers", "is_active = false", "webhook_id, 'inactive'")],
    "delivery": [Row("webhook_deliveries", TRIED, "delivery_id, 'failing'")],
    "outbound": [
        Row("outbound_intents", "reason = 'a test'", "intent_id, state"),
        Row("outbound_intents", "settle_asked_at = now()", "intent_id, state"),
        Row("outbound_intents", "settle_refusal = 'a test'", "intent_id, state"),
        Row("outbound_intents", "cancel_asked_at = now(), cancel_asked_by = 'operator'", "intent_id, state"),
        Row("outbound_slots", "raise_asked_at = now()", OF_SLOT),
        Row("outbound_slots", "raise_asked_at = NULL", OF_SLOT, "raise_asked_at IS NOT NULL"),
        Row("outbound_slots", "raise_refusal = 'a test'", OF_SLOT),
    ],
    "chain": [
        Row("chain_cursors", "head = head + 1", "chain, NULL", "scope = 0"),
        Row("chain_states", "error = 'down', failing_since = now()", "chain, 'failing'"),
        Row("chain_states", "setup_problem = 'not an address'", "chain, NULL"),
        Row("chain_states", "error = NULL, failing_since = NULL", "chain, 'recovered'"),
        Row("chain_endpoints", "state = 'in_use'", "chain, NULL"),
        Row("chain_endpoints", "healthy = false", "chain, NULL"),
        Row("chain_endpoints", "set_aside = 'it lags'", "chain, NULL"),
        Row("chain_endpoints", "last_error = 'down'", "chain, NULL"),
        Row("chain_pauses", "reason = 'longer'", "chain, 'paused'"),
    ],
    "token": [Row("chain_tokens", "state = 'refused', reason = 'no contract'", "token_id, 'refused'")],
    "gas_station": [Row("gas_stations", "is_low = true", "chain, 'low'")],
    "job": [Row("jobs", "error = 'a test'", "job_id, state")],
    "cron": [Row("cron_runs", "error = 'a test'", "name, 'failed'")],
    "merchant": [Row("merchants", "name = 'Another'", "merchant_id, NULL")],
}
UNSEEN = [
    Row("chain_states", f"seen_at = seen_at + {LATER}", "chain"),
    Row("chain_endpoints", "calls = 9, latency_ms = 3, head = 8, seen_at = now(), calls_per_minute = 1", "chain"),
    Row("chain_tokens", "claimed_until = now()", "chain"),
    Row("outbound_intents", f"due_at = due_at + {LATER}", "chain"),
]
WRITTEN = (
    "INSERT INTO chain_states (chain, quorum, seen_at) VALUES ('memory', 1, now())",
    """INSERT INTO chain_cursors (chain, scope, height, hash, head, updated_at)
        VALUES ('memory', 0, 1, 'a', 1, now()) ON CONFLICT DO NOTHING""",
    """INSERT INTO chain_pauses (chain, what, reason, paused_by, paused_at)
        VALUES ('idle', 'sending', 'a test', 'admin key', now())""",
    """INSERT INTO gas_stations (mode, chain, address, symbol, decimals, balance)
        VALUES ('live', 'idle', 'a', 'MEM', 18, 1) ON CONFLICT DO NOTHING""",
    """INSERT INTO cron_runs (name, due_at, worker, claimed_at, leased_until)
        VALUES ('prices', now(), 'w', now(), now())""",
)


@pytest.fixture
async def everything(gateway, two_merchants):
    """Have a row of each kind. What no request makes is written as a worker would."""
    deposit = {"accountId": two_merchants.ids["account_id"], "token": "USDX", "amount": "1", "confirmations": 3}
    await two_merchants.post("/api/sandbox/deposit", deposit)
    async with gateway.db.transaction() as conn:
        for statement in WRITTEN:
            await conn.exec_driver_sql(statement)
    return two_merchants


async def test_a_changed_row_of_every_kind_is_told(gateway, everything, monkeypatch):
    monkeypatch.setattr(hub, "CHAIN_EVERY_S", 0.0)
    async with served(gateway) as here, here.stream(STREAM, ADMIN) as page:
        for kind, rows in CHANGED.items():
            for row in rows:
                page.changes.clear()
                async with gateway.db.transaction() as conn:
                    found = (await conn.exec_driver_sql(row.statement)).all()
                assert found, row.statement
                ((object_id, status),) = found
                said = {} if status is None else {"status": status}
                await page.told_of(kind=kind, id=object_id, **said)
    # Balances are told of with what moves them, which has a test of its own.
    assert CHANGED.keys() == KINDS - {"balance"}


async def test_what_no_page_shows_is_told_to_nobody(gateway, everything):
    async with gateway.db.transaction() as conn:
        before = (await conn.exec_driver_sql("SELECT count(*) FROM changes")).scalar_one()
        for row in UNSEEN:
            assert (await conn.exec_driver_sql(row.statement)).all(), row.statement
        assert (await conn.exec_driver_sql("SELECT count(*) FROM changes")).scalar_one() == before


async def test_a_chain_that_breaks_is_told_at_once_and_its_progress_a_little_later(gateway, everything, monkeypatch):
    monkeypatch.setattr(hub, "CHAIN_EVERY_S", 3.0)
    async with served(gateway) as here, here.stream(f"{STREAM}?kinds=chain", ADMIN) as page:

        async def change(what):
            async with gateway.db.transaction() as conn:
                await conn.exec_driver_sql(f"UPDATE {what} WHERE chain = 'memory'")

        await change("chain_cursors SET head = head + 1")
        await page.told_of(kind="chain", id="memory")
        page.changes.clear()
        # Nothing changes behind these two: whoever would leave the first out would never tell it.
        await change("chain_endpoints SET set_aside = 'it lags'")
        await change("chain_states SET error = 'down', failing_since = now()")
        await page.told_of(kind="chain", id="memory", status="failing")
        assert [one.get("status") for one in page.changes] == ["failing"]
        page.changes.clear()
        assert "status" not in await page.told_of(kind="chain", id="memory")
