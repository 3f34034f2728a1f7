"""Lists that grow without end are read by an index, page after page, whatever comes in meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from sqlalchemy import event

from cambist.registry import Registry
from cambist.secrets import SecretsBox
from cambist.services.accounting.usage import list_usage
from cambist.services.actor import Actor
from cambist.services.addresses.macs import AddressMacs
from cambist.services.errors import InvalidError
from cambist.services.listing import Part
from cambist.services.paging import Cursors, Place
from cambist.services.payouts.read import list_payouts
from cambist.services.payouts.withdrawals import list_withdrawals
from cambist.services.receiving.accounts.deposits import Wanted, list_deposits
from cambist.services.receiving.accounts.read import list_accounts
from cambist.services.receiving.accounts.views import Presenter
from cambist.services.receiving.payments.read import Filters, list_payments
from cambist.services.reversals.refunds.read import list_refunds
from cambist.services.reversals.resolutions.read import list_resolutions
from cambist.services.sending.collections.listing import list_collections
from cambist.services.sending.gas.stakes import list_stake_requests
from cambist.services.webhooks.delivery_log import list_deliveries
from cambist.services.webhooks.events import EventFilters, list_events

pytestmark = pytest.mark.slow

MANY, LIMIT = 10_000, 10
OWNERS = """
INSERT INTO merchants (merchant_id, email, name) SELECT 'mer_' || n, n || '@b.c', 'Shop'
    FROM generate_series(1, 100) n;
INSERT INTO projects (project_id, merchant_pk, name, mode) SELECT 'prj_' || n, n, 'Shop', 'live'
    FROM generate_series(1, 100) n;
INSERT INTO addresses (mode, family, address, merchant_pk, account_index, change, address_index)
    VALUES ('live', 'memory', 'mem1', 1, 1, 0, 1)
"""
PAYMENTS = """
INSERT INTO payments (payment_id, public_id, project_pk, merchant_pk, mode, chain, scope, token, decimals, address,
    address_mac, pricing_mode, amount, expected_units, required_confirmations, expires_at, created_at, updated_at)
SELECT 'pay_' || $2 || n, 'pub_' || $2 || n, n % 100 + 1, n % 100 + 1, 'live', 'memory', 0, 'USDX', 6, 'mem1',
    '', 'direct_crypto', 1, 1, 1, now(), now(), now() FROM generate_series(1, $1::int) n
"""
PAYOUTS = """
INSERT INTO payouts (payout_id, kind, project_pk, merchant_pk, mode, chain, scope, token, decimals, to_address, units,
    created_at, updated_at)
SELECT 'po_' || $2 || n, ('{payout,auto_payout,refund,withdrawal}'::text[])[n / 100 % 4 + 1], n % 100 + 1, n % 100 + 1,
    'live', 'memory', 0, 'USDX', 6, 'mem1', 1, now(), now() FROM generate_series(1, $1::int) n
"""
EVENTS = """
INSERT INTO webhook_events (event_id, project_pk, event, resource, resource_id, body)
SELECT 'evt_' || $2 || n, n % 100 + 1, 'payment.paid', 'payment', 'pay_' || n, '{}' FROM generate_series(1, $1::int) n
"""
DELIVERIES = """
WITH told AS (
    INSERT INTO webhook_events (event_id, project_pk, event, resource, resource_id, body)
    SELECT 'evt_' || $2 || n, n % 100 + 1, 'payment.paid', 'payment', 'pay_' || n, '{}'
    FROM generate_series(1, $1::int) n RETURNING *
)
INSERT INTO webhook_deliveries (delivery_id, project_pk, event_pk, event, resource_id, due_at)
SELECT 'dlv_' || event_id, project_pk, id, event, resource_id, now() FROM told ORDER BY id
"""
USAGE = """
INSERT INTO usage_records (merchant_pk, mode, operation, reference, weight, created_at)
SELECT n % 100 + 1, 'live', 'payment', $2 || n, 1, now() FROM generate_series(1, $1::int) n
"""
INTENTS = """
INSERT INTO outbound_intents (reference, kind, mode, chain, scope, merchant_pk, source_address_pk, to_address, token,
    decimals, units, action, state, due_at, created_at, updated_at)
SELECT 'col:' || $2 || n, CASE n / 100 % 4 WHEN 0 THEN 'collection' WHEN 1 THEN 'stake' ELSE 'payout' END, 'live',
    'memory', 0, n % 100 + 1, 1, 'mem1', 'USDX', 6, 1, 'stake', 'done', now(), now(), now()
    FROM generate_series(1, $1::int) n
"""
DEPOSITS = """
INSERT INTO deposits (deposit_id, chain, scope, tx_id, position, mode, merchant_pk, address_pk, matches, token,
    decimals, units, height, block_hash, ordinal, mined_at, required_confirmations, status)
SELECT 'dep_' || $2 || n, 'memory', 0, $2 || n, '0', 'live', n % 10 + 1, 1, true, 'USDX', 6, 1, 1, 'b', 0, now(), 1,
    'confirmed' FROM generate_series(1, $1::int) n
"""
ACCOUNTS = """
INSERT INTO accounts (account_id, public_id, project_pk, merchant_pk, mode, external_id)
SELECT 'acc_' || $2 || n, 'pub_' || $2 || n, n % 100 + 1, 1, 'live', $2 || n FROM generate_series(1, $1::int) n
"""
ACCOUNT_DEPOSITS = """
WITH own AS (
    INSERT INTO accounts (account_id, public_id, project_pk, merchant_pk, mode, external_id)
    SELECT 'acc_1', 'pub_1', 1, 1, 'live', 'user-1' ON CONFLICT DO NOTHING
)
INSERT INTO deposits (deposit_id, chain, scope, tx_id, position, mode, merchant_pk, address_pk, account_pk, matches,
    token, decimals, units, height, block_hash, ordinal, mined_at, required_confirmations, status)
SELECT 'dep_' || $2 || n, 'memory', 0, $2 || n, '0', 'live', 1, 1, n % 100 + 1, true, 'USDX', 6, 1, 1, 'b', 0, now(), 1,
    'confirmed' FROM generate_series(1, $1::int) n
"""
REGISTRY = Registry({}, found=[])
PRESENTER = Presenter(macs=AddressMacs(SecretsBox([bytes(32)], bytes)), base_url="https://pay.example")
ACTOR = Actor(
    project_pk=1, project_id="prj_1", merchant_pk=1, merchant_id="mer_1", mode="live", is_active=True, key_pk=None
)


class Unchecked:
    """In the place of the MACs of addresses, which these rows have none of."""

    def check(self, payment):
        pass


class Listed(NamedTuple):
    """A list of the first merchant's: how it is filled, read, and by which index."""

    fill: str
    read: Callable[..., Any]
    index: str
    share: int
    """One row of so many is in it."""


LISTS = {
    "payments": Listed(
        PAYMENTS,
        lambda conn, part: list_payments(conn, 1, Unchecked(), Filters(), part),
        "ix_payments_project_pk",
        100,
    ),
    "accounts": Listed(
        ACCOUNTS,
        lambda conn, part: list_accounts(conn, 1, PRESENTER, part),
        "ix_accounts_project_pk",
        100,
    ),
    "deposits of an account": Listed(
        ACCOUNT_DEPOSITS,
        lambda conn, part: list_deposits(conn, 1, "acc_1", Wanted(), part),
        "ix_deposits_account_pk",
        100,
    ),
    "payouts": Listed(
        PAYOUTS,
        lambda conn, part: list_payouts(conn, 1, part),
        "ix_payouts_payouts",
        200,
    ),
    "refunds": Listed(PAYOUTS, lambda conn, part: list_refunds(conn, 1, part), "ix_payouts_refunds", 400),
    "withdrawals": Listed(
        PAYOUTS,
        lambda conn, part: list_withdrawals(conn, REGISTRY, 1, part),
        "ix_payouts_withdrawals",
        400,
    ),
    "deliveries": Listed(
        DELIVERIES, lambda conn, part: list_deliveries(conn, 1, part), "ix_webhook_deliveries_project_pk", 100
    ),
    "events": Listed(
        EVENTS,
        lambda conn, part: list_events(conn, 1, EventFilters(), part),
        "ix_webhook_events_project_pk",
        100,
    ),
    "usage": Listed(
        USAGE,
        lambda conn, part: list_usage(conn, 1, "live", part),
        "ix_usage_records_merchant_pk",
        100,
    ),
    "collections": Listed(
        INTENTS,
        lambda conn, part: list_collections(conn, 1, "live", part),
        "ix_outbound_intents_collections",
        400,
    ),
    "everybody's collections": Listed(
        INTENTS,
        lambda conn, part: list_collections(conn, None, "live", part),
        "ix_outbound_intents_all_collections",
        4,
    ),
    "stakes": Listed(
        INTENTS, lambda conn, part: list_stake_requests(conn, None, part), "ix_outbound_intents_stakes", 4
    ),
    "resolutions": Listed(
        DEPOSITS,
        lambda conn, part: list_resolutions(conn, ACTOR, part),
        "ix_deposits_held",
        10,
    ),
}


@pytest.fixture
async def fill(db):
    """Return what fills a list's table. Neither foreign keys nor triggers are looked up meanwhile."""
    async with db.transaction() as conn:
        for statement in OWNERS.split(";"):
            await conn.exec_driver_sql(statement)

    async def fill(listed, count, name="first"):
        async with db.transaction() as conn:
            await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
            await conn.exec_driver_sql(listed.fill, (count, f"{name}_"))

    return fill


@pytest.mark.parametrize("name", LISTS)
async def test_pages_together_are_the_whole_list_once_whatever_comes_in_between(db, fill, name):
    listed, count = LISTS[name], 4_000
    limit = count // listed.share // 6 + 1
    await fill(listed, count)
    async with db.autocommit() as conn:
        whole = (await listed.read(conn, Part(limit=count))).items
    seen, after, places = [], None, []
    while not places or after is not None:
        async with db.autocommit() as conn:
            page = await listed.read(conn, Part(limit=limit, after=after))
        assert page.total == (count + 400 * len(places)) // listed.share
        seen, after = [*seen, *page.items], page.last
        places.append(after)
        await fill(listed, 400, f"later{len(places)}")
    assert len(seen) == count // listed.share
    assert seen == list(whole)
    assert all((one.value, one.pk) > (two.value, two.pk) for one, two in pairwise(places[:-1]))


# What waits for a decision is few rows, which may as well be sorted: test_resolutions.py holds how they are found.
@pytest.mark.parametrize("name", sorted(LISTS.keys() - {"resolutions"}))
async def test_a_page_deep_in_a_long_list_is_found_by_an_index(db, fill, name):
    listed, asked = LISTS[name], []
    await fill(listed, MANY)
    async with db.autocommit() as conn:
        await conn.exec_driver_sql("VACUUM ANALYZE")
    event.listen(db.engine.sync_engine, "before_cursor_execute", lambda *call: asked.append(call[2:4]))
    async with db.autocommit() as conn:
        middle = (await listed.read(conn, Part(limit=1, page=MANY // listed.share // 2))).last
        asked.clear()
        page = await listed.read(conn, Part(limit=LIMIT, after=middle))
        assert len(page.items) == LIMIT
        # The statement of the page: the one that says where it goes on.
        ((statement, values),) = [call for call in asked if "AS picked" in call[0]]
    async with db.transaction() as conn:
        # What a list of a hundred rows might as well be sorted for.
        for other in ("enable_sort", "enable_bitmapscan"):
            await conn.exec_driver_sql(f"SET LOCAL {other} = off")
        text = (await conn.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values)).scalar_one()
    (path,) = paths((json.loads(text) if isinstance(text, str) else text)[0]["Plan"], listed.index)
    assert path[-1]["Actual Rows"] <= LIMIT + 1
    # What is sorted, if anything, is the page.
    assert all(node["Actual Rows"] <= LIMIT + 1 for node in path)


def paths(plan, index):
    """Yield the nodes from the top of a plan down to where the place in the list is found by the index."""
    if plan.get("Index Name") == index and " < " in plan.get("Index Cond", ""):
        yield [plan]
    for child in plan.get("Plans", ()):
        for path in paths(child, index):
            yield [plan, *path]


def test_a_cursor_is_of_one_list_and_one_owner_and_tells_nothing(ids):
    box = SecretsBox([bytes(32)], ids.random_bytes)
    cursors = Cursors(box, "payments", 7, "live")
    cursor = cursors.seal(12)
    assert cursor is not None
    assert cursors.place(cursor) == Place(12, 12)
    assert (cursors.seal(None), cursors.place(None)) == (None, None)
    assert cursors.place(cursors.seal(Place("Zürich", 7))) == Place("Zürich", 7)
    assert cursors.seal(12) != cursor, "the same place has another text each time"
    others = [Cursors(box, "payments", 8, "live"), Cursors(box, "payouts", 7, "live")]
    others.append(Cursors(SecretsBox([b"1" * 32], ids.random_bytes), "payments", 7, "live"))
    for other in others:
        with pytest.raises(InvalidError):
            other.place(cursor)
    for broken in ("abc", cursor[:-4] + "AAAA", "==", cursor + "\n", cursor + "é", cursor[:-1], f"{cursor}!"):
        with pytest.raises(InvalidError):
            cursors.place(broken)


async def test_the_refunds_of_one_payment_are_found_among_many_by_their_own_indexes(db, fill):
    asked = []
    await fill(LISTS["payments"], MANY)
    await fill(LISTS["refunds"], MANY)
    async with db.transaction() as conn:
        await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        await conn.exec_driver_sql(DEPOSITS, (MANY, "first_"))
        await conn.exec_driver_sql("UPDATE deposits SET payment_pk = id")
        # Half of the refunds are of a payment, the others of a deposit of one: 250 and 650 are of one payment.
        await conn.exec_driver_sql(
            "UPDATE payouts SET payment_pk = CASE WHEN id % 800 < 400 THEN id END,"
            " deposit_pk = CASE WHEN id % 800 >= 400 THEN id - 400 END WHERE kind = 'refund'"
        )
    async with db.autocommit() as conn:
        await conn.exec_driver_sql("VACUUM ANALYZE")
    event.listen(db.engine.sync_engine, "before_cursor_execute", lambda *call: asked.append(call[2:4]))
    async with db.transaction() as conn:
        page = await list_refunds(conn, 51, Part(), payment_id="pay_first_250")
        assert [one.refund_id for one in page.items] == ["po_first_650", "po_first_250"]
        assert (page.total, page.exact, page.last) == (2, True, None)
        assert (await list_refunds(conn, 52, Part(), payment_id="pay_first_250")).items == []
        statements = [call for call in asked if "FROM payouts" in call[0]]
        assert len(statements) == 4
        for statement, values in statements:
            text = (await conn.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values)).scalar_one()
            plan = (json.loads(text) if isinstance(text, str) else text)[0]["Plan"]
            assert max(rows_read(plan)) <= 2


def rows_read(plan):
    """Yield how many rows each node of a plan looked at."""
    yield plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    for child in plan.get("Plans", ()):
        yield from rows_read(child)
