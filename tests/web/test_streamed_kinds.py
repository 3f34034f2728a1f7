"""What streams tell of each kind of thing: that a row of it changed, and nothing that no page shows."""

from __future__ import annotations

import pytest

from cambist_web.live import hub
from cambist_web.live.messages import KINDS, OF_MERCHANTS, SENT_FOR
from tests.support.access import MIRRORED, decided
from tests.support.operators import Officer
from tests.support.streams import served
from tests.support.team import Teammate
from tests.support.uncollected_rows import insert_uncollected
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
NO_PHONE = "secret_encrypted = NULL, enabled_at = NULL"
OF_OPERATOR = "(SELECT operator_id FROM operators WHERE id = operator_pk), NULL"
OF_MEMBER = "(SELECT member_id FROM members WHERE id = member_pk), (SELECT role FROM members WHERE id = member_pk)"
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
    "signer": [
        Row("signer_reports", "report = jsonb_set(report, '{questions}', '[{}]')", "'', 'asking'"),
        Row("signer_reports", "report = jsonb_set(report, '{answers_open}', 'true')", "'', 'asking'"),
        Row("signer_answers", "outcome = 'approved', code = NULL, answered_at = now()", "answer_id, 'approved'"),
    ],
    "price_source": [
        Row("price_source_states", "verdict = 'away'", "source, 'away'"),
        Row("price_source_states", "symbols = '{USDX}'", "source, 'away'"),
        Row("price_sources_set_aside", "reason = 'another'", "source, 'set_aside'"),
    ],
    "price": [Row("prices_missing", "reason = 'another'", "symbol, 'missing'")],
    "uncollected": [
        Row("uncollected_funds", "asked_at = now()", "uncollected_id, 'asked'"),
        Row("uncollected_funds", "hindrance = 'no_gas_station', hindered_at = now()", "uncollected_id, 'asked'"),
    ],
    "setting": [Row("platform_settings", "version = version + 1", "'', NULL")],
    "plan": [Row("plans", "archived_at = now(), is_default = false", "plan_id, 'archived'")],
    "operator": [
        Row("operators", "name = 'Another'", "operator_id, NULL"),
        Row("operator_two_factors", NO_PHONE, OF_OPERATOR, "secret_encrypted IS NOT NULL"),
        Row("operators", "disabled_at = now()", "operator_id, 'disabled'"),
    ],
    "member": [
        Row("members", "name = 'Another'", "member_id, role"),
        Row("two_factor_states", NO_PHONE, OF_MEMBER, "secret_encrypted IS NOT NULL"),
    ],
    "invitation": [Row("member_invitations", "role = 'viewer'", "invitation_id, 'open'")],
}
TOLD = {
    "/api/account": {"account_deposit"},
    "/api/account/{accountId}/balances": {"account_deposit"},
    "/api/account/{accountId}/deposits": {"account_deposit"},
    "/api/payment": {"payment"},
    "/api/payment/refunds/list": {"refund"},
    "/api/merchant/resolutions": {"resolution"},
    "/api/merchant/swap-bridge/history": {"exchange"},
    "/api/merchant/wallet": {"balance"},
    "/api/merchant/wallet/balance": {"balance"},
    "/api/merchant/wallet/coins": {"balance"},
    "/api/merchant/wallet/collections": {"collection"},
    "/api/merchant/wallet/payouts": {"payout"},
    "/api/merchant/wallet/transactions": {"balance"},
    "/api/events": {"delivery"},
    "/deliveries": {"delivery"},
    "/trackers": {"tracker"},
    "/wallet/worth": {"balance"},
    "/api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}/deliveries": {"delivery"},
    "/api/merchant/webhooks": {"tracker"},
    "/api/dashboard/withdrawals": {"withdrawal"},
    "/api/dashboard/overview": OF_MERCHANTS - {"invitation", "member", "tracker", "balance", "collection"},
    "/api/dashboard/members": {"member"},
    "/api/dashboard/invitations": {"invitation"},
    "/api/admin/chains": {"chain"},
    "/api/admin/jobs": {"job"},
    "/api/admin/jobs/recurring": {"cron"},
    "/api/admin/reconcile": {"job"},
    "/api/admin/reconcile/{jobId}/differences": {"job"},
    "/api/admin/webhooks/deliveries": {"delivery"},
    "/api/admin/webhooks/failing": {"delivery"},
    "/api/admin/resolutions": {"resolution"},
    "/api/admin/collections": {"outbound"},
    "/api/admin/collections/uncollected": {"uncollected"},
    "/api/admin/collections/uncollected/sums": {"uncollected"},
    "/api/admin/overview": {"payment", "chain", "price", "price_source", "signer", "gas_station", "job", "cron"},
    "/api/admin/payments": {"payment"},
    "/api/admin/deposits": {"deposit", "account_deposit"},
    "/api/admin/payouts": {"payout"},
    "/api/admin/refunds": {"refund"},
    "/api/admin/withdrawals": {"withdrawal"},
    "/api/admin/exchanges": {"exchange"},
    "/api/admin/accounts": {"account_deposit"},
    "/api/admin/trackers": {"tracker"},
    "/api/admin/gas-stations": {"gas_station"},
    "/api/admin/outbound": {"outbound"},
    "/api/admin/merchants": {"merchant"},
    "/api/admin/plans": {"plan"},
    "/api/admin/settings": {"setting"},
    "/api/admin/tokens": {"token"},
    "/api/admin/prices": {"price", "price_source"},
    "/api/admin/signer": {"signer"},
    "/api/admin/stakes": {"outbound", "gas_station"},
    "/api/admin/operators": {"operator"},
}
"""Which kinds tell that a list of the API has changed."""
UNTOLD = {
    "/api/admin/audit": "it grows with every act, and is read backwards by whoever looks something up",
    "/api/admin/plugins": "it changes with a start",
    "/api/admin/search": "an answer to one question",
    "/search": "an answer to one question",
    "/api/dashboard/audit": "as the operators'",
    "/api/dashboard/two-factor": "one's own, changed by oneself",
    "/api/auth/sessions": "one's own, and noted about once a minute",
    "/api/merchant/plan": "an operator changes it, seldom",
    "/api/merchant/usage": "it grows with every request",
    "/api/merchant/swap-bridge/pairs": "operators and plugins change them, seldom",
    "/api/merchant/swap-bridge/platform-fees": "an operator changes them, seldom",
    "/api/merchant/wallet/addresses": "they are made once for each chain",
    "/api/payment/{paymentId}/receipt-links": "worked out of the payment",
    "/api/merchant/wallet/transactions.csv": "a file",
    "/api/admin/jobs/{jobId}/output": "a file",
    "/api/merchant/projects": "settings, changed by developers, seldom",
    "/api/merchant/projects/{projectId}/api-keys": "settings, changed by developers, seldom",
    "/api/merchant/projects/{projectId}/webhook-endpoints": "settings, changed by developers, seldom",
    "/api/dashboard/approved-addresses": "settings, changed with a code, seldom",
    "/api/dashboard/members/me": "told with the member",
    "/api/dashboard/stream": "the stream itself",
    "/api/admin/stream": "the stream itself",
}
"""Lists of which no stream tells, and why."""
UNSEEN = [
    Row("chain_states", f"seen_at = seen_at + {LATER}", "chain"),
    Row("chain_endpoints", "calls = 9, latency_ms = 3, head = 8, seen_at = now(), calls_per_minute = 1", "chain"),
    Row("chain_tokens", "claimed_until = now()", "chain"),
    Row("outbound_intents", f"due_at = due_at + {LATER}", "chain"),
    Row("signer_reports", f"reported_at = reported_at + {LATER}", "id"),
    Row("price_source_states", f"seen_at = seen_at + {LATER}", "source"),
    Row("operators", "password_hash = 'another'", "operator_id"),
    Row("members", "password_hash = 'another'", "member_id"),
    Row("two_factor_states", "last_step = last_step + 1", "member_pk"),
]
WRITTEN = (
    "INSERT INTO chain_states (chain, quorum, seen_at) VALUES ('memory', 1, now())",
    """INSERT INTO chain_cursors (chain, scope, height, hash, head, updated_at)
        VALUES ('memory', 0, 1, 'a', 1, now()) ON CONFLICT DO NOTHING""",
    """INSERT INTO chain_pauses (chain, what, reason, paused_by, paused_at)
        VALUES ('idle', 'sending', 'a test', 'admin key', now())""",
    """INSERT INTO gas_stations (mode, chain, address, symbol, decimals, balance)
        VALUES ('live', 'idle', 'a', 'MEM', 18, 1) ON CONFLICT DO NOTHING""",
    """INSERT INTO signer_reports (id, report, reported_at)
        VALUES (1, '{"questions": [], "answers_open": false}', now())""",
    """INSERT INTO signer_answers (answer_id, question_pk, question, verdict, code, asked_by, asked_at)
        VALUES ('ans_1', 1, 'May I?', 'approve', '123', 'op_1', now())""",
    """INSERT INTO price_source_states (source, verdict, symbols, since, seen_at)
        VALUES ('static', 'used', '{}', now(), now())""",
    """INSERT INTO price_sources_set_aside (source, reason, set_aside_by, set_aside_at)
        VALUES ('static', 'a test', 'op_1', now())""",
    "INSERT INTO prices_missing (symbol, reason, since) VALUES ('MEM', 'no source has a price', now())",
    """INSERT INTO platform_settings (id, settings, updated_at) VALUES (1, '{}', now())
        ON CONFLICT (id) DO UPDATE SET updated_at = now()""",
    """INSERT INTO plans (plan_id, name, has_tracker, webhooks_max, addresses_max)
        VALUES ('pln_1', 'Small', true, 1, 1)""",
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
    await insert_uncollected(gateway.db, two_merchants.ada.merchant_id)
    await Officer(two_merchants.client).sign_in("support")
    await Teammate(two_merchants.client, two_merchants.ada).sign_in("owner")
    invited = {"email": "eve@shop.example", "name": "Eve", "role": "finance"}
    await two_merchants.ada.step_up()
    await two_merchants.ada.ask("POST", "/api/dashboard/invitations", invited)
    return two_merchants


@pytest.mark.slow
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
                said = {"id": object_id, "status": status}
                await page.told_of(kind=kind, **{name: value for name, value in said.items() if value})
    # Balances and collections are told of with what changes them, which has tests of its own.
    assert CHANGED.keys() == KINDS - {"balance", "collection"}


async def test_a_merchant_hears_of_what_is_sent_for_it_by_what_it_is_for(gateway, everything):
    of_merchant = "merchant_pk = (SELECT id FROM merchants WHERE merchant_id = $1)"
    sent = f"UPDATE outbound_intents SET reason = 'a test' WHERE {of_merchant} RETURNING kind, mode"  # noqa: S608
    renamed = f"UPDATE members SET name = 'Another' WHERE {of_merchant}"  # noqa: S608  the test's own words
    ada, bob, stream = everything.ada, everything.bob, "/api/dashboard/stream"
    async with (
        served(gateway) as here,
        here.stream(stream, ada.bearer) as page,
        here.stream(stream, bob.bearer) as other,
    ):
        async with gateway.db.transaction() as conn:
            rows = (await conn.exec_driver_sql(sent, (ada.merchant_id,))).all()
            for one in (ada, bob):
                await conn.exec_driver_sql(renamed, (one.merchant_id,))
        expected = {(SENT_FOR[kind], mode) for kind, mode in rows if kind in SENT_FOR}
        assert {"payout", "refund"} <= {kind for kind, _ in expected}
        for stream_of in (page, other):
            await stream_of.told_of(kind="member")
        told = [change for change in page.changes if change["kind"] != "member"]
        assert {(change["kind"], change["mode"]) for change in told} == expected
        assert all("id" not in change for change in told)
        assert {change["kind"] for change in other.changes} == {"member"}


async def test_what_is_sent_for_a_project_is_noted_with_the_project(gateway, everything):
    linked = """
        SELECT i.intent_id, i.kind, o.project_pk FROM outbound_intents i JOIN (
            SELECT intent_pk, project_pk FROM payouts UNION ALL SELECT intent_pk, project_pk FROM exchanges
        ) o ON o.intent_pk = i.id
    """
    last = "SELECT DISTINCT ON (object_id) object_id, project_pk FROM changes WHERE kind = 'outbound'"
    changes = {
        "an intent": "UPDATE outbound_intents SET reason = 'a test' || id",
        "its slot": "UPDATE outbound_slots SET raise_refusal = 'a test' || id RETURNING intent_pk",
    }
    async with gateway.db.transaction() as conn:
        projects = {one: project for one, _, project in (await conn.exec_driver_sql(linked)).all()}
        kinds = {kind for _, kind, _ in (await conn.exec_driver_sql(linked)).all()}
        assert {"payout", "refund", "withdrawal"} <= kinds
        for what, statement in changes.items():
            await conn.exec_driver_sql("DELETE FROM changes")
            await conn.exec_driver_sql(statement)
            noted = dict((await conn.exec_driver_sql(f"{last} ORDER BY 1, id DESC")).all())
            assert noted, what
            assert noted == {one: projects.get(one) for one in noted}, what
            assert any(noted.values()), what


def lists():
    """Yield what the API has for pages: all that is read by those who sign in and is not one thing by its id."""
    back = {mirror: path for path, mirror in MIRRORED.items()}
    for row in decided():
        if row.method != "GET" or row.door not in {"project", "session", "operator"} or row.path.endswith("}"):
            continue
        path = row.path.removeprefix("/api/dashboard/projects/{projectId}")
        mirrored = next((one for one in back if path == one or path.startswith(f"{one}/")), None)
        shown = path if mirrored is None else back[mirrored] + path.removeprefix(mirrored)
        yield shown if shown in TOLD or shown in UNTOLD else path


def test_of_every_list_of_the_api_some_kind_tells_or_it_is_said_why_none_does():
    assert set(lists()) == TOLD.keys() | UNTOLD.keys()
    assert not TOLD.keys() & UNTOLD.keys()
    assert frozenset().union(*TOLD.values()) == KINDS


async def test_what_no_page_shows_is_told_to_nobody(gateway, everything):
    async with gateway.db.transaction() as conn:
        before = (await conn.exec_driver_sql("SELECT count(*) FROM changes")).scalar_one()
        for row in UNSEEN:
            assert (await conn.exec_driver_sql(row.statement)).all(), row.statement
        assert (await conn.exec_driver_sql("SELECT count(*) FROM changes")).scalar_one() == before


@pytest.mark.slow
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
