"""The ledger holds its invariants itself: whoever races, loses with an error, and never money."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import IntegrityError

from cambist.plugin import Units
from cambist.services.accounting.ledger import (
    Account,
    InsufficientFundsError,
    Movement,
    Posting,
    Purpose,
    asset_key,
    balances,
    lock_balances,
    post,
)
from tests.support.waiting import waits_for_a_lock

ASSET = asset_key("memory", None)


@pytest.fixture
async def merchants(db):
    async with db.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "INSERT INTO merchants (merchant_id, email, name)"
            " SELECT 'mer_' || n, n || '@example.com', 'Shop' FROM generate_series(1, 3) n RETURNING id"
        )
        return [row.id for row in rows]


@pytest.fixture
def merchant(merchants):
    return merchants[0]


def account(merchant, purpose, asset=ASSET):
    return Account(merchant, asset, Purpose(purpose))


def posting(reference, *moves, kind="test", mode="live"):
    movements = [Movement(debit, credit, Units(units)) for debit, credit, units in moves]
    return Posting(mode=mode, kind=kind, reference=reference, movements=movements)


async def deposit(db, merchant, units, reference="in"):
    async with db.transaction() as conn:
        return await post(
            conn,
            "live",
            [posting(reference, (account(merchant, "custody_deposits"), account(merchant, "available"), units))],
        )


async def available(db, merchant):
    async with db.transaction() as conn:
        found = await balances(conn, merchant, "live", ASSET)
    return found[0].available if found else 0


async def test_a_posting_moves_units_once_however_often_it_is_made(db, merchant):
    assert await deposit(db, merchant, 5) == {("test", "in")}
    assert await deposit(db, merchant, 5) == set()
    assert await available(db, merchant) == 5


async def test_postings_of_one_batch_are_posted_together(db, merchant):
    await deposit(db, merchant, 10)
    spend = (account(merchant, "available"), account(merchant, "pending"))
    with pytest.raises(InsufficientFundsError):
        async with db.transaction() as conn:
            await post(conn, "live", [posting("a", (*spend, 6)), posting("b", (*spend, 6))])
    assert await available(db, merchant) == 10


@pytest.mark.slow
async def test_a_race_for_the_same_balance_is_lost_with_an_error(db, merchant):
    await deposit(db, merchant, 50)

    async def spend(number):
        async with db.transaction() as conn:
            move = (account(merchant, "available"), account(merchant, "pending"), 1)
            await post(conn, "live", [posting(f"out{number}", move)])

    results = await asyncio.gather(*[spend(number) for number in range(100)], return_exceptions=True)
    assert sum(isinstance(result, InsufficientFundsError) for result in results) == 50
    assert sum(result is None for result in results) == 50
    assert await available(db, merchant) == 0


async def test_the_same_reference_posted_at_once_is_posted_once(db, merchant):
    results = await asyncio.gather(*[deposit(db, merchant, 7) for _ in range(20)])
    assert sorted(map(len, results)) == [0] * 19 + [1]
    assert await available(db, merchant) == 7


async def test_custody_follows_the_chain_even_below_zero_where_reconcile_shows_it(db, merchant):
    await deposit(db, merchant, 5)
    move = (account(merchant, "receivable"), account(merchant, "custody_deposits"), 6)
    async with db.transaction() as conn:
        await post(conn, "live", [posting("reversal", move)])
        custody = account(merchant, "custody_deposits")
        assert await lock_balances(conn, "live", [custody]) == {custody: 1}


async def test_locking_an_account_that_is_not_there_yet_makes_it(db, merchant):
    async with db.transaction() as conn:
        wanted = account(merchant, "receivable")
        assert await lock_balances(conn, "live", [wanted]) == {wanted: 0}


@pytest.mark.slow
@pytest.mark.parametrize("is_there", [True, False])
async def test_who_has_waited_for_balances_is_told_what_they_are_by_then(db, merchants, is_there):
    await deposit(db, merchants[0], 50)
    first, second = account(merchants[0], "available"), account(merchants[0], "pending")
    wanted = [first, second] if is_there else [first, account(merchants[1], "available"), second]
    async with db.transaction() as conn:
        await post(conn, "live", [posting("before", (first, second, 1))])

    async def locks():
        async with db.transaction() as conn:
            return await lock_balances(conn, "live", wanted)

    async with db.transaction() as conn:
        await post(conn, "live", [posting("out", (first, second, 20))])
        act = asyncio.create_task(locks())
        await waits_for_a_lock(conn, act)
        assert not act.done(), "it waits for the one who has spent some"
    assert await act == {one: {first: 29, second: 21}.get(one, 0) for one in wanted}


async def test_live_and_sandbox_have_accounts_of_their_own(db, merchant):
    await deposit(db, merchant, 5)
    async with db.transaction() as conn:
        move = (account(merchant, "custody_deposits"), account(merchant, "available"), 8)
        await post(conn, "sandbox", [posting("in", move, kind="sandbox", mode="sandbox")])
        assert [balance.available for balance in await balances(conn, merchant, "live")] == [5]
        assert [balance.available for balance in await balances(conn, merchant, "sandbox")] == [8]


TAMPERING = {
    "a balance is set": "UPDATE ledger_accounts SET balance = balance + 1",
    "an account is made unguarded": "UPDATE ledger_accounts SET guarded = false",
    "an account is deleted": "DELETE FROM ledger_accounts",
    "a movement is changed": "UPDATE ledger_movements SET units = 1",
    "a movement is deleted": "DELETE FROM ledger_movements",
    "a transaction is changed": "UPDATE ledger_transactions SET reference = 'x'",
    "a transaction is deleted": "DELETE FROM ledger_transactions",
    "the movements are emptied": "TRUNCATE ledger_movements",
    "an account starts with money": "INSERT INTO ledger_accounts (mode, asset, purpose, guarded, debit_normal, balance)"
    " VALUES ('live', 'x', 'gift', true, false, 1)",
    "an amount is zero": "INSERT INTO ledger_movements (transaction_pk, mode, asset, debit_account_pk,"
    " credit_account_pk, units) SELECT transaction_pk, mode, asset, debit_account_pk, credit_account_pk, 0"
    " FROM ledger_movements",
    "an account pays itself": "INSERT INTO ledger_movements (transaction_pk, mode, asset, debit_account_pk,"
    " credit_account_pk, units) SELECT transaction_pk, mode, asset, debit_account_pk, debit_account_pk, 1"
    " FROM ledger_movements",
    "a movement crosses assets": "INSERT INTO ledger_movements (transaction_pk, mode, asset, debit_account_pk,"
    " credit_account_pk, units) SELECT transaction_pk, mode, 'other', debit_account_pk, credit_account_pk, 1"
    " FROM ledger_movements",
    "a movement crosses modes": "INSERT INTO ledger_movements (transaction_pk, mode, asset, debit_account_pk,"
    " credit_account_pk, units) SELECT transaction_pk, 'sandbox', asset, debit_account_pk, credit_account_pk, 1"
    " FROM ledger_movements",
}


@pytest.mark.parametrize("statement", TAMPERING.values(), ids=TAMPERING.keys())
async def test_the_database_refuses_tampering_when(db, merchant, statement):
    await deposit(db, merchant, 5)
    with pytest.raises(IntegrityError):
        async with db.transaction() as conn:
            await conn.exec_driver_sql(statement)
    assert await available(db, merchant) == 5


steps = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["custody_deposits", "available", "held", "pending", "receivable"]),
        st.sampled_from(["available", "held", "pending", "receivable", "custody_deposits"]),
        st.integers(1, 2**100),
        st.integers(0, 30),
    ).filter(lambda step: step[1] != step[2]),
    min_size=1,
    max_size=40,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps, run=st.uuids())
async def test_whatever_is_posted_at_once_sums_to_zero_and_balances_equal_movements(db, merchants, steps, run):
    async def one(number, step):
        merchant, debit, credit, units, reference = step
        move = (account(merchants[merchant], debit), account(merchants[merchant], credit), units)
        async with db.transaction() as conn:
            await post(conn, "live", [posting(f"{run}:{reference}", move)])

    results = await asyncio.gather(*[one(*pair) for pair in enumerate(steps)], return_exceptions=True)
    assert all(result is None or isinstance(result, InsufficientFundsError) for result in results), results
    async with db.transaction() as conn:
        total = (await conn.exec_driver_sql("SELECT sum(balance) FROM ledger_accounts")).scalar_one()
        assert not total
        wrong = await conn.exec_driver_sql(
            "SELECT a.id FROM ledger_accounts a WHERE a.balance <>"
            " coalesce((SELECT sum(units) FROM ledger_movements WHERE credit_account_pk = a.id), 0) -"
            " coalesce((SELECT sum(units) FROM ledger_movements WHERE debit_account_pk = a.id), 0)"
            " OR a.guarded AND CASE WHEN a.debit_normal THEN a.balance > 0 ELSE a.balance < 0 END"
        )
        assert wrong.all() == []
