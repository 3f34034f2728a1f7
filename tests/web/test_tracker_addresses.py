"""A tracker's list of addresses and what it told: added, changed, removed and listed by whoever has its token."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from cambist.services.trackers import additions, bodies
from cambist.services.trackers.addresses import METADATA_BYTES_MAX, ROWS_MAX
from tests.support.tracker_api import make, watched
from tests.support.web import refused


@pytest.fixture
def merchant(sandbox_merchant):
    return sandbox_merchant


@pytest.fixture
async def tracker(client, merchant):
    return await make(client, merchant.key)


async def on_list(tracker):
    return [one["address"] for one in (await tracker.told("address/list?limit=100"))["addresses"]]


def fates(answer):
    return [one["result"] for one in answer["results"]]


async def rows(gateway, query):
    async with gateway.db.autocommit() as conn:
        return [tuple(row) for row in await conn.exec_driver_sql(query)]


async def test_an_address_is_spelled_as_its_chain_does_and_found_however_it_is_written(client, gateway, tracker):
    added = await tracker.done("address/add", {"address": watched(1).upper(), "label": "Hot", "metadata": {"z": 1.50}})
    assert added["result"] == "added"
    assert added["address"].items() >= {"address": watched(1), "label": "Hot", "metadata": {"z": 1.5}}.items()
    await tracker.done("address/add", {"address": watched(2)})
    found = await tracker.told(f"address/list?address={watched(1).upper()}")
    assert (found["addresses"], found["total"]) == ([added["address"]], 1)
    assert await on_list(tracker) == [watched(2), watched(1)]
    tracked = await rows(gateway, "SELECT mode, family, address FROM tracked_addresses ORDER BY address")
    assert tracked == [("sandbox", "memory", one) for one in sorted((watched(1), watched(2)))]


async def test_what_is_watched_already_stays_as_it_is(tracker):
    first = await tracker.done("address/add", {"address": watched(1), "label": "Hot"})
    again = await tracker.done("address/add", {"address": watched(1), "label": "Cold"})
    assert (again["result"], again["address"]) == ("exists", first["address"])


@pytest.mark.parametrize(
    "body, code, field",
    [
        ({"address": "nowhere"}, "INVALID_ADDRESS", "address"),
        ({"address": ""}, "INVALID_ADDRESS", "address"),
        ({"address": 5}, "VALIDATION_ERROR", "address"),
        ({}, "VALIDATION_ERROR", "address"),
        ({"address": watched(1), "label": "x" * 101}, "VALIDATION_ERROR", "label"),
        ({"address": watched(1), "label": "a\u202eb"}, "VALIDATION_ERROR", "label"),
        ({"address": watched(1), "metadata": {"x": "y" * METADATA_BYTES_MAX}}, "VALIDATION_ERROR", "metadata"),
        ({"address": watched(1), "metadata": "text"}, "VALIDATION_ERROR", "metadata"),
        ({"address": watched(1), "tag": "5"}, "VALIDATION_ERROR", "tag"),
    ],
)
async def test_an_address_that_cannot_be_meant_is_refused_by_its_field(tracker, body, code, field):
    refused(await tracker.post("address/add", body), 400, code, field)
    assert await on_list(tracker) == []


async def test_each_row_of_many_has_its_own_fate(tracker):
    await tracker.done("address/add", {"address": watched(1)})
    sent = [
        watched(1),
        watched(2),
        {"address": watched(3), "label": "Hot", "metadata": {"a": "two\nlines"}},
        "nowhere",
        watched(2).upper(),
        {"address": watched(4), "label": "x" * 101},
        {"address": watched(5), "metadata": {"x": "y" * METADATA_BYTES_MAX}},
        "",
        "x" * 5_000,
        watched(6),
    ]
    answer = await tracker.done("address/add-bulk", {"addresses": sent})
    expected = ["exists", "added", "added", "invalid", "exists", "invalid", "invalid", "invalid", "invalid", "added"]
    assert fates(answer) == expected
    assert [one["index"] for one in answer["results"]] == list(range(10))
    assert {name: answer[name] for name in ("added", "exists", "invalid", "overLimit")} == {
        "added": 3,
        "exists": 2,
        "invalid": 5,
        "overLimit": 0,
    }
    assert all((one["reason"] is None) == (one["result"] != "invalid") for one in answer["results"])
    assert "100 characters" in answer["results"][5]["reason"]
    assert len(answer["results"][8]["address"]) == 200
    found = (await tracker.told("address/list"))["addresses"]
    assert [one["address"] for one in found] == [watched(6), watched(3), watched(2), watched(1)]
    assert (found[1]["label"], found[1]["metadata"]) == ("Hot", {"a": "two\nlines"})
    assert fates(await tracker.done("address/add-bulk", {"addresses": sent})).count("added") == 0


async def test_a_row_with_text_that_nobody_sees_is_refused_alone(tracker):
    """As of a spreadsheet, where one of ten thousand ends in a line break."""
    sent = [
        watched(1),
        watched(2) + "\n",
        watched(2) + "\u200b",
        {"address": watched(3) + "\ufeff"},
        {"address": watched(4), "label": "a\u202eb"},
        {"address": watched(5), "metadata": {"a": [{"b": "a\u200bb"}]}},
        {"address": watched(6), "metadata": {"a\u200b": 1}},
        watched(7),
    ]
    answer = await tracker.done("address/add-bulk", {"addresses": sent})
    assert fates(answer) == ["added", *["invalid"] * 6, "added"]
    assert [one["reason"][:8] for one in answer["results"][4:7]] == ["label mu", "metadata", "metadata"]
    removed = await tracker.done("address/remove-bulk", {"addresses": [watched(1) + "\t", watched(7)]})
    assert fates(removed)[1] == "removed"
    assert await on_list(tracker) == [watched(1)]
    # No database takes this one.
    for wrong in (watched(8) + "\0", {"address": watched(8), "label": "\0"}, {"address": watched(8), "\0": 1}):
        refused(await tracker.post("address/add-bulk", {"addresses": [wrong]}), 400, "VALIDATION_ERROR")


@pytest.mark.parametrize("path", ["address/add-bulk", "address/remove-bulk"])
async def test_a_bulk_that_has_no_such_shape_is_refused_whole(tracker, path):
    for body in ({"addresses": []}, {"addresses": [5]}, {"addresses": watched(1)}, {"addresses": [{}]}, {}):
        refused(await tracker.post(path, body), 400, "VALIDATION_ERROR")
    body = {"addresses": [watched(1), {"address": watched(2), "lable": "x"}]}
    refused(await tracker.post(path, body), 400, "VALIDATION_ERROR", "addresses[1].lable")
    body = {"addresses": [watched(1)] * (ROWS_MAX + 1)}
    refused(await tracker.post(path, body), 400, "VALIDATION_ERROR", "addresses")
    assert await on_list(tracker) == []


async def test_rows_are_taken_in_their_order_until_the_list_is_full(client, gateway, merchant):
    tracker = await make(client, merchant.key, maxAddresses=3)
    answer = await tracker.done("address/add-bulk", {"addresses": [watched(n) for n in (1, 2, 1, 3, 4, 2, 5)]})
    assert fates(answer) == ["added", "added", "exists", "added", "over_limit", "exists", "over_limit"]
    assert answer["overLimit"] == 2
    assert "maxAddresses is 3" in answer["results"][4]["reason"]
    full = refused(await tracker.post("address/add", {"address": watched(6)}), 409, "TOO_MANY_ADDRESSES")
    assert full["error"] == "maxAddresses is 3, and as many are watched. Raise it, or remove some."
    assert (await tracker.done("address/add", {"address": watched(1)}))["result"] == "exists"
    await tracker.done("address/remove", {"address": watched(1)})
    assert (await tracker.done("address/add", {"address": watched(6)}))["result"] == "added"
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO tracker_addresses (tracker_pk, chain, scope, address)"
            " SELECT id, chain, scope, 'x' || n FROM trackers,"
            " generate_series(1, 997) n"
        )
        await conn.exec_driver_sql("UPDATE trackers SET max_addresses = 5000")
    refused(await tracker.post("address/add", {"address": watched(7)}), 403, "PLAN_LIMIT")
    assert fates(await tracker.done("address/add-bulk", {"addresses": [watched(7)]})) == ["over_limit"]


async def test_adding_and_removing_for_ever_is_bounded_by_the_month(client, gateway, merchant, clock, monkeypatch):
    monkeypatch.setattr(additions, "most", lambda _: 4)
    tracker = await make(client, merchant.key)
    answer = await tracker.done("address/add-bulk", {"addresses": [watched(n) for n in range(3)]})
    assert fates(answer) == ["added"] * 3
    await tracker.done("address/remove-bulk", {"addresses": [watched(n) for n in range(3)]})
    # What was watched before is no new one, whoever watched it.
    other = await make(client, merchant.key)
    answer = await other.done("address/add-bulk", {"addresses": [watched(n) for n in (0, 3, 4, 1)]})
    assert fates(answer) == ["added", "added", "over_limit", "added"]
    assert "4 addresses a month" in answer["results"][2]["reason"]
    refused(await tracker.post("address/add", {"address": watched(5)}), 403, "PLAN_LIMIT")
    assert len(await rows(gateway, "SELECT * FROM tracked_addresses")) == 4
    clock.advance(31 * 86_400)
    assert (await tracker.done("address/add", {"address": watched(5)}))["result"] == "added"


async def test_trackers_that_add_at_once_share_the_months_room_and_use_it_once_for_each_address(
    client, gateway, merchant, monkeypatch
):
    monkeypatch.setattr(additions, "most", lambda _: 4)
    trackers = [await make(client, merchant.key) for _ in range(6)]

    async def add_at_once(*lists):
        answers = await asyncio.gather(
            *(
                tracker.done("address/add-bulk", {"addresses": [watched(n) for n in numbers]})
                for tracker, numbers in zip(trackers, lists, strict=True)
            )
        )
        return Counter(fate for answer in answers for fate in fates(answer))

    assert await add_at_once(*[[1, 2, 3]] * 6) == {"added": 18}
    assert await add_at_once(*[[10 + n, 20 + n] for n in range(6)]) == {"added": 1, "over_limit": 11}
    assert await rows(gateway, "SELECT added, (SELECT count(*) FROM tracked_addresses) FROM tracker_additions") == [
        (4, 4)
    ]


async def test_however_many_add_at_once_the_list_is_never_longer_than_it_may_be(client, merchant):
    tracker = await make(client, merchant.key, maxAddresses=50)
    overlapping = [[watched(n) for n in range(start, start + 20)] for start in range(0, 80, 10)]
    answers = await asyncio.gather(*[tracker.done("address/add-bulk", {"addresses": part}) for part in overlapping])
    assert sum(answer["added"] for answer in answers) == 50
    assert (await tracker.told())["webhook"]["addresses"] == 50
    singles = await asyncio.gather(*[tracker.post("address/add", {"address": watched(200 + n)}) for n in range(5)])
    assert {answer.status_code for answer in singles} == {409}


async def test_trackers_that_share_addresses_never_wait_for_each_other_in_a_circle(client, merchant):
    trackers = [await make(client, merchant.key) for _ in range(6)]
    addresses = [watched(n) for n in range(300)]
    parts = [addresses[::-1] if number % 2 else addresses for number in range(6)]
    answers = await asyncio.gather(
        *[one.done("address/add-bulk", {"addresses": part}) for one, part in zip(trackers, parts, strict=True)]
    )
    assert [answer["added"] for answer in answers] == [300] * 6


async def test_lowering_the_limit_and_adding_at_once_leave_no_more_than_the_limit(client, merchant):
    tracker = await make(client, merchant.key)
    adding = [tracker.post("address/add-bulk", {"addresses": [watched(n * 5 + k) for k in range(5)]}) for n in range(6)]
    await asyncio.gather(*adding[:3], tracker.post("update", {"maxAddresses": 12}), *adding[3:])
    webhook = (await tracker.told())["webhook"]
    assert webhook["addresses"] <= webhook["maxAddresses"]


async def test_label_and_metadata_are_changed_where_they_are_sent(tracker):
    await tracker.done("address/add", {"address": watched(1), "label": "Hot", "metadata": {"a": 1}})
    changed = (await tracker.done("address/update", {"address": watched(1).upper(), "label": "Cold"}))["address"]
    assert (changed["label"], changed["metadata"]) == ("Cold", {"a": 1})
    changed = (await tracker.done("address/update", {"address": watched(1), "metadata": {"b": [None]}}))["address"]
    assert (changed["label"], changed["metadata"]) == ("Cold", {"b": [None]})
    body = {"address": watched(1), "label": None, "metadata": None}
    changed = (await tracker.done("address/update", body))["address"]
    assert (changed["label"], changed["metadata"]) == (None, None)
    assert (await tracker.told("address/list"))["addresses"] == [changed]
    refused(await tracker.post("address/update", {"address": watched(2)}), 404, "ADDRESS_NOT_WATCHED")
    refused(await tracker.post("address/update", {"address": "x"}), 400, "INVALID_ADDRESS", "address")


async def test_what_is_removed_is_off_the_list_and_stays_what_scans_look_for(client, gateway, tracker):
    await tracker.done("address/add-bulk", {"addresses": [watched(n) for n in range(4)]})
    await tracker.done("address/remove", {"address": watched(0).upper()})
    refused(await tracker.post("address/remove", {"address": watched(0)}), 404, "ADDRESS_NOT_WATCHED")
    refused(await tracker.post("address/remove", {"address": "x"}), 400, "INVALID_ADDRESS", "address")
    sent = [watched(1), {"address": watched(2), "label": "Hot"}, watched(1), watched(9), "nowhere"]
    answer = await tracker.done("address/remove-bulk", {"addresses": sent})
    assert fates(answer) == ["removed", "removed", "not_watched", "not_watched", "invalid"]
    assert (answer["removed"], answer["notWatched"], answer["invalid"]) == (2, 2, 1)
    assert await on_list(tracker) == [watched(3)]
    assert len(await rows(gateway, "SELECT 1 FROM tracked_addresses")) == 4
    assert (await tracker.done("address/add", {"address": watched(0)}))["result"] == "added"


async def test_adding_and_removing_at_once_leaves_what_the_answers_say(tracker):
    part = [watched(n) for n in range(40)]
    answers = await asyncio.gather(
        *[tracker.done(f"address/{word}-bulk", {"addresses": part}) for word in ("add", "remove") * 4]
    )
    added, removed = (sum(answer.get(name, 0) for answer in answers) for name in ("added", "removed"))
    assert added - removed == (await tracker.told())["webhook"]["addresses"] in {0, 40}


async def test_the_list_is_read_in_pages_by_number_or_cursor(tracker):
    await tracker.done("address/add-bulk", {"addresses": [watched(n) for n in range(5)]})
    first = await tracker.told("address/list?limit=2")
    await tracker.done("address/add", {"address": watched(9)})
    second = await tracker.told(f"address/list?limit=2&cursor={first['nextCursor']}")
    third = await tracker.told(f"address/list?limit=2&cursor={second['nextCursor']}")
    seen = [one["address"] for page in (first, second, third) for one in page["addresses"]]
    assert seen == [watched(n) for n in (4, 3, 2, 1, 0)]
    assert (first["total"], third["total"], third["nextCursor"]) == (5, 6, None)
    refused(await tracker.get("address/list?address=nowhere"), 400, "INVALID_ADDRESS", "address")


async def told(gateway, tracker, number, **changed):
    """Store a movement, and that the tracker told of it."""
    row = {
        "chain": "memory",
        "tx_id": f"tx{number}",
        "sender": watched(100),
        "recipient": watched(1),
        "token": "USDX",
        "units": 1_500_000,
        "height": number,
        "status": "detected",
    } | {name: value for name, value in changed.items() if name != "direction"}
    async with gateway.db.transaction() as conn:
        pk = (
            await conn.exec_driver_sql(
                "INSERT INTO movements (chain, scope, tx_id, position, sender, recipient, token, contract, decimals,"
                " units, height, block_hash, mined_at, first_mined_at, required_confirmations, status)"
                " SELECT $1, scope, $2, '0', $3, $4, $5, NULL, 6, $6, $7, 'b', now(), now(), 3, $8 FROM trackers"
                " WHERE webhook_id = $9 RETURNING id",
                (*row.values(), tracker.webhook_id),
            )
        ).scalar_one()
        await conn.exec_driver_sql(
            "INSERT INTO tracker_transactions (transaction_id, tracker_pk, movement_pk, direction, address)"
            " SELECT $1, id, $2, $3, $4 FROM trackers WHERE webhook_id = $5",
            (
                f"mov_{tracker.webhook_id}_{number}",
                pk,
                changed.get("direction", "in"),
                row["sender"] if changed.get("direction") == "out" else row["recipient"],
                tracker.webhook_id,
            ),
        )


async def test_the_projects_deliveries_of_a_transaction_are_found_by_its_id(client, gateway, merchant, tracker):
    await told(gateway, tracker, 1)
    await told(gateway, tracker, 2)
    one, another = (f"mov_{tracker.webhook_id}_{number}" for number in (1, 2))
    insert = (
        "INSERT INTO webhook_deliveries (delivery_id, project_pk, tracker_pk, event, resource_id, url, body, due_at)"
        " SELECT $1, project_pk, id, 'transaction.' || $2::text, $3, url, '{}', now() FROM trackers"
        " WHERE webhook_id = $4"
    )
    async with gateway.db.transaction() as conn:
        stored = await conn.exec_driver_sql("SELECT incarnation FROM movements ORDER BY id")
        first, second = stored.all()
        for of, movement, stage in ((one, first, "detected"), (one, first, "confirmed"), (another, second, "detected")):
            values = (bodies.delivery_id(of, stage, movement.incarnation), stage, of, tracker.webhook_id)
            await conn.exec_driver_sql(insert, values)

    async def total(query: str, headers: dict[str, str]) -> int:
        path = f"/api/dashboard/projects/{merchant.project_id}/deliveries?{query}"
        answer = await client.get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()["total"]

    assert await total("", merchant.bearer) == 3
    assert await total(f"resourceId={one}", merchant.bearer) == 2
    assert await total(f"resourceId={one}&event=transaction.confirmed", merchant.bearer) == 1
    assert await total("resourceId=mov_of_nobody", merchant.bearer) == 0


async def test_what_was_told_is_listed_with_what_has_become_of_it(client, gateway, merchant, tracker):
    other = await make(client, merchant.key)
    await told(gateway, other, 99)
    await told(gateway, tracker, 1)
    await told(gateway, tracker, 2, status="confirmed", token="MEM", direction="out")
    await told(gateway, tracker, 3, status="orphaned", sender=None, recipient=watched(2))
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO chain_cursors (chain, scope, height, hash, head, updated_at)"
            " SELECT 'memory', scope, 7, 'h', 7, now() FROM trackers LIMIT 1"
        )
    answer = await tracker.told("transaction/list")
    assert (answer["total"], answer["nextCursor"]) == (3, None)
    newest, _, oldest = answer["transactions"]
    assert (
        oldest.items()
        >= {
            "chain": "memory",
            "address": watched(1),
            "direction": "in",
            "token": "USDX",
            "contractAddress": None,
            "amount": "1.5",
            "from": watched(100),
            "to": watched(1),
            "txHash": "tx1",
            "blockNumber": 1,
            "confirmations": 6,
            "requiredConfirmations": 3,
            "status": "detected",
        }.items()
    )
    assert (newest["from"], newest["status"], newest["confirmations"]) == (None, "orphaned", 0)
    wanted = {
        f"address={watched(100).upper()}": [2],
        f"address={watched(1)}": [1],
        "direction=in": [3, 1],
        "token=USDX": [3, 1],
        "status=confirmed": [2],
        "txHash=tx3": [3],
        "fromBlock=2": [3, 2],
        "toBlock=2": [2, 1],
        "fromBlock=2&toBlock=2": [2],
        "fromBlock=4": [],
        "direction=in&status=detected": [1],
    }
    for query, blocks in wanted.items():
        found = await tracker.told(f"transaction/list?{query}")
        assert [one["blockNumber"] for one in found["transactions"]] == blocks, query
        assert found["total"] == len(blocks)
    page = await tracker.told("transaction/list?limit=2")
    rest = await tracker.told(f"transaction/list?limit=2&cursor={page['nextCursor']}")
    assert [one["blockNumber"] for one in rest["transactions"]] == [1]
    for query, field in (
        ("fromBlock=3&toBlock=2", "toBlock"),
        ("fromBlock=-1", "fromBlock"),
        ("status=paid", "status"),
        ("direction=up", "direction"),
    ):
        refused(await tracker.get(f"transaction/list?{query}"), 400, "VALIDATION_ERROR", field)
    refused(await tracker.get("transaction/list?address=x"), 400, "INVALID_ADDRESS", "address")
    refused(await other.get(f"transaction/list?cursor={page['nextCursor']}"), 400, "VALIDATION_ERROR", "cursor")


async def test_fates_add_up_whatever_is_sent(tracker):
    sent = [watched(n % 7) if n % 3 else f"bad{n}" for n in range(60)]
    answer = await tracker.done("address/add-bulk", {"addresses": sent})
    assert Counter(fates(answer)) == {"added": 7, "exists": 33, "invalid": 20}
