"""The wallet's statement over HTTP: what each entry says, paging, filters, and the file."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest

from cambist.services.accounting.ledger import Account, Movement, Posting, Purpose, post
from cambist_web.api import transactions
from tests.support.web import Merchant, refused

PATH = "/api/merchant/wallet/transactions"
FILE = f"{PATH}.csv"


async def row_of(gateway, merchant):
    async with gateway.db.transaction() as conn:
        found = await conn.exec_driver_sql("SELECT id FROM merchants WHERE merchant_id = $1", (merchant.merchant_id,))
        return found.scalar_one()


def usdx(gateway):
    return f"memory/{gateway.registry.chains['memory'].token('USDX').contract}"


class Books:
    """Posts for a merchant as the services do, by kind and reference."""

    def __init__(self, gateway, pk, mode="live"):
        self.gateway, self.pk, self.mode = gateway, pk, mode

    async def post(self, kind, reference, asset, *moves):
        movements = [
            Movement(Account(self.pk, asset, debit), Account(self.pk, asset, credit), units)
            for debit, credit, units in moves
        ]
        async with self.gateway.db.transaction() as conn:
            posting = Posting(mode=self.mode, kind=kind, reference=reference, movements=movements)
            await post(conn, self.mode, [posting])

    async def deposit(self, number, units, asset=None):
        asset = asset or usdx(self.gateway)
        await self.post("deposit", f"dep_{number}:1", asset, (Purpose.CUSTODY_DEPOSITS, Purpose.HELD, units))

    async def earn(self, number, units):
        await self.deposit(number, units)
        asset = usdx(self.gateway)
        await self.post("allocation", f"dep_{number}:1:{units}", asset, (Purpose.HELD, Purpose.AVAILABLE, units))


async def books_of(gateway, merchant, mode="live"):
    return Books(gateway, await row_of(gateway, merchant), mode)


async def entries(client, merchant, query=""):
    response = await client.get(PATH + query, headers=merchant.key)
    assert response.status_code == 200, response.text
    return response.json()


async def test_a_new_wallet_has_no_entries(client, merchant):
    assert await entries(client, merchant) == {
        "success": True,
        "mode": "live",
        "transactions": [],
        "page": 1,
        "limit": 25,
        "total": 0,
        "totalIsExact": True,
        "nextCursor": None,
    }


async def test_an_entry_says_from_where_to_where_and_whether_it_came_or_went(client, merchant, gateway):
    books = await books_of(gateway, merchant)
    asset = usdx(gateway)
    await books.earn(1, 5_500_000)
    await books.post("payout", "po_1", asset, (Purpose.AVAILABLE, Purpose.PENDING, 2_000_000))
    await books.post("payout_final", "po_1:1", asset, (Purpose.PENDING, Purpose.CUSTODY_WALLET, 2_000_000))
    await books.post("collection", "col_1", asset, (Purpose.CUSTODY_WALLET, Purpose.CUSTODY_DEPOSITS, 5_500_000))
    found = (await entries(client, merchant))["transactions"]
    told = [(entry["type"], entry["amount"], entry["from"], entry["to"]) for entry in found]
    assert told == [
        ("payout", "-2", "pending", None),
        ("payout", "-2", "available", "pending"),
        ("allocation", "5.5", "held", "available"),
        ("deposit", "5.5", None, "held"),
    ]
    assert {(entry["chain"], entry["token"]) for entry in found} == {("memory", "USDX")}
    assert found[0]["payoutId"] == "po_1"
    assert found[3]["depositId"] == "dep_1"
    assert len({entry["id"] for entry in found}) == 4
    assert all(entry["id"].startswith("led_") and entry["createdAt"].endswith("Z") for entry in found)


async def test_pages_follow_each_other_whatever_comes_in_between(client, merchant, gateway):
    books = await books_of(gateway, merchant)
    for number in range(7):
        await books.deposit(number, number + 1)
    seen, cursor = [], ""
    for page in range(3):
        answer = await entries(client, merchant, f"?limit=3{cursor}")
        assert (answer["page"], answer["total"]) == (1, 7 + page)
        seen += [entry["depositId"] for entry in answer["transactions"]]
        cursor = f"&cursor={answer['nextCursor']}"
        await books.deposit(f"later{page}", 1)
    assert seen == [f"dep_{number}" for number in reversed(range(7))]
    assert answer["nextCursor"] is None


async def test_the_oldest_come_first_where_that_is_asked_for_and_go_on_so(client, merchant, gateway, monkeypatch):
    books = await books_of(gateway, merchant)
    for number in range(7):
        await books.deposit(number, number + 1)
    seen, cursor = [], ""
    for _ in range(3):
        answer = await entries(client, merchant, f"?limit=3&sort=createdAt{cursor}")
        assert (answer["total"], answer["totalIsExact"]) == (7, True)
        seen += [entry["depositId"] for entry in answer["transactions"]]
        cursor = f"&cursor={answer['nextCursor']}"
    assert seen == [f"dep_{number}" for number in range(7)]
    assert answer["nextCursor"] is None
    second = await entries(client, merchant, "?limit=3&page=2&sort=createdAt")
    assert [entry["depositId"] for entry in second["transactions"]] == ["dep_3", "dep_4", "dep_5"]
    first = await entries(client, merchant, "?limit=3")
    path = f"{PATH}?limit=3&sort=createdAt&cursor={first['nextCursor']}"
    refused(await client.get(path, headers=merchant.key), 400, "VALIDATION_ERROR", "cursor")
    monkeypatch.setattr(transactions, "TOTAL_MAX", 5)
    many = await entries(client, merchant, "?limit=3")
    assert (many["total"], many["totalIsExact"]) == (5, False)


async def test_pages_are_counted_and_so_is_what_filters_leave(client, merchant, gateway):
    books = await books_of(gateway, merchant)
    for number in range(7):
        await books.deposit(number, number + 1)
    await books.earn(7, 8)
    pages = [await entries(client, merchant, f"?limit=4&page={page}") for page in (1, 2, 3, 4)]
    assert [(page["page"], page["total"], len(page["transactions"])) for page in pages] == [
        (1, 9, 4), (2, 9, 4), (3, 9, 1), (4, 9, 0),
    ]  # fmt: skip
    whole = await entries(client, merchant, "?limit=100")
    assert [one for page in pages for one in page["transactions"]] == whole["transactions"]
    assert [page["nextCursor"] is None for page in pages] == [False, False, True, True]
    second = await entries(client, merchant, f"?limit=2&page=2&cursor={pages[0]['nextCursor']}")
    assert second["transactions"] == whole["transactions"][6:8]
    assert (await entries(client, merchant, "?type=deposit"))["total"] == 8
    assert (await entries(client, merchant, "?type=allocation&limit=1"))["total"] == 1
    assert (await entries(client, merchant, "?chain=pretend"))["total"] == 0


async def test_a_page_behind_the_ten_thousandth_entry_is_reached_by_cursor_alone(client, merchant):
    assert (await entries(client, merchant, "?limit=100&page=100"))["transactions"] == []
    for query in ("?limit=100&page=101", "?limit=1&page=10001"):
        refused(await client.get(PATH + query, headers=merchant.key), 400, "VALIDATION_ERROR", "page")


async def test_a_cursor_is_of_one_merchant_and_mode(client, merchant, gateway):
    books = await books_of(gateway, merchant)
    for number in range(3):
        await books.deposit(number, 1)
    cursor = (await entries(client, merchant, "?limit=1"))["nextCursor"]
    other = await Merchant(client).open("bob@shop.example")
    for wrong, who in ((cursor, other), ("abc", merchant), (cursor[:-4] + "AAAA", merchant), ("%3D%3D", merchant)):
        response = await client.get(f"{PATH}?cursor={wrong}", headers=who.key)
        refused(response, 400, "VALIDATION_ERROR", "cursor")


async def test_a_cursor_goes_on_under_the_filters_that_it_was_made_under_alone(client, merchant, gateway):
    books = await books_of(gateway, merchant)
    for number in range(3):
        await books.earn(number, 1)
    cursor = (await entries(client, merchant, "?type=deposit&from=2020-01-01&limit=1"))["nextCursor"]
    for filters in ("", "type=allocation", "type=deposit", "type=deposit&from=2020-01-02", "type=deposit&token=USDX"):
        response = await client.get(f"{PATH}?limit=1&cursor={cursor}&{filters}", headers=merchant.key)
        refused(response, 400, "VALIDATION_ERROR", "cursor")
    # The same moment in other words.
    same = await entries(client, merchant, f"?type=deposit&from=2020-01-01T00:00:00Z&limit=2&cursor={cursor}")
    assert [entry["depositId"] for entry in same["transactions"]] == ["dep_1", "dep_0"]


async def test_entries_are_filtered_by_chain_token_and_type(client, merchant, gateway):
    books = await books_of(gateway, merchant)
    await books.earn(1, 10)
    await books.deposit(2, 20, "memory/native")
    await books.post("something_new", "x", usdx(gateway), (Purpose.AVAILABLE, Purpose.CUSTODY_DEPOSITS, 1))

    async def types(query):
        return [(one["type"], one["token"]) for one in (await entries(client, merchant, query))["transactions"]]

    assert await types("?type=deposit") == [("deposit", "MEM"), ("deposit", "USDX")]
    assert await types("?type=deposit&token=MEM") == [("deposit", "MEM")]
    assert await types("?type=adjustment") == [("adjustment", "USDX")]
    assert await types("?chain=memory&token=MEM") == [("deposit", "MEM")]
    assert await types("?chain=pretend") == []
    assert await types("?type=refund") == []


async def test_entries_are_filtered_by_time(client, merchant, gateway):
    books = await books_of(gateway, merchant)
    await books.deposit(1, 10)
    (entry,) = (await entries(client, merchant))["transactions"]
    at = entry["createdAt"]

    async def count(query):
        return len((await entries(client, merchant, query))["transactions"])

    assert await count(f"?from={at}") == 1
    assert await count(f"?to={at}") == 0
    assert await count("?from=2020-01-01&to=2100-01-01T00:00:00Z") == 1
    assert await count("?from=2100-01-01") == 0
    assert await count("?to=2020-01-01") == 0


async def test_filters_that_cannot_be_meant_are_refused_by_field(client, merchant):
    async def ask(query):
        return await client.get(f"{PATH}?{query}", headers=merchant.key)

    refused(await ask("chain=nowhere"), 400, "UNSUPPORTED_CHAIN", "chain")
    refused(await ask("chain=memory&token=NOPE"), 400, "UNSUPPORTED_TOKEN", "token")
    refused(await ask("token=NOPE"), 400, "UNSUPPORTED_TOKEN", "token")
    refused(await ask("type=gift"), 400, "VALIDATION_ERROR", "type")
    refused(await ask("from=yesterday"), 400, "VALIDATION_ERROR", "from")
    refused(await ask("to=2026-13-01"), 400, "VALIDATION_ERROR", "to")
    refused(await ask("from=2026-01-02&to=2026-01-02"), 400, "VALIDATION_ERROR", "to")
    refused(await ask("limit=101"), 400, "VALIDATION_ERROR", "limit")
    refused(await ask("limit=0"), 400, "VALIDATION_ERROR", "limit")


async def test_nobody_sees_what_another_merchant_or_the_other_mode_did(client, merchant, gateway):
    live = merchant.key
    await (await books_of(gateway, merchant)).deposit(1, 10)
    await merchant.add_project(mode="sandbox")
    await (await books_of(gateway, merchant, "sandbox")).deposit(2, 20)
    other = await Merchant(client).open("bob@shop.example")
    assert (await entries(client, other))["transactions"] == []
    (sandbox,) = (await entries(client, merchant))["transactions"]
    assert sandbox["depositId"] == "dep_2"
    (found,) = (await client.get(PATH, headers=live)).json()["transactions"]
    assert found["depositId"] == "dep_1"
    in_person = f"/api/dashboard/projects/{merchant.project_id}/wallet/transactions"
    assert (await client.get(in_person, headers=merchant.bearer)).json()["transactions"] == [sandbox]


async def price(gateway, symbol, value, at):
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO price_points (symbol, fiat_currency, observed_at, value, source)"
            " VALUES ($1, 'usd', $2, $3::text::numeric, 'test')",
            (symbol, at, value),
        )


async def test_an_entry_is_worth_what_it_was_worth_at_the_time(client, merchant, gateway):
    books = await books_of(gateway, merchant)
    await books.deposit(1, 10_000_000)
    await books.deposit(2, 1, "memory/native")
    async with gateway.db.transaction() as conn:
        at = (await conn.exec_driver_sql("SELECT max(created_at) FROM ledger_transactions")).scalar_one()
    await price(gateway, "USDX", "3", at - timedelta(hours=1))
    await price(gateway, "USDX", "0.99951", at - timedelta(minutes=1))
    await price(gateway, "USDX", "7", at + timedelta(minutes=1))
    await price(gateway, "MEM", "2", at - timedelta(hours=3))
    native, token = (await entries(client, merchant))["transactions"]
    assert token["fiatValue"] == {"usd": "10.00"}
    assert native["fiatValue"] is None  # the only price is too old to say anything


@pytest.mark.slow
async def test_the_file_holds_every_entry_and_its_columns_sum_up_to_the_balances(client, merchant, gateway):
    books = await books_of(gateway, merchant)
    for number in range(1_100):
        await books.deposit(number, 1_000_000)
    await books.post("payout", "po_1", usdx(gateway), (Purpose.HELD, Purpose.AVAILABLE, 250_500_000))
    response = await client.get(FILE, headers=merchant.key)
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == 'attachment; filename="transactions-live-2026-01-01.csv"'
    lines = list(csv.DictReader(io.StringIO(response.text)))
    assert len(lines) == 1_101
    assert len({line["id"] for line in lines}) == 1_101
    assert sum(float(line["held"]) for line in lines) == 849.5
    assert sum(float(line["available"]) for line in lines) == 250.5
    one = list(csv.DictReader(io.StringIO((await client.get(f"{FILE}?type=payout", headers=merchant.key)).text)))
    assert [(line["payoutId"], line["amount"], line["from"]) for line in one] == [("po_1", "250.5", "held")]
    refused(await client.get(f"{FILE}?type=gift", headers=merchant.key), 400, "VALIDATION_ERROR", "type")


async def test_the_file_names_what_each_entry_is_of_and_when_as_the_answers_do(client, merchant, gateway):
    books, asset = await books_of(gateway, merchant), usdx(gateway)
    await books.earn(1, 5_000_000)
    for kind, reference in (("payout", "po_1"), ("refund", "ref_1"), ("withdrawal", "wd_1")):
        await books.post(kind, reference, asset, (Purpose.AVAILABLE, Purpose.CUSTODY_WALLET, 1_000_000))
    told = (await entries(client, merchant))["transactions"]
    lines = list(csv.DictReader(io.StringIO((await client.get(FILE, headers=merchant.key)).text)))
    named = ("id", "createdAt", "payoutId", "refundId", "withdrawalId", "depositId")
    assert [[line[name] for name in named] for line in lines] == [
        [one.get(name) or "" for name in named] for one in told
    ]
    assert {one for line in lines for one in (line["payoutId"], line["refundId"], line["withdrawalId"])} == {
        "", "po_1", "ref_1", "wd_1",
    }  # fmt: skip


async def test_addresses_of_the_wallet_stay_the_same(client, merchant):
    first = (await client.get("/api/merchant/wallet/addresses", headers=merchant.key)).json()
    (address,) = first["addresses"]
    assert (address["family"], address["chains"]) == ("memory", ["memory"])
    assert address["address"].startswith("mem1")
    in_person = f"/api/dashboard/projects/{merchant.project_id}/wallet/addresses"
    assert (await client.get(in_person, headers=merchant.bearer)).json() == first
    await merchant.add_project(mode="sandbox")
    sandbox = (await client.get("/api/merchant/wallet/addresses", headers=merchant.key)).json()
    assert sandbox["addresses"][0]["address"] != address["address"]
