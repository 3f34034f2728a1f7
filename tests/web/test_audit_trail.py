"""The audit log over the API: all of it for operators, a merchant's own entries for its owners and admins."""

from __future__ import annotations

import csv
import io
import json

import pytest

from cambist.services.audit import trail
from cambist.services.audit.entries import Action
from tests.support.operators import Officer
from tests.support.team import Teammate
from tests.support.web import ADMIN_KEY, PASSWORD, Merchant, refused, web_client

KEY = {"X-Admin-Key": ADMIN_KEY}
HERE, THERE = "192.0.2.7", "198.51.100.1"


async def read(client, path, headers=KEY):
    answer = await client.get(f"/api/{path}", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def actions(found):
    return [one["action"] for one in found["entries"]]


@pytest.fixture
async def other(gateway, client, merchant):
    """Have two merchants, of whom an operator stops the first one, from another address, and lets it go on."""
    other = await Merchant(client).open("bob@shop.example")
    at = f"/api/admin/merchants/{merchant.merchant_id}"
    granted = {"amount": 7, "mode": "live", "reference": "for the outage"}
    async with web_client(gateway, THERE) as office:
        for path, body in (("credits", granted), ("suspend", {"reason": "The police asked."}), ("reinstate", None)):
            answer = await office.post(f"{at}/{path}", json=body, headers=KEY)
            assert answer.status_code in {200, 201}, answer.text
    answer = await client.post("/api/auth/login", json={"email": merchant.email, "password": PASSWORD})
    merchant.take(answer)
    return other


async def test_operators_read_all_of_it_by_whatever_is_asked_for(client, merchant, other):
    whole = await read(client, "admin/audit?limit=100")
    assert whole["total"] == len(whole["entries"])
    times = [one["createdAt"] for one in whole["entries"]]
    assert times == sorted(times, reverse=True)
    (suspended,) = [one for one in whole["entries"] if one["action"] == "merchant.suspended"]
    assert suspended["actor"] == "admin key"
    assert (suspended["address"], suspended["details"]) == (THERE, {"reason": "The police asked."})
    assert suspended["merchantName"] == "Ada's Shop"
    issued = next(one for one in whole["entries"] if one["action"] == "api_key.issued")
    assert issued["actorName"]

    async def found(**wanted):
        query = "&".join(f"{name}={value}" for name, value in wanted.items())
        return [one["entryId"] for one in (await read(client, f"admin/audit?limit=100&{query}"))["entries"]]

    def those(matches):
        return [one["entryId"] for one in whole["entries"] if matches(one)]

    by_email = those(lambda one: one["merchantId"] == merchant.merchant_id)
    assert await found(merchant=merchant.email) == await found(merchant=merchant.merchant_id) == by_email != []
    assert await found(merchant=other.merchant_id, action="api_key.issued") == those(
        lambda one: one["merchantId"] == other.merchant_id and one["action"] == "api_key.issued"
    )
    for name, value in (
        ("address", THERE),
        ("actor", issued["actor"]),
        ("actorKind", "operator"),
        ("subject", "for the outage"),
        ("action", "session.opened"),
    ):
        expected = those(lambda one, name=name, value=value: one[name] == value)
        assert await found(**{name: value}) == expected != [], name
        assert await found(**{name: value, "merchant": merchant.email}) == [one for one in expected if one in by_email]
    assert (
        await found(project=merchant.project_id, sort="createdAt")
        == those(lambda one: one["projectId"] == merchant.project_id)[::-1]
    )
    assert await found(**{"from": "2999-01-01"}) == []
    for wrong in ("merchant=mer_nobody", "action=none", "actorKind=none", "address="):
        answer = await client.get(f"/api/admin/audit?{wrong}", headers=KEY)
        refused(answer, 400, "VALIDATION_ERROR", wrong.partition("=")[0])
    auditor = await Officer(client).sign_in("auditor")
    assert (await read(client, "admin/audit?action=merchant.suspended", auditor.bearer))["entries"] == [suspended]


async def test_a_merchant_reads_its_own_entries_and_nothing_that_is_the_operators(client, merchant, other):
    whole = await read(client, "dashboard/audit?limit=100", merchant.bearer)
    everything = await read(client, f"admin/audit?limit=100&merchant={merchant.email}")
    assert actions(whole) == actions(everything)
    theirs = [one for one in whole["entries"] if one["actorKind"] == "operator"]
    assert actions({"entries": theirs})[:2] == ["merchant.reinstated", "merchant.suspended"]
    assert {(one["actor"], one["actorName"], one["address"]) for one in theirs} == {(None, None, None)}
    (granted,) = [one for one in theirs if one["action"] == "credits.granted"]
    assert (granted["subject"], granted["details"]) == (None, {"amount": 7, "mode": "live"})
    for secret in ("police", "outage", THERE, "admin key", "entryId", other.merchant_id):
        assert secret not in str(whole), secret
    mine = next(one for one in whole["entries"] if one["action"] == "api_key.issued")
    assert (mine["address"], mine["actorKind"], mine["projectName"]) == (HERE, "merchant", "Shop")
    for hidden in (f"address={THERE}", "actor=admin key", "subject=for the outage"):
        assert (await read(client, f"dashboard/audit?{hidden}", merchant.bearer))["entries"] == [], hidden
    for asked in (f"subject={mine['subject']}", f"actor={mine['actor']}&action=api_key.issued"):
        assert (await read(client, f"dashboard/audit?{asked}", merchant.bearer))["entries"] == [mine], asked
    named = await read(client, f"dashboard/audit?subject={merchant.merchant_id}&actorKind=operator", merchant.bearer)
    assert actions(named)[:2] == ["merchant.reinstated", "merchant.suspended"]
    assert mine not in (await read(client, "dashboard/audit?limit=100", other.bearer))["entries"]


async def test_it_goes_page_by_page_and_as_a_file_that_hides_the_same(client, merchant, other):
    path, rows = "dashboard/audit?limit=2", []
    while path:
        page = await read(client, path, merchant.bearer)
        rows += page["entries"]
        path = page["nextCursor"] and f"dashboard/audit?limit=2&cursor={page['nextCursor']}"
    assert rows == (await read(client, "dashboard/audit?limit=100", merchant.bearer))["entries"]
    text = (await client.get("/api/dashboard/audit?format=csv", headers=merchant.bearer)).text
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [line["action"] for line in lines] == actions({"entries": rows})
    assert "police" not in text
    assert THERE not in text


async def test_a_rare_entry_is_found_by_its_index_however_many_others_there_are(gateway, client, merchant, monkeypatch):
    for spec in (trail._EVERYBODYS, trail._MERCHANTS):
        monkeypatch.setattr(spec, "window", 10)
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO audit_entries (at, action, actor_kind, actor, merchant_id, subject)"
            " SELECT '2020-01-01'::timestamptz + make_interval(secs => n), 'payout.asked', 'key', 'key_x', $1,"
            " 'po_' || n FROM generate_series(1, 60) n",
            (merchant.merchant_id,),
        )
    only = await read(client, "admin/audit?subject=po_7")
    assert ([one["subject"] for one in only["entries"]], only["total"], only["totalIsExact"]) == (["po_7"], 1, True)
    rare = await read(client, "admin/audit?action=merchant.registered")
    assert (actions(rare), rare["totalIsExact"]) == (["merchant.registered"], True)
    path, found, pages = "dashboard/audit?subject=po_7", [], 0
    while path:
        page = await read(client, path, merchant.bearer)
        found, pages = found + page["entries"], pages + 1
        path = page["nextCursor"] and f"dashboard/audit?subject=po_7&cursor={page['nextCursor']}"
    assert ([one["subject"] for one in found], pages > 2) == (["po_7"], True)


async def test_operators_have_it_verified_and_read_what_came_of_it(gateway, client, merchant):
    assert (await read(client, "admin/audit"))["verification"] is None
    asked = [(await client.post("/api/admin/audit/verify", headers=KEY)).json()["job"] for _ in range(2)]
    assert asked[0]["jobId"] == asked[1]["jobId"]
    assert asked[0]["kind"] == "audit_verification"
    assert (await read(client, "admin/audit"))["verification"] is None
    result = {"agrees": False, "seals": 2, "entries": 9, "waiting": 1, "problems": ["entry 3 of seal 1 was changed"]}
    async with gateway.db.transaction() as conn:
        ended = "UPDATE jobs SET state = 'succeeded', finished_at = $2, result = $1::text::jsonb WHERE job_id = $3"
        now = gateway.clock.now()
        await conn.exec_driver_sql(ended, (json.dumps(result), now, asked[0]["jobId"]))
    shown = (await read(client, "admin/audit?action=job.asked"))["verification"]
    assert shown | result == shown
    assert shown["comparedWithFile"] is False, "it was not, or nobody wrote down that it was"
    result["compared_with_file"] = True
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE jobs SET result = $1::text::jsonb", (json.dumps(result),))
    assert (await read(client, "admin/audit"))["verification"]["comparedWithFile"] is True
    assert (shown["jobId"], shown["requestedBy"]) == (asked[0]["jobId"], "admin key")


@pytest.mark.parametrize("role, allowed", [("admin", True), ("finance", False), ("developer", False)])
async def test_owners_and_admins_read_it_and_no_other_member(client, merchant, role, allowed):
    member = await Teammate(client, merchant).sign_in(role)
    answer = await client.get("/api/dashboard/audit", headers=member.bearer)
    if allowed:
        assert "project.made" in actions(answer.json())
    else:
        refused(answer, 403, "ROLE_NOT_ALLOWED")


def test_what_is_told_of_operators_acts_is_among_what_there_is():
    assert set(trail.TOLD_OF_OPERATORS) <= set(Action)
