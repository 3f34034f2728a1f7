"""Overviews: payments by state, what came in by coin and day, what there is, and what needs attention."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from cambist.services import bounded
from cambist.services.overviews import operators
from cambist.services.signing import reports
from cambist.signer.reports import Question, Report
from cambist_web.ratelimit import RateLimit
from tests.support.exchange_rows import ended_exchange
from tests.support.operators import Officer
from tests.support.team import Teammate
from tests.support.web import ADMIN_KEY, PASSWORD, Merchant, refused

KEY = {"X-Admin-Key": ADMIN_KEY}
ORDER = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}
DAY_S = 86_400
DAY = timedelta(days=1)


async def overview(client, headers, query="", of="dashboard"):
    answer = await client.get(f"/api/{of}/overview?mode=sandbox&timeZone=Europe/Berlin{query}", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def pay(client, merchant, paid, **order):
    payment = (await client.post("/api/payment", json=ORDER | order, headers=merchant.key)).json()["payment"]
    if paid is not None:
        body = {"paymentId": payment["paymentId"], "amount": paid, "confirmations": 20}
        answer = await client.post("/api/sandbox/deposit", json=body, headers=merchant.key)
        assert answer.status_code in {200, 201}, answer.text
    return payment


async def write_prices(gateway, *prices):
    async with gateway.db.transaction() as conn:
        for symbol, currency, at, value in prices:
            await conn.exec_driver_sql(
                "INSERT INTO price_points (symbol, fiat_currency, observed_at, value, source)"
                " VALUES ($1, $2, $3, $4::text::numeric, 'test')",
                (symbol, currency, at, value),
            )


@pytest.fixture
async def story(gateway, client, sandbox_merchant, clock):
    """Have a merchant be paid 10 and 12 USDX one day, 3 MEM the next, which nobody prices, and leave one open."""
    merchant = sandbox_merchant
    yesterday = clock.now()
    await pay(client, merchant, "10")
    await pay(client, merchant, "12")
    clock.advance(DAY_S)
    await pay(client, merchant, "3", token="MEM", amount="3")
    await pay(client, merchant, None)
    await write_prices(
        gateway,
        ("USDX", "usd", yesterday + timedelta(seconds=60), "0.99"),
        ("USDX", "usd", yesterday + timedelta(seconds=120), "1.01"),
        ("USDX", "eur", yesterday, "0.9"),
        ("USDX", "usd", clock.now() - timedelta(seconds=60), "1.5"),
    )
    answer = await client.post("/api/auth/login", json={"email": merchant.email, "password": PASSWORD})
    merchant.take(answer)
    return merchant


async def test_a_merchant_reads_what_came_in_by_day_coin_and_state(client, clock, story):
    found = await overview(client, story.bearer)
    assert (found["mode"], found["currency"], found["step"], found["timeZone"]) == (
        *("sandbox", "usd", "day"),
        "Europe/Berlin",
    )
    turnover = found["turnover"]
    payments = turnover["payments"]
    assert (payments["made"], payments["open"], payments["paid"]) == (4, 1, 3)
    assert payments["conversionPercent"] == "100.00"
    assert {state for state, count in payments["states"].items() if count} == {"paid", "overpaid", "pending"}
    assert (turnover["deposits"], turnover["fiat"], turnover["unpriced"]) == (3, "22.00", 1)
    usdx, mem = turnover["coins"]
    assert (usdx["chain"], usdx["token"], usdx["deposits"], usdx["amount"], usdx["fiat"]) == (
        *("memory", "USDX", 2),
        *("22", "22.00"),
    )
    assert (mem["token"], mem["amount"], mem["fiat"], mem["unpriced"]) == ("MEM", "3", None, 1)
    series = turnover["series"]
    assert len(series) == len(usdx["amounts"]) == len(mem["amounts"]) == 30
    assert [(one["payments"]["made"], one["fiat"], one["unpriced"]) for one in series[-2:]] == [
        (2, "22.00", 0),
        (2, "0.00", 1),
    ]
    assert usdx["amounts"][-2:] == ["22", "0"]
    assert mem["amounts"][-2:] == ["0", "3"]
    assert all(one["payments"]["conversionPercent"] is None for one in series[:-2])
    assert series[-1]["beginsAt"] < found["until"]

    balances = found["balances"]
    coins = {one["token"]: one for one in balances["coins"]}
    assert (coins["USDX"]["available"], coins["USDX"]["held"]) == ("20", "2")
    assert (coins["USDX"]["price"], coins["USDX"]["fiat"], coins["MEM"]["fiat"]) == ("1.5", "33.00", None)
    assert (balances["fiat"], balances["unpriced"]) == ("33.00", 1)
    assert [(one["code"], one["count"]) for one in found["attention"]] == [("RESOLUTIONS_OPEN", 1)]


async def test_what_the_merchant_owes_is_told_in_each_project_as_the_wallet_is_of_all(client, gateway, story):
    owed = {"RECEIVABLE_OUTSTANDING": 1}
    assert await _attention(client, story, "RECEIVABLE_OUTSTANDING") == {}
    async with gateway.db.transaction() as conn:
        # As if movements had brought it there: the books let nobody else.
        await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        await conn.exec_driver_sql(
            "INSERT INTO ledger_accounts (mode, merchant_pk, asset, purpose, guarded, debit_normal, balance)"
            " SELECT 'sandbox', id, 'memory/owed', 'receivable', false, false, -5 FROM merchants"
        )
    assert await _attention(client, story, "RECEIVABLE_OUTSTANDING") == owed


async def _attention(client, merchant, code):
    found = await overview(client, merchant.bearer, f"&project={merchant.project_id}")
    return {one["code"]: one["count"] for one in found["attention"] if one["code"] == code}


async def test_the_time_its_steps_and_the_currency_are_what_is_asked_for(client, clock, story):
    today = clock.now().date()
    one_day = await overview(client, story.bearer, f"&from={today}&step=hour")
    assert one_day["turnover"]["payments"]["made"] == 2
    hours = one_day["turnover"]["series"]
    assert sum(one["payments"]["made"] for one in hours) == 2
    assert max(one["payments"]["made"] for one in hours) == 2
    before = await overview(client, story.bearer, "&from=2020-01-01&to=2020-01-03")
    assert (len(before["turnover"]["series"]), before["turnover"]["payments"]["made"]) == (2, 0)
    assert (before["turnover"]["coins"], before["turnover"]["fiat"]) == ([], "0.00")
    euros = await overview(client, story.bearer, "&currency=eur")
    assert (euros["turnover"]["fiat"], euros["balances"]["fiat"]) == ("19.80", "0.00")
    for wrong, field in (
        ("currency=xau", "currency"),
        ("timeZone=Mars", "timeZone"),
        ("step=week", "step"),
        ("from=2000-01-01", "from"),
        ("from=2026-01-02&to=2026-01-01", "to"),
        ("mode=both", "mode"),
    ):
        refused(
            await client.get(f"/api/dashboard/overview?{wrong}", headers=story.bearer), 400, "VALIDATION_ERROR", field
        )


async def test_each_reads_of_what_is_theirs_alone(client, story):
    other = await Merchant(client).open("bob@shop.example", mode="sandbox")
    assert (await overview(client, other.bearer))["turnover"]["payments"]["made"] == 0
    live = await client.get("/api/dashboard/overview", headers=story.bearer)
    assert (live.json()["mode"], live.json()["turnover"]["payments"]["made"], live.json()["balances"]["coins"]) == (
        *("live", 0),
        [],
    )
    first = story.project_id
    await story.add_project(mode="sandbox")
    viewer = await Teammate(client, story).sign_in("viewer", projects=[story.project_id])
    assert (await overview(client, viewer.bearer))["turnover"]["deposits"] == 0
    assert (await overview(client, viewer.bearer, f"&project={story.project_id}"))["turnover"]["deposits"] == 0
    of_first = await overview(client, story.bearer, f"&project={first}")
    assert (of_first["turnover"]["deposits"], of_first["turnover"]["payments"]["made"]) == (3, 4)
    path = "/api/dashboard/overview?mode=sandbox&project="
    refused(await client.get(path + first, headers=viewer.bearer), 403, "PROJECT_NOT_OPEN")
    refused(await client.get("/api/dashboard/overview?mode=live", headers=viewer.bearer), 403, "PROJECT_NOT_OPEN")
    refused(await client.get(path + other.project_id, headers=story.bearer), 403, "PROJECT_NOT_OWNED")
    refused(await client.get(path + "prj_none", headers=story.bearer), 404, "PROJECT_NOT_FOUND")
    live = f"/api/dashboard/overview?mode=live&project={first}"
    refused(await client.get(live, headers=story.bearer), 400, "VALIDATION_ERROR", "project")


async def test_operators_read_all_merchants_together_with_what_is_held(gateway, client, clock, story):
    other = await Merchant(client).open("bob@shop.example", mode="sandbox")
    await pay(client, other, "8")
    auditor = await Officer(client).sign_in("auditor")
    found = await overview(client, auditor.bearer, of="admin")
    assert found["turnover"]["payments"]["made"] == 5
    coins = {one["token"]: one for one in found["turnover"]["coins"]}
    assert (coins["USDX"]["deposits"], coins["USDX"]["amount"], coins["USDX"]["fiat"]) == (3, "30", "34.00")
    held = {one["token"]: one for one in found["held"]["coins"]}
    assert (held["USDX"]["merchants"], held["USDX"]["receivable"], held["USDX"]["fiat"]) == ("30", "0", "45.00")
    parts = ("onAddresses", "inWallets", "betweenChains")
    assert sum(float(held["USDX"][part]) for part in parts) == 30
    assert (found["held"]["fiat"], found["held"]["unpriced"]) == ("45.00", 1)
    assert found["exchangeFees"] == {"coins": [], "fiat": "0.00", "unpriced": 0}
    assert ("RESOLUTIONS_OPEN", 1) in [(one["code"], one["count"]) for one in found["attention"]]
    assert "APPROVALS_WAITING" not in str(found["attention"])


async def test_a_wallets_worth_names_the_price_whose_it_is_and_as_of_when(gateway, client, clock, story):
    merchant, now = story, clock.now()
    path = f"/api/dashboard/projects/{merchant.project_id}/wallet/worth"
    found = (await client.get(path, headers=merchant.bearer)).json()
    assert (found["mode"], found["currency"]) == ("sandbox", "usd")
    assert "usd" in found["currencies"]
    assert "eur" in found["currencies"]
    coins = {one["token"]: one for one in found["balances"]["coins"]}
    priced = {name: coins["USDX"][name] for name in ("price", "priceSource", "fiat")}
    assert priced == {"price": "1.5", "priceSource": "test", "fiat": "33.00"}
    assert coins["USDX"]["pricedAt"] <= now.isoformat()
    assert {coins["MEM"][name] for name in ("price", "priceSource", "pricedAt", "fiat")} == {None}
    await write_prices(gateway, ("USDX", "eur", now, "1.25"))
    euros = (await client.get(f"{path}?currency=eur", headers=merchant.bearer)).json()
    assert (euros["currency"], euros["balances"]["fiat"], euros["balances"]["unpriced"]) == ("eur", "27.50", 1)
    refused(await client.get(f"{path}?currency=xyz", headers=merchant.bearer), 400, "VALIDATION_ERROR", "currency")


async def test_fees_are_what_was_taken_and_paid_within_the_time_by_the_prices_of_then(gateway, client, clock, merchant):
    now, memory = clock.now(), {"fee_units": 10**16}
    done = {"status": "succeeded", "error": None, "output_units": 3_000_000, "is_closed": True}
    swapped = done | {"fee_units": 0, "fee_bps": 100, "output_units": 2_970_000}
    for changed in (done, done | {"created_at": now - timedelta(days=60)}, {}, swapped):
        await ended_exchange(gateway, merchant.project_id, **memory | changed)
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        for number, (scope, state, at) in enumerate(
            [(0, "final", now), (0, "final", now), (7, "final", now), (0, "mined", now), (0, "final", now - 60 * DAY)]
        ):
            await conn.exec_driver_sql(
                "INSERT INTO outbound_txs (slot_pk, chain, scope, tx_id, raw, fee_limit, fee_price, fee_extra, state,"
                " fee_paid, created_at)"
                " VALUES ($1::bigint, 'memory', $2, 'tx' || $1::bigint, '', 1, 1, 0, $3, 2000000000000000, $4)",
                (number, scope, state, at),
            )
    unpriced = (await client.get("/api/admin/overview", headers=KEY)).json()
    assert (unpriced["exchangeFees"]["fiat"], unpriced["exchangeFees"]["unpriced"]) == ("0.00", 2)
    await write_prices(gateway, ("MEM", "usd", now, "2000"), ("USDX", "usd", now, "1"))
    found = (await client.get("/api/admin/overview", headers=KEY)).json()
    bridged = {"chain": "memory", "token": "MEM", "transactions": 1, "amount": "0.01", "fiat": "20.00", "unpriced": 0}
    swapped = {"chain": "memory", "token": "USDX", "transactions": 1, "amount": "0.03", "fiat": "0.03", "unpriced": 0}
    assert found["exchangeFees"] == {"coins": [bridged, swapped], "fiat": "20.03", "unpriced": 0}
    paid = {"chain": "memory", "token": "MEM", "transactions": 2, "amount": "0.004", "fiat": "8.00", "unpriced": 0}
    assert found["networkFees"] == {"coins": [paid], "fiat": "8.00", "unpriced": 0}
    await ended_exchange(gateway, merchant.project_id, **memory | done | {"created_at": now - timedelta(days=10)})
    partly = (await client.get("/api/admin/overview", headers=KEY)).json()["exchangeFees"]
    assert partly["coins"] == [bridged | {"transactions": 2, "amount": "0.02", "unpriced": 1}, swapped]
    assert (partly["fiat"], partly["unpriced"]) == ("20.03", 1)
    of_sandbox = (await client.get("/api/admin/overview?mode=sandbox", headers=KEY)).json()["networkFees"]
    assert [one["amount"] for one in of_sandbox["coins"]] == ["0.002"]


async def write_troubles(conn, now):
    """Write what waits too long, has failed or was set aside, and beside each of it what is nothing to look at."""
    long_ago, lately, yesterday = now - timedelta(hours=2), now - timedelta(minutes=30), now - 2 * DAY
    question = Question(
        pk=1, question="q", reference="po_1", purpose="payout", asked_by="session", chain="memory", to_chain="memory",
        to_address="mem1", amount="1 MEM", asked_at=lately,
    )  # fmt: skip
    report = Report(
        rules=[], addresses={}, fresh_address_delay_s=0, questions=[question], voided=[], refused=[], answers_open=False
    )
    await reports.save(conn, report, now - timedelta(minutes=6))
    await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
    for statement, *moments in (
        (
            """INSERT INTO chain_endpoints (endpoint_id, chain, origin, name, state, set_aside, created_at, changed_at)
            VALUES ('end_1', 'memory', 'file', 'a', 'in_use', 'it lags', $1, $1),
                ('end_2', 'memory', 'file', 'b', 'in_use', NULL, $1, $1),
                ('end_3', 'memory', 'file', 'c', 'removed', 'it lags', $1, $1)""",
            now,
        ),
        (
            # Prices fail since two hours; the others ended well since, have never failed, or are no more.
            """INSERT INTO cron_runs (name, due_at, worker, claimed_at, leased_until, finished_at, error)
            VALUES ('prices', $2, 'w', $2, $2, $2, 'down'), ('prices', $2 + interval '1 h', 'w', $2, $2, $2, NULL),
                ('prices', $1, 'w', $1, $1, $1, 'down'), ('prices', $3, 'w', $3, $3, $3, 'down'),
                ('prices', $4, 'w', $4, $4, NULL, NULL), ('gas', $1, 'w', $1, $1, $1, NULL),
                ('usage', $1, 'w', $1, $1, $1, 'down'), ('usage', $3, 'w', $3, $3, $3, NULL),
                ('gone', $2, 'w', $2, $2, $2, 'down')""",
            *(long_ago, yesterday, lately, now),
        ),
        (
            """INSERT INTO price_sources_set_aside (source, reason, set_aside_by, set_aside_at)
            VALUES ('kraken', 'it lags', 'admin key', $1)""",
            now,
        ),
        (
            """INSERT INTO price_source_states (source, verdict, symbols, since, seen_at) SELECT v.*, $1, $1
                FROM (VALUES ('kraken', 'too_far', '{USDX}'::text[]), ('coingecko', 'too_old', '{USDX}'),
                    ('nearby', 'away', '{}'), ('static', 'used', '{}')) AS v""",
            now,
        ),
        (
            """INSERT INTO prices_missing (symbol, reason, since)
            VALUES ('EURX', 'the sources disagree', $1), ('USDX', 'none is fresh', $2)""",
            *(now - timedelta(minutes=3), now - timedelta(minutes=1)),
        ),
        (
            """INSERT INTO outbound_intents (reference, kind, mode, chain, scope, source_address_pk, to_address, token,
                decimals, units, state, reason, due_at, created_at, updated_at)
            SELECT 'po:' || n, 'payout', 'live', 'memory', 0, 1, 'mem1', 'USDX', 6, 1, state, reason, at, at, at
            FROM (VALUES (1, 'waiting', 'gas', $1::timestamptz), (2, 'waiting', NULL, $1), (3, 'waiting', 'gas', $2),
                (4, 'waiting', 'merchant_suspended', $1), (5, 'sending', NULL, $1)) AS v (n, state, reason, at)""",
            *(long_ago, lately),
        ),
        (
            """INSERT INTO outbound_txs (slot_pk, chain, scope, tx_id, raw, fee_limit, fee_price, fee_extra, state,
                created_at, sent_at)
            SELECT n, 'memory', 0, 'tx' || n, '', 1, 1, 0, state, at, at
            FROM (VALUES (1, 'sent', $1::timestamptz), (2, 'sent', $2), (3, 'mined', $1)) AS v (n, state, at)""",
            *(long_ago, lately),
        ),
        (
            """INSERT INTO webhook_deliveries (delivery_id, project_pk, event_pk, event, resource_id, status, due_at,
                created_at)
            SELECT 'dlv_' || n, 1, n, 'payment.paid', 'pay_1', status, at, at
            FROM (VALUES (1, 'dropped', $1::timestamptz), (2, 'dropped', $2), (3, 'cancelled', $1))
                AS v (n, status, at)""",
            *(long_ago, now - 8 * DAY),
        ),
        (
            """INSERT INTO deposits (deposit_id, chain, scope, tx_id, position, mode, merchant_pk, address_pk, matches,
                token, decimals, units, height, block_hash, ordinal, mined_at, required_confirmations, status)
            VALUES ('dep_1', 'memory', 0, 'tx1', '0', 'live', 1, 1, false, 'USDX', 6, 1, 1, 'b', 0, $1, 1,
                'confirmed')""",
            long_ago,
        ),
    ):
        await conn.exec_driver_sql(statement, tuple(moments))


async def test_what_operators_should_look_at_is_told_with_its_number_and_since_when(gateway, client, clock, station):
    now = clock.now()
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE gas_stations SET is_low = true")
        await conn.exec_driver_sql(
            "INSERT INTO chain_states (chain, error, failing_since, setup_problem, quorum, seen_at) VALUES"
            " ('memory', 'down', $1, NULL, 1, $2), ('idle', NULL, NULL, 'no such contract', 1, $2)",
            (now - timedelta(minutes=3), now),
        )
        await conn.exec_driver_sql(
            "INSERT INTO chain_pauses (chain, what, reason, paused_by, paused_at)"
            " VALUES ('memory', 'sending', 'maintenance', 'admin key', $1)",
            (now - timedelta(hours=1),),
        )
        await conn.exec_driver_sql(
            "INSERT INTO jobs (job_id, kind, arguments, requested_by, state, due_at, finished_at, result) VALUES"
            " ('job_1', 'reconcile', '{}', 'operator', 'succeeded', $1, $1, '{\"agrees\": false, \"chains\": {}}'),"
            " ('job_2', 'rescan', '{}', 'operator', 'failed', $1, $1, NULL),"
            " ('job_4', 'audit_verification', '{}', 'operator', 'succeeded', $1, $1, '{\"agrees\": false}'),"
            # What proves nothing, or looks at one chain alone, ends no alarm.
            " ('job_5', 'audit_verification', '{}', 'operator', 'succeeded', $1, $1, '{\"problem\": \"too long\"}'),"
            " ('job_6', 'reconcile', '{\"chains\": [\"a\"]}', 'operator', 'succeeded', $1, $1, '{\"agrees\": true}'),"
            # Asked for later, and done before: a job that was tried again ended behind them.
            " ('job_7', 'reconcile', '{}', 'operator', 'succeeded', $1, $2, '{\"agrees\": true}'),"
            " ('job_8', 'audit_verification', '{}', 'operator', 'succeeded', $1, $2, '{\"agrees\": true}'),"
            " ('job_3', 'rescan', '{}', 'operator', 'failed', $2, $2, NULL)",
            (now - timedelta(hours=2), now - timedelta(days=8)),
        )
        await write_troubles(conn, now)
        await conn.exec_driver_sql(
            "WITH m AS (INSERT INTO merchants (merchant_id, email, name) VALUES ('mer_owes', 'o@x.example', 'O')"
            " RETURNING id) INSERT INTO ledger_accounts (mode, merchant_pk, asset, purpose, guarded, debit_normal,"
            " balance) SELECT 'live', id, asset, 'receivable', false, false, balance FROM m,"
            " (VALUES ('memory/a', -5), ('memory/b', 0)) AS v (asset, balance)"
        )
    found = (await client.get("/api/admin/overview", headers=KEY)).json()["attention"]
    assert {one["code"]: one["count"] for one in found} == {
        "APPROVALS_WAITING": 1,
        "SIGNER_SILENT": 1,
        "CHAINS_FAILING": 1,
        "CHAIN_CHANGES_REFUSED": 1,
        "ENDPOINTS_SET_ASIDE": 1,
        "CHAINS_PAUSED": 1,
        "GAS_LOW": 1,
        "OUTBOUND_WAITING": 2,
        "OUTBOUND_UNCONFIRMED": 1,
        "RESOLUTIONS_OPEN": 1,
        "RECEIVABLE_OUTSTANDING": 1,
        "WEBHOOKS_FAILED": 1,
        "JOBS_FAILED": 1,
        "RECURRING_JOBS_FAILED": 1,
        "BOOKS_DIFFER": 1,
        "AUDIT_LOG_CHANGED": 1,
        "PRICE_SOURCES_SET_ASIDE": 1,
        "PRICE_SOURCES_WRONG": 2,
        "PRICES_MISSING": 1,
    }
    told = {one["code"]: one for one in found}
    assert told.keys() == {kind.code for kind in operators._KINDS} | {"APPROVALS_WAITING", "SIGNER_SILENT"}
    ages = {"CHAINS_FAILING": 3, "SIGNER_SILENT": 6, "APPROVALS_WAITING": 30}
    ages |= dict.fromkeys(("OUTBOUND_WAITING", "OUTBOUND_UNCONFIRMED", "WEBHOOKS_FAILED", "RECURRING_JOBS_FAILED"), 120)
    for code, minutes in ages.items():
        assert told[code]["since"].startswith(f"{now - timedelta(minutes=minutes):%Y-%m-%dT%H:%M}"), code
    assert told["CHAINS_FAILING"]["where"] == "/api/admin/chains"
    sandbox = (await client.get("/api/admin/overview?mode=sandbox", headers=KEY)).json()["attention"]
    # What is of no mode is told in both.
    assert [one["code"] for one in sandbox] == [
        "WEBHOOKS_FAILED",
        "JOBS_FAILED",
        "RECURRING_JOBS_FAILED",
        "PRICE_SOURCES_SET_ASIDE",
        "PRICE_SOURCES_WRONG",
        "PRICES_MISSING",
    ]


async def test_a_merchant_has_so_many_summed_up_in_a_minute_and_no_other_merchant_fewer(client, merchant):
    other = await Merchant(client).open("bob@shop.example")
    client._transport.app.state.web.limits.overviews = RateLimit("overviews", 2)
    for _ in range(2):
        assert (await client.get("/api/dashboard/overview", headers=merchant.bearer)).status_code == 200
    refused(await client.get("/api/dashboard/overview", headers=merchant.bearer), 429, "RATE_LIMITED")
    assert (await client.get("/api/dashboard/overview", headers=other.bearer)).status_code == 200
    for _ in range(2):
        assert (await client.get("/api/admin/overview", headers=KEY)).status_code == 200
    refused(await client.get("/api/admin/overview", headers=KEY), 429, "RATE_LIMITED")


@pytest.mark.slow
async def test_who_has_to_wait_for_a_sum_keeps_no_connection_from_others(client, merchant, monkeypatch):
    web = client._transport.app.state.web
    monkeypatch.setattr(web, "overviews", asyncio.Semaphore(1))
    async with web.overviews:
        asked = asyncio.create_task(client.get("/api/dashboard/overview", headers=merchant.bearer))
        done, _ = await asyncio.wait([asked], timeout=0.3)
        assert not done
        assert (await client.get("/api/merchant/projects", headers=merchant.bearer)).status_code == 200
    assert (await asked).status_code == 200


async def test_what_takes_too_long_is_given_up_and_says_so(gateway, client, merchant, monkeypatch):
    monkeypatch.setattr(bounded, "STATEMENT_MS_MAX", 50)
    async with gateway.db.transaction() as conn:
        # A statement that waits takes as long as one that reads too much.
        await conn.exec_driver_sql("LOCK TABLE payments IN ACCESS EXCLUSIVE MODE")
        for path, headers in (("dashboard", merchant.bearer), ("admin", KEY)):
            refused(await client.get(f"/api/{path}/overview", headers=headers), 503, "OVERVIEW_TOO_SLOW")
