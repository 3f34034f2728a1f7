"""A statement stays quick however long the history is, and a file cannot hurt a spreadsheet."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from cambist.plugin import Token
from cambist.services.accounting.statements import details, entries, export
from cambist.services.accounting.statements.entries import Bounds, Filters, Scope
from cambist.services.accounting.statements.kinds import PATTERNS, TYPES, sign_of, type_of
from cambist.services.errors import InvalidError
from tests.support.exchange_booth import DEEP, MEM, ONE, ExchangeBooth
from tests.support.payment_env import PaymentEnv
from tests.support.payout_env import PayoutEnv

pytestmark = pytest.mark.slow

USDX = Token(symbol="USDX", contract="0x1", decimals=6, label="Example dollar")
ASSET = "memory/0x1"

# Two merchants share the history, so that a page of one lies among the entries of the other.
HISTORY = """
WITH accounts AS (
    INSERT INTO ledger_accounts (mode, merchant_pk, asset, purpose, guarded, debit_normal)
    SELECT 'live', m.id, $1, p.purpose, false, p.purpose = 'custody_deposits'
    FROM merchants m, (VALUES ('available'), ('pending'), ('held'), ('receivable'), ('custody_deposits')) p (purpose)
    RETURNING id, merchant_pk, purpose
), posted AS (
    INSERT INTO ledger_transactions (mode, kind, reference, created_at)
    SELECT 'live', CASE WHEN n % 1000 = 0 THEN 'payout' ELSE 'deposit' END, 'dep_' || n,
        timestamptz '2026-01-01 00:00Z' + n * interval '1 minute'
    FROM generate_series(1, $2::int) n RETURNING id
)
INSERT INTO ledger_movements (transaction_pk, mode, asset, debit_account_pk, credit_account_pk, units)
SELECT p.id, 'live', $1, d.id, c.id, 1 FROM posted p
JOIN LATERAL (SELECT * FROM accounts WHERE purpose = 'custody_deposits' ORDER BY (id + p.id) % 2 LIMIT 1) d ON true
JOIN accounts c ON c.merchant_pk = d.merchant_pk AND c.purpose = 'held' ORDER BY p.id
"""


@pytest.fixture
async def merchants(db):
    async with db.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "INSERT INTO merchants (merchant_id, email, name) VALUES ('mer_1', 'a@b.c', 'A'),"
            " ('mer_2', 'b@b.c', 'B') RETURNING id"
        )
        return list(rows.scalars())


async def fill(db, count):
    async with db.transaction() as conn:
        # Balances are not what is tested here, and keeping them would take most of the time.
        await conn.exec_driver_sql("ALTER TABLE ledger_movements DISABLE TRIGGER USER")
        await conn.exec_driver_sql(HISTORY, (ASSET, count))
    async with db.autocommit() as conn:
        await conn.exec_driver_sql("VACUUM ANALYZE ledger_movements, ledger_transactions, ledger_accounts")


def scope(merchant):
    return Scope(merchant_pk=merchant, mode="live", assets={ASSET: ("memory", USDX)})


def nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


async def explained(conn, filters, bounds=None, statement=entries.PAGE):
    arguments = entries.arguments(scope(1), filters, bounds or Bounds())
    text = (await conn.exec_driver_sql("EXPLAIN (ANALYZE, FORMAT JSON) " + statement, arguments)).scalar_one()
    return list(nodes((json.loads(text) if isinstance(text, str) else text)[0]["Plan"]))


async def test_a_page_of_a_long_history_touches_a_page_of_it(db, merchants):
    await fill(db, 100_000)
    async with db.autocommit() as conn:
        for _ in range(7):  # from the sixth time on, PostgreSQL may plan without looking at the values
            filters = Filters()
            plan = await explained(conn, filters)
            await entries.read(conn, scope(merchants[0]), filters, Bounds(), 100)
        since = datetime(2026, 2, 1, tzinfo=UTC)
        month = Filters(since=since, until=since + timedelta(days=1))
        bounds = await entries.bounds_of(conn, month)
        dated = await explained(conn, month, bounds)
        found, more = await entries.read(conn, scope(merchants[0]), month, bounds, 100)
    for node in (*plan, *dated):
        big = node.get("Relation Name") in {"ledger_movements", "ledger_transactions"}
        assert not (big and node["Node Type"] == "Seq Scan"), node
        if big:
            assert node["Actual Rows"] * node["Actual Loops"] < 2_000, node
    assert bounds.end - bounds.first < 24 * 60 + 60
    assert (len(found), more) == (100, True)
    assert all(since <= entry.created_at < since + timedelta(days=1) for entry in found)


async def test_counting_a_long_history_ends_with_the_number_that_it_is_asked_for(db, merchants):
    await fill(db, 100_000)
    async with db.autocommit() as conn:
        for _ in range(7):  # from the sixth time on, PostgreSQL may plan without looking at the values
            assert await entries.count(conn, scope(merchants[0]), Filters(), Bounds(), 500) == 500
            plan = await explained(conn, Filters(), statement=entries.counting(500))
        whole = await entries.count(conn, scope(merchants[0]), Filters(), Bounds(), 10**9)
        both = (await conn.exec_driver_sql("SELECT count(*) FROM ledger_movements")).scalar_one()
    assert whole == both / 2
    for node in plan:
        if node.get("Relation Name") in {"ledger_movements", "ledger_transactions"}:
            assert node["Node Type"] != "Seq Scan", node
            assert node["Actual Rows"] * node["Actual Loops"] < 2_000, node


async def test_pages_together_are_the_whole_history_once(db, merchants):
    await fill(db, 2_500)
    seen, bounds, more = [], Bounds(), True
    async with db.autocommit() as conn:
        while more:
            found, more = await entries.read(conn, scope(merchants[1]), Filters(), bounds, entries.BATCH)
            seen += [entry.pk for entry in found]
            bounds = Bounds(0, seen[-1])
        both = (await conn.exec_driver_sql("SELECT count(*) FROM ledger_movements")).scalar_one()
    assert seen == sorted(set(seen), reverse=True)
    assert len(seen) == both / 2


async def test_a_file_that_would_be_too_long_is_refused_before_it_begins(db, merchants, monkeypatch):
    await fill(db, 100)
    monkeypatch.setattr(export, "ENTRIES_MAX", 10)
    async with db.autocommit() as conn:
        with pytest.raises(InvalidError) as refusal:
            await export.check_size(conn, scope(merchants[0]), Bounds())
        assert refusal.value.code == "EXPORT_TOO_LARGE"
        await export.check_size(conn, scope(merchants[0]), Bounds(0, 5))


async def test_no_cell_of_a_file_begins_like_a_formula(db, merchants):
    await fill(db, 2)
    evil = Token(symbol="=HYPERLINK(1)", contract="@sum", decimals=6, label="Evil")
    wanted = Scope(merchant_pk=merchants[0], mode="live", assets={ASSET: ("+memory", evil)})
    text = b"".join([piece async for piece in export.lines(db.transaction, wanted, Filters(), Bounds())]).decode()
    assert "'=HYPERLINK(1)" in text
    for cell in text.replace("\r\n", ",").split(","):
        assert not cell.startswith(("=", "+", "@", "\t")), cell


def test_every_type_is_known_by_its_own_name():
    for name in PATTERNS:
        kind = {"reversal": "deposit_reversal", "release": "release", "exchange": "swap"}.get(name, name)
        assert type_of(kind) == name
    assert type_of("payout_failed") == "payout"
    assert type_of("auto_payout_final") == "auto_payout"
    assert type_of("something") == "adjustment"
    assert TYPES[-1] == "adjustment"


def test_what_comes_nearer_to_being_spent_is_plus():
    assert [sign_of(None, "held"), sign_of("held", "available"), sign_of("pending", "available")] == [1, 1, 1]
    assert [sign_of("available", None), sign_of("available", "pending"), sign_of("held", None)] == [-1, -1, -1]
    assert sign_of("held", "receivable") == 1


@pytest.fixture
async def booth(db, clock, ids):
    booth = ExchangeBooth(await PaymentEnv(db, clock, ids).open())
    await booth.earn("100")
    return booth


async def told(booth, **filters):
    """Return what the statement says, oldest first: type, token, units, from, to, and whether it names the exchange."""
    env = booth.payment_env
    asked = Filters(**{"type": "exchange", **filters})
    async with booth.db.autocommit() as conn:
        scope = await entries.scope_of(conn, env.registry, env.test.merchant_pk, "sandbox", asked)
        found, _ = await entries.read(conn, scope, asked, Bounds(), 100)
        known = await details.details_of(conn, found)
        assert await entries.count(conn, scope, asked, Bounds()) == len(found)
    lines = zip(reversed(found), reversed(known), strict=True)
    return [(one.chain, one.token.symbol, one.units, one.from_balance, one.to_balance, detail) for one, detail in lines]


async def test_a_swap_is_in_the_statement_with_what_it_gave_and_what_came(booth):
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "memory/MEM")
    await booth.mine(blocks=DEEP + 1)
    lines = await told(booth)
    assert [line[:5] for line in lines] == [
        ("memory", "USDX", -30 * ONE, "available", "pending"),
        ("memory", "USDX", -30 * ONE, "pending", None),
        ("memory", "MEM", 10 * MEM, "held", "available"),
    ]
    tx_id = (await booth.row(txn_id)).tx_id
    assert {(line[5].txn_id, line[5].tx_id) for line in lines} == {(txn_id, tx_id)}
    assert [line[5].deposit_id is not None for line in lines] == [False, False, True]
    assert await told(booth, type="release") == []
    assert [line[2] for line in await told(booth, type="deposit")] == [100 * ONE, 10 * MEM]


async def test_a_bridge_is_in_the_statement_with_its_fee_and_on_both_chains(booth):
    await PayoutEnv(booth.payment_env).settings(exchanges={"bridgeFeeBps": 100})
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "other/USDX")
    await booth.mine(blocks=DEEP + 1)
    await booth.mine("other", DEEP + 1)
    lines = await told(booth)
    fee = 300_000
    assert [line[:5] for line in lines] == [
        ("memory", "USDX", -30 * ONE, "available", "pending"),
        ("other", "USDX", 30 * ONE - fee, "held", "available"),
        ("memory", "USDX", -fee, "pending", None),
        ("memory", "USDX", fee - 30 * ONE, "pending", None),
    ]
    row = await booth.row(txn_id)
    assert [line[5].tx_id for line in lines] == [row.tx_id, row.dest_tx_id, row.tx_id, row.tx_id]
    assert {line[5].txn_id for line in lines} == {txn_id}


async def test_what_an_exchange_gives_back_is_in_the_statement_as_the_exchange(booth):
    swap = await booth.exchange("memory/USDX", 10 * ONE, "memory/MEM")
    await booth.fail(swap)
    bridge = await booth.exchange("memory/USDX", 30 * ONE, "other/USDX")
    await booth.fail(bridge, "expire")
    await booth.mine(blocks=DEEP + 1)
    await booth.mine(blocks=DEEP + 1)
    lines = await told(booth)
    of = {txn_id: [line[2:5] for line in lines if line[5].txn_id == txn_id] for txn_id in (swap, bridge)}
    assert of[swap] == [(-10 * ONE, "available", "pending"), (10 * ONE, "pending", "available")]
    assert of[bridge] == [
        (-30 * ONE, "available", "pending"),
        (30 * ONE, "held", "available"),
        (-30 * ONE, "pending", None),
    ]
    assert len(lines) == 5
    assert await told(booth, type="release") == []


async def test_a_file_names_the_exchange_of_each_line(booth):
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "memory/MEM")
    await booth.mine(blocks=DEEP + 1)
    env, asked = booth.payment_env, Filters(type="exchange")
    async with booth.db.autocommit() as conn:
        wanted = await entries.scope_of(conn, env.registry, env.test.merchant_pk, "sandbox", asked)
    text = b"".join([piece async for piece in export.lines(booth.db.transaction, wanted, asked, Bounds())]).decode()
    heading, *lines = (line.split(",") for line in text.splitlines())
    assert [line[heading.index("txnId")] for line in lines] == [txn_id] * 3
