"""Filters of long lists read a bounded part of them, however rare what they look for is."""

import msgspec
import pytest
from sqlalchemy import event

from cambist.registry import Registry
from cambist.services.actor import Actor
from cambist.services.listing import Part, micros
from cambist.services.oversight.finding import Owners, find
from cambist.services.oversight.kinds import Name
from cambist.services.paging import Place
from cambist.services.trackers import transactions
from cambist.services.trackers.credentials import find_in_project
from cambist.services.trackers.transactions import Wanted, list_transactions
from cambist.services.webhooks.events import EventFilters, list_events
from tests.support.trackers import Watchers
from tests.support.webhooks import make_project


@pytest.fixture
async def project(db, ids):
    return await make_project(db, ids)


@pytest.fixture
def watchers(db, project):
    return Watchers(db, project[0], family="memory")


async def insert_told(watchers, tracker, count, *, orphaned):
    """Have a tracker have told of so many transactions, of which these numbers left the chain."""
    await watchers.rows(
        "WITH moved AS (INSERT INTO movements (chain, scope, tx_id, position, recipient, token, decimals, units,"
        " height, block_hash, mined_at, first_mined_at, required_confirmations, status)"
        " SELECT 'memory', 0, 'tx' || n, '0', 'a', 'USDX', 6, n, n, '0x', now(), now(), 3,"
        " CASE WHEN n = ANY($3::bigint[]) THEN 'orphaned' ELSE 'confirmed' END"
        " FROM generate_series(1, $2::bigint) n RETURNING id, units)"
        " INSERT INTO tracker_transactions (transaction_id, tracker_pk, movement_pk, direction, address)"
        " SELECT 'mov_' || units, $1, id, 'in', 'a' FROM moved ORDER BY id RETURNING id",
        *(tracker, count, orphaned),
    )


@pytest.fixture
async def access(db, watchers, project):
    tracker = await watchers.make(["a"])
    [[webhook_id]] = await watchers.rows("SELECT webhook_id FROM trackers WHERE id = $1", tracker)
    actor = Actor(
        merchant_pk=1, merchant_id="mer", project_pk=project[0], project_id=project[1], mode="live", is_active=True
    )
    async with db.transaction() as conn:
        return await find_in_project(conn, actor, webhook_id)


async def test_a_rare_status_is_found_window_by_window_and_a_hash_at_once(db, watchers, access, monkeypatch):
    monkeypatch.setattr(transactions.LIST, "window", 100)
    await insert_told(watchers, access.pk, 450, orphaned=[5, 120, 449])
    async with db.transaction() as conn:
        found, after, rounds = [], None, 0
        while rounds == 0 or after is not None:
            page = await list_transactions(conn, access, Wanted(status="orphaned"), Part(after=after))
            found += [one.tx_hash for one in page.items]
            after, rounds = page.last, rounds + 1
        assert found == ["tx449", "tx120", "tx5"]
        assert rounds == 5
        for tx_hash in ("tx5", "tx6"):
            page = await list_transactions(conn, access, Wanted(tx_hash=tx_hash), Part())
            assert [one.tx_hash for one in page.items] == [tx_hash]
            assert (page.total, page.last) == (1, None)
        page = await list_transactions(conn, access, Wanted(), Part())
        assert (len(page.items), page.total) == (25, 450)


async def test_in_the_midst_of_a_list_no_more_rows_are_expected_than_a_window_has(db, watchers, access, monkeypatch):
    monkeypatch.setattr(transactions.LIST, "window", 100)
    assert await expected_behind(2_000, Wanted(status="confirmed"), db, watchers, access) <= 200


async def test_near_the_end_of_a_list_as_many_rows_are_expected_as_are_left(db, watchers, access):
    # Of fewer than a page skips, PostgreSQL would sort all there are by an index that is not the list's.
    assert 300 <= await expected_behind(400, Wanted(), db, watchers, access) <= 500


async def expected_behind(place, wanted, db, watchers, access):
    """Return how many rows PostgreSQL expects to read for a part of 4,000 transactions that begins at this one."""
    asked = []
    await insert_told(watchers, access.pk, 4_000, orphaned=[])
    await watchers.rows("UPDATE tracker_transactions SET created_at = now() + id * interval '1 second' RETURNING id")
    async with db.autocommit() as conn:
        await conn.exec_driver_sql("VACUUM ANALYZE tracker_transactions")
        [[at]] = await watchers.rows(
            f"SELECT created_at FROM tracker_transactions WHERE transaction_id = 'mov_{place}'"  # noqa: S608
        )
        event.listen(db.engine.sync_engine, "before_cursor_execute", lambda *call: asked.append(call[2:4]))
        part = Part(limit=4, after=Place(micros(at), 0))
        assert len((await list_transactions(conn, access, wanted, part)).items) == 4
        [(statement, values)] = [call for call in asked if "AS picked" in call[0]]
        [[plan]] = list(await conn.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", values))
    [plan] = msgspec.json.decode(plan) if isinstance(plan, str) else plan
    [expected] = [rows for index, rows in planned(plan["Plan"]) if index == "ix_tracker_transactions_tracker_pk"]
    return expected


async def test_a_rare_events_name_is_found_without_reading_the_others(db, watchers, project):
    asked = []
    await watchers.rows(
        "INSERT INTO webhook_events (event_id, project_pk, event, resource, resource_id, body)"
        " SELECT 'evt_' || n, $1, CASE n % 1000 WHEN 0 THEN 'payment.failed' WHEN 1 THEN 'refund.sent'"
        " ELSE 'payment.paid' END, 'payment', 'pay_' || n, '{}' FROM generate_series(1, 3000) n RETURNING id",
        project[0],
    )
    async with db.transaction() as conn:
        wanted = EventFilters(names=("payment.failed", "refund.sent"))
        first = await list_events(conn, project[0], wanted, Part(limit=4))
        rest = await list_events(conn, project[0], wanted, Part(limit=4, after=first.last))
        numbers = [int(one.event_id[4:]) for one in (*first.items, *rest.items)]
        assert numbers == [3000, 2001, 2000, 1001, 1000, 1]
        assert (first.total, rest.last) == (6, None)
        await conn.exec_driver_sql("SET LOCAL enable_seqscan = off")
        event.listen(db.engine.sync_engine, "before_cursor_execute", lambda *call: asked.append(call[2:4]))
        await list_events(conn, project[0], EventFilters(names=("payment.failed",)), Part(limit=4))
        for statement, values in list(asked)[:2]:
            [[plan]] = list(await conn.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values))
            [plan] = msgspec.json.decode(plan) if isinstance(plan, str) else plan
            assert ("ix_webhook_events_event", 3) in set(rows_of(plan["Plan"]))
            assert all(rows <= 3 for _, rows in rows_of(plan["Plan"]))


@pytest.mark.parametrize("of", ["project_pk", "merchant_pk"])
async def test_what_somebody_sent_to_a_busy_address_is_found_without_reading_what_others_sent_there(
    db, ids, watchers, project, of
):
    own, (other, _), asked = project[0], await make_project(db, ids), []
    [[merchant, others]] = await watchers.rows(
        "SELECT o.merchant_pk, p.merchant_pk FROM projects o, projects p WHERE o.id = $1 AND p.id = $2", own, other
    )
    assert merchant != others
    owners = Owners(**{of: {"project_pk": own, "merchant_pk": merchant}[of]})
    await watchers.rows(
        "INSERT INTO payouts (payout_id, kind, project_pk, merchant_pk, mode, chain, scope, token, decimals,"
        " to_address, units, created_at, updated_at)"
        " SELECT 'po_' || n, 'payout', p.id, p.merchant_pk, 'live', 'memory', 0, 'USDX',"
        " 6, 'busy', 1, now() + n * interval '1 second', now() FROM generate_series(1, 3000) n"
        " JOIN projects p ON p.id = CASE WHEN n IN (7, 2000) THEN $1::bigint ELSE $2 END RETURNING id",
        *(own, other),
    )
    async with db.autocommit() as conn:
        await conn.exec_driver_sql("VACUUM ANALYZE payouts")
    event.listen(db.engine.sync_engine, "before_cursor_execute", lambda *call: asked.append(call[2:4]))
    async with db.transaction() as conn:
        for name in (Name.PAYOUTS, Name.REFUNDS, Name.WITHDRAWALS):
            named = await find(conn, Registry({}, found=[]), name, "busy", with_people=True, owners=owners)
            assert (len(named.pks), named.is_all) == (2, True)
        for statement, values in asked[:3]:
            [[plan]] = list(await conn.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values))
            [plan] = msgspec.json.decode(plan) if isinstance(plan, str) else plan
            read = list(rows_of_table(plan["Plan"], "payouts"))
            assert ("ix_payouts_project_to_address", 2) in read
            assert max(rows for _, rows in read) == 2, read


def rows_of_table(plan, table):
    """Return how this table was read: by which index, None for the whole of it, and how many rows were looked at."""
    if plan.get("Relation Name") == table:
        yield plan.get("Index Name"), plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    for below in plan.get("Plans", []):
        yield from rows_of_table(below, table)


def rows_of(plan):
    """Return which indexes were read, and how many rows of each."""
    if "Index Name" in plan:
        yield plan["Index Name"], plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    for below in plan.get("Plans", []):
        yield from rows_of(below)


def planned(plan):
    """Return which indexes are to be read, and how many rows PostgreSQL expects of each."""
    if "Index Name" in plan:
        yield plan["Index Name"], plan["Plan Rows"]
    for below in plan.get("Plans", []):
        yield from planned(below)
