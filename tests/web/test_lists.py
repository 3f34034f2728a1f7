"""What every list does with its query: orders, times, cursors that are bound to both, and files."""

from __future__ import annotations

import asyncio
import csv
import io

import pytest

from cambist.services import bounded
from cambist_web import file_permits, lists
from cambist_web.ratelimit import RateLimit
from tests.support.web import Merchant, refused

ORDER = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1"}


async def pay(client, merchant, **fields):
    answer = await client.post("/api/payment", json=ORDER | fields, headers=merchant.key)
    return answer.json()["payment"]["paymentId"]


@pytest.fixture
async def three(client, merchant, clock):
    made = []
    for number in range(3):
        made.append(await pay(client, merchant, orderId=f"=A-{number}"))
        clock.advance(3600)
    return made


async def get(client, merchant, query):
    return (await client.get(f"/api/payment?{query}", headers=merchant.key)).json()


async def ids(client, merchant, query):
    return [one["paymentId"] for one in (await get(client, merchant, query))["payments"]]


async def test_lists_are_sorted_either_way_and_go_on_in_the_same_order(client, merchant, three):
    assert await ids(client, merchant, "sort=-createdAt") == three[::-1]
    first = await get(client, merchant, "sort=createdAt&limit=2")
    assert [one["paymentId"] for one in first["payments"]] == three[:2]
    assert (first["total"], first["totalIsExact"]) == (3, True)
    assert await ids(client, merchant, f"sort=createdAt&limit=2&cursor={first['nextCursor']}") == three[2:]
    refused(await client.get("/api/payment?sort=amount", headers=merchant.key), 400, "VALIDATION_ERROR", "sort")


async def test_all_that_a_handler_asks_for_is_made_in_the_requests_own_task(client, merchant):
    """A task for each part takes longer than its work, for each request of everybody."""
    loop, begun = asyncio.get_running_loop(), []

    def begin(loop, work, **options):
        begun.append(work.__qualname__)
        return asyncio.Task(work, loop=loop, **options)

    loop.set_task_factory(begin)
    try:
        answers = [
            await client.get("/api/payment", headers=merchant.key),
            await client.post("/api/account", json={"externalId": "1", "chains": ["memory"]}, headers=merchant.key),
        ]
    finally:
        loop.set_task_factory(None)
    assert [answer.status_code for answer in answers] == [200, 201]
    assert begun == []


@pytest.mark.parametrize(
    "change", ["", "sort=-createdAt", "sort=createdAt&status=pending", "sort=createdAt&from=2020-01-01"]
)
async def test_a_cursor_is_good_for_one_order_and_the_same_filters(client, merchant, three, change):
    cursor = (await get(client, merchant, "sort=createdAt&limit=1"))["nextCursor"]
    answer = await client.get(f"/api/payment?{change}&cursor={cursor}", headers=merchant.key)
    refused(answer, 400, "VALIDATION_ERROR", "cursor")


async def test_lists_are_of_a_time(client, merchant, three, clock):
    refunds = "/api/payment/refunds/list"
    for path in ("/api/payment", refunds, "/api/account", "/api/merchant/wallet/payouts"):
        query = f"{path}?from=2026-02-01&to=2026-01-01"
        refused(await client.get(query, headers=merchant.key), 400, "VALIDATION_ERROR", "to")
    payments = (await get(client, merchant, ""))["payments"]
    middle = payments[1]["createdAt"]
    assert await ids(client, merchant, f"from={middle}") == three[:0:-1]
    assert await ids(client, merchant, f"to={middle}") == three[:1]


async def test_a_file_has_the_whole_list_and_nothing_that_a_spreadsheet_runs(client, merchant, three, monkeypatch):
    monkeypatch.setattr(lists, "BATCH", 2)
    answer = await client.get("/api/payment?format=csv&sort=createdAt&limit=1", headers=merchant.key)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"].startswith('attachment; filename="payments-')
    lines = list(csv.DictReader(io.StringIO(answer.text)))
    assert [one["paymentId"] for one in lines] == three
    assert [one["orderId"] for one in lines] == ["'=A-0", "'=A-1", "'=A-2"]
    shown = (await get(client, merchant, "sort=createdAt"))["payments"][0]
    assert lines[0].keys() >= shown.keys()
    assert {name: lines[0][name] for name in ("amount", "createdAt", "decimals")} == {
        "amount": "1",
        "createdAt": shown["createdAt"],
        "decimals": "6",
    }
    one = await client.get("/api/payment?format=csv&orderId=%3DA-1", headers=merchant.key)
    assert len(one.text.splitlines()) == 2


async def test_a_file_that_would_be_too_long_is_refused_before_it_begins(client, merchant, three, monkeypatch):
    monkeypatch.setattr(lists, "EXPORT_MAX", 2)
    refused(await client.get("/api/payment?format=csv", headers=merchant.key), 400, "EXPORT_TOO_LARGE")
    answer = await client.get("/api/payment?format=csv&orderId=%3DA-1", headers=merchant.key)
    assert answer.status_code == 200


async def test_a_file_that_takes_too_long_to_count_is_given_up_and_says_so(gateway, client, merchant, monkeypatch):
    monkeypatch.setattr(bounded, "STATEMENT_MS_MAX", 50)
    async with gateway.db.transaction() as conn:
        # A statement that waits takes as long as one that reads too much.
        await conn.exec_driver_sql("LOCK TABLE payments IN ACCESS EXCLUSIVE MODE")
        answer = await client.get("/api/payment?format=csv&amount=0.000001", headers=merchant.key)
    refused(answer, 503, "TOO_SLOW")


async def test_a_merchant_has_so_many_files_in_a_minute_and_no_other_merchant_fewer(client, merchant, three):
    other = await Merchant(client).open("bob@shop.example")
    client._transport.app.state.web.limits.files = RateLimit("files", 2)
    paths = ("/api/payment?format=csv", "/api/account?format=csv", "/api/merchant/wallet/transactions.csv")
    for path in paths[:2]:
        assert (await client.get(path, headers=merchant.key)).status_code == 200
    for path in paths:
        refused(await client.get(path, headers=merchant.key), 429, "RATE_LIMITED")
    assert len((await get(client, merchant, ""))["payments"]) == 3
    assert (await client.get(paths[0], headers=other.key)).status_code == 200


FILES = ("/api/payment?format=csv", "/api/merchant/wallet/transactions.csv")


async def has_waiters(permits, count):
    for _ in range(1_500):
        if len(permits._waiters or ()) == count:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{len(permits._waiters or ())} wait")


@pytest.mark.slow
@pytest.mark.parametrize("path, lines", [(FILES[0], 4), (FILES[1], 1)])
@pytest.mark.parametrize("kind", ["counts", "reads"])
async def test_files_wait_for_each_other_and_keep_no_connection_from_others(
    client, merchant, three, monkeypatch, path, lines, kind
):
    web = client._transport.app.state.web
    permits = asyncio.Semaphore(1)
    monkeypatch.setattr(web.files, kind, permits)
    async with permits:
        asked = [asyncio.create_task(client.get(path, headers=merchant.key)) for _ in range(8)]
        await has_waiters(permits, 1 if kind == "counts" else len(asked))
        for own in web.files._own.values():
            await has_waiters(own, len(asked) - 1)
        assert not any(one.done() for one in asked)
        # All have been let in, and wait. Who waited with a connection in hand would hold all of the pool.
        assert web.db.engine.pool.checkedout() <= 1
        assert len((await get(client, merchant, ""))["payments"]) == 3
    assert {len((await one).text.splitlines()) for one in asked} == {lines}


async def test_counts_that_take_long_keep_no_file_waiting_that_has_begun(client, merchant, three, monkeypatch):
    web = client._transport.app.state.web
    reads = asyncio.Semaphore(1)
    monkeypatch.setattr(web.files, "reads", reads)
    async with reads:
        begun = asyncio.create_task(client.get(FILES[0], headers=merchant.key))
        await has_waiters(reads, 1)
        for _ in range(file_permits.COUNTS_AT_ONCE):
            await web.files.counts.acquire()
    assert len((await begun).text.splitlines()) == 4


@pytest.mark.parametrize("path", FILES)
async def test_who_waits_too_long_for_a_file_to_begin_is_told_so(client, merchant, three, monkeypatch, path):
    web = client._transport.app.state.web
    monkeypatch.setattr(file_permits, "COUNT_WAIT_S", 0.05)
    for _ in range(file_permits.COUNTS_AT_ONCE):
        await web.files.counts.acquire()
    refused(await client.get(path, headers=merchant.key), 429, "BUSY")
    web.files.counts.release()
    assert (await client.get(path, headers=merchant.key)).status_code == 200, "no slot is lost"


async def test_who_asks_for_many_files_at_once_keeps_nobody_else_from_theirs(client):
    files, go_on, counted = client._transport.app.state.web.files, asyncio.Event(), []

    async def count(who):
        async with files.counting(who):
            counted.append(who)
            await go_on.wait()

    asked = [asyncio.create_task(count(who)) for who in ["mer_1"] * 5 + ["mer_2"]]
    async with asyncio.timeout(30):
        while len(counted) < file_permits.COUNTS_AT_ONCE:  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.01)
    assert sorted(counted) == ["mer_1", "mer_2"]
    go_on.set()
    await asyncio.gather(*asked)
    assert counted.count("mer_1") == 5


async def test_a_statement_takes_no_longer_to_count_than_other_files(gateway, client, merchant, monkeypatch):
    monkeypatch.setattr(bounded, "STATEMENT_MS_MAX", 50)
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("LOCK TABLE ledger_movements IN ACCESS EXCLUSIVE MODE")
        answer = await client.get(FILES[1], headers=merchant.key)
    refused(answer, 503, "TOO_SLOW")


async def test_a_statement_that_the_database_gives_up_is_no_mistake_of_ours(gateway, client, merchant):
    async with gateway.db.transaction() as conn, gateway.db.autocommit() as watching:
        await conn.exec_driver_sql("LOCK TABLE payments IN ACCESS EXCLUSIVE MODE")
        asked = asyncio.create_task(client.get("/api/payment", headers=merchant.key))
        given_up = (
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        for _ in range(500):
            if (await watching.exec_driver_sql(given_up)).first() is not None:
                break
            await asyncio.sleep(0.02)
        refused(await asked, 503, "TOO_SLOW")


async def test_accounts_are_sorted_by_the_name_that_the_merchant_gave(client, merchant):
    for name in ("b", "Zürich", "a"):
        body = {"externalId": name, "chains": ["memory"]}
        await client.post("/api/account", json=body, headers=merchant.key)

    async def page(query):
        return (await client.get(f"/api/account?{query}", headers=merchant.key)).json()

    seen, query = [], "sort=externalId&limit=1"
    while query:
        found = await page(query)
        seen += [one["externalId"] for one in found["accounts"]]
        cursor = found["nextCursor"]
        query = cursor and f"sort=externalId&limit=1&cursor={cursor}"
    assert sorted(seen) == sorted(["b", "Zürich", "a"])
    assert [one["externalId"] for one in (await page("sort=-externalId"))["accounts"]] == seen[::-1]
