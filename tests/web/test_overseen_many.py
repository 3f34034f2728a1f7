"""A text that names more than operators' lists look through finds the newest of it, and every answer says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cambist.services.oversight.finding import FOUND_MAX
from tests.support.web import ADMIN_KEY, refused

pytestmark = pytest.mark.slow

KEY = {"X-Admin-Key": ADMIN_KEY}
MANY = FOUND_MAX + 150
STEP = 7_919
"""A prime: rows are stored in another order than they were made in."""
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
# One that there is, again and again, each with an id and a time of its own.
COPIES = """
INSERT INTO {table} OVERRIDING SYSTEM VALUE
SELECT (jsonb_populate_record(one, jsonb_build_object('id', 1000000 + n, '{public}', 'many_' || n,
    '{made}', $2::timestamptz + n * {step} % $1 * interval '1 minute', {others}))).*
FROM {table} AS one, generate_series(1, $1::bigint) AS n
WHERE one.id = (SELECT min(id) FROM {table} WHERE {which})
"""
LISTED = """
INSERT INTO tracker_addresses (tracker_pk, chain, scope, address, added_at)
SELECT id, chain, 0, 'mem1often', now() FROM trackers WHERE webhook_id LIKE 'many_%'
"""


class Many:
    """So many rows of a table with something alike. ``ids`` are those that were made last, the newest first."""

    def __init__(self, table, public, made, others, *, step=STEP, which="true"):
        self.values = {"table": table, "public": public, "made": made, "others": others, "which": which, "step": step}
        places = sorted(range(1, MANY + 1), key=lambda n: n if made is None else n * step % MANY, reverse=True)
        self.ids = [f"many_{n}" for n in places[:FOUND_MAX]]

    async def store(self, gateway, more=None):
        values = self.values | {"made": self.values["made"] or "updated_at"}
        async with gateway.db.transaction() as conn:
            # Whose they are is not looked at.
            await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
            await conn.exec_driver_sql(COPIES.format(**values), (MANY, LONG_AGO))
            if more is not None:
                await conn.exec_driver_sql(more)


PAYOUTS = Many(
    "payouts", "payout_id", "created_at", "'to_address', 'mem1often', 'intent_pk', NULL", which="kind = 'payout'"
)
REFUNDS = "UPDATE payouts SET kind = 'refund' WHERE id % 2 = 0 AND to_address = 'mem1often'"
UNLIKE = "'public_id', 'pub_' || n, 'order_id', 'often', 'customer_email', 'Often@shop.example'"
OF_MANY = "'public_id', 'pub_' || n, 'external_id', 'often', 'project_pk', one.project_pk + 1000 * (n - 1)"

LAST = 1_000_000 + MANY
"""The copy that was made before all others."""
OWNED_BY_ALL = ", ".join(f"'{of}', one.{of} + 1000 * ({MANY} - n)" for of in ("merchant_pk", "project_pk"))
"""Each is another merchant's, and ``LAST`` whose the first one is."""
OF_ALL = f"'public_id', 'pub_' || n, 'external_id', 'often', {OWNED_BY_ALL}"


async def pages(client, path):
    """Return every page of a list, and all of its ids."""
    found, ids, cursor = [], [], ""
    while cursor is not None:
        answer = await client.get(f"/api/admin/{path}&limit=100{cursor and f'&cursor={cursor}'}", headers=KEY)
        assert answer.status_code == 200, answer.text
        found.append(answer.json())
        (items,) = [one for one in found[-1].values() if isinstance(one, list)]
        ids += [next(value for name, value in one.items() if str(value).startswith("many_")) for one in items]
        cursor = found[-1]["nextCursor"]
    return found, ids


async def check(client, name, text, many):
    """Hold a list, its file and the search of everything against what was made last."""
    for sort, ids in (("-createdAt", many.ids), ("createdAt", many.ids[::-1])):
        found, listed = await pages(client, f"{name}?search={text}&sort={sort}")
        assert listed == ids, (name, text, sort)
        assert {(one["total"], one["totalIsExact"]) for one in found} == {(FOUND_MAX, False)}
    file = await client.get(f"/api/admin/{name}?search={text}&format=csv", headers=KEY)
    refused(file, 400, "EXPORT_TOO_LARGE")
    told = (await client.get(f"/api/admin/search?q={text}", headers=KEY)).json()["found"]
    assert [one["id"] for one in told if one["kind"] == name] == many.ids[:10]


async def test_what_is_paid_out_to_one_address_again_and_again_is_found_from_the_newest_on(two_merchants, gateway):
    await PAYOUTS.store(gateway)
    await check(two_merchants.client, "payouts", "mem1often", PAYOUTS)
    narrow = f"payouts?search=mem1often&from={(LONG_AGO + timedelta(minutes=MANY - 3)):%Y-%m-%dT%H:%M:%SZ}"
    found, ids = await pages(two_merchants.client, narrow)
    assert (ids, found[0]["totalIsExact"]) == (PAYOUTS.ids[:3], False)


async def test_payouts_and_refunds_to_one_address_are_looked_through_together(two_merchants, gateway):
    await PAYOUTS.store(gateway, REFUNDS)
    for name, left in (("payouts", 1), ("refunds", 0)):
        found, ids = await pages(two_merchants.client, f"{name}?search=mem1often")
        assert ids == [one for one in PAYOUTS.ids if int(one.removeprefix("many_")) % 2 == left]
        assert (found[0]["total"], found[0]["totalIsExact"]) == (len(ids), False)
        told = (await two_merchants.client.get("/api/admin/search?q=mem1often", headers=KEY)).json()["found"]
        assert [one["id"] for one in told if one["kind"] == name] == ids[:10]


async def test_payments_of_one_order_and_of_one_customer_are_found_from_the_newest_on(two_merchants, gateway):
    of_order = Many("payments", "payment_id", "created_at", UNLIKE)
    await of_order.store(gateway)
    await check(two_merchants.client, "payments", "often", of_order)


async def test_payments_of_one_customer_are_found_from_the_one_stored_last_on(two_merchants, gateway):
    of_customer = Many("payments", "payment_id", "created_at", UNLIKE, step=1)
    of_customer.ids = [f"many_{n}" for n in range(MANY, MANY - FOUND_MAX, -1)]
    await of_customer.store(
        gateway,
        f"UPDATE payments SET created_at = '{LONG_AGO}'::timestamptz + (id - 1000000)"  # noqa: S608  the test's own
        " * interval '1 minute' WHERE order_id = 'often'",
    )
    await check(two_merchants.client, "payments", "often@SHOP.example", of_customer)


async def test_accounts_that_many_projects_call_alike_are_found_from_the_newest_on(two_merchants, gateway):
    accounts = Many("accounts", "account_id", "created_at", OF_MANY)
    await accounts.store(gateway)
    await check(two_merchants.client, "accounts", "often", accounts)


async def _own(gateway, table):
    """Return whose the oldest copy is, as filters: a merchant's and a project's, who have no other one."""
    query = f"""SELECT merchant_id, project_id FROM {table} one JOIN merchants m ON m.id = one.merchant_pk
        JOIN projects p ON p.id = one.project_pk WHERE one.id = {LAST}"""  # noqa: S608  the test's own
    async with gateway.db.autocommit() as conn:
        row = (await conn.exec_driver_sql(query)).one()
    return f"merchant={row.merchant_id}", f"project={row.project_id}"


async def _told(client, path):
    found, ids = await pages(client, path)
    file = await client.get(f"/api/admin/{path}&format=csv", headers=KEY)
    return len(ids), found[0]["total"], found[0]["totalIsExact"], file.status_code


async def test_deposits_of_accounts_that_are_called_alike_are_not_said_to_be_all(two_merchants, gateway):
    accounts = Many("accounts", "account_id", "created_at", OF_ALL)
    moved = f"UPDATE deposits SET account_pk = {LAST}, payment_pk = NULL, deposit_id = 'many_' || id"  # noqa: S608
    await accounts.store(gateway, moved)
    client, (merchant, project) = two_merchants.client, await _own(gateway, "accounts")
    assert await _told(client, "deposits?search=often") == (0, 0, False, 400)
    for narrow in (merchant, project):
        number, total, exact, status = await _told(client, f"deposits?search=often&{narrow}")
        assert (number, exact, status) == (total, True, 200)
        assert number
        assert await _told(client, f"accounts?search=often&{narrow}") == (1, 1, True, 200)


async def test_what_comes_of_payments_with_one_order_number_is_not_said_to_be_all(two_merchants, gateway):
    payments = Many("payments", "payment_id", "created_at", f"{UNLIKE}, {OWNED_BY_ALL}")
    moved = f"UPDATE payouts SET payment_pk = {LAST}, payout_id = 'many_' || id"  # noqa: S608
    await payments.store(gateway, moved)
    client, owners = two_merchants.client, await _own(gateway, "payments")
    for name in ("payouts", "refunds", "withdrawals", "deposits"):
        assert await _told(client, f"{name}?search=often") == (0, 0, False, 400)
        for narrow in owners:
            number, total, exact, status = await _told(client, f"{name}?search=often&{narrow}")
            assert (number, exact, status) == (total, True, 200)
    for narrow in owners:
        assert await _told(client, f"payments?search=often&{narrow}") == (1, 1, True, 200)


@pytest.mark.parametrize("by", ["accountId", "externalId", "address"])
async def test_deposits_of_one_account_are_found_from_the_newest_on(two_merchants, gateway, by):
    account = two_merchants.ids["account_id"]
    text = {"accountId": account, "externalId": "ada's user", "address": two_merchants.ids["address"]}[by]
    of_account = f"(SELECT id FROM accounts WHERE account_id = '{account}')"  # noqa: S608  the test's own
    others = f"'tx_id', 'tx_' || n, 'payment_pk', NULL, 'account_pk', {of_account}"
    deposits = Many("deposits", "deposit_id", "first_seen_at", others)
    await deposits.store(gateway)
    await check(two_merchants.client, "deposits", text, deposits)


async def test_trackers_with_one_address_are_found_from_the_newest_on(two_merchants, gateway):
    trackers = Many(
        "trackers", "webhook_id", "created_at", "'scope', 0, 'token_hash', to_jsonb(sha256(n::text::bytea))"
    )
    trackers.ids = [f"many_{n}" for n in range(MANY, MANY - FOUND_MAX, -1)]
    await trackers.store(gateway, LISTED)
    await check(two_merchants.client, "trackers", "mem1often", trackers)
