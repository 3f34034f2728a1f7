"""Jobs and comparisons of books and chains, as operators ask for them, read them and steer them."""

from __future__ import annotations

import csv
import gzip
import io

from cambist.domain.troubles import Said, Trouble
from cambist.services.audit.entries import newest
from cambist.services.jobs import cron_runs, leases, requests
from tests.support.operators import Officer
from tests.support.web import ADMIN_KEY, refused

ADMIN = {"X-Admin-Key": ADMIN_KEY}
JOBS, RECONCILE = "/api/admin/jobs", "/api/admin/reconcile"


async def started(gateway, job_id):
    """Take the job's lease, as a worker does."""
    async with gateway.db.transaction() as conn:
        job = await requests.get(conn, job_id)
        now = gateway.clock.now()
        return await leases.claim(conn, job.pk, worker="here", now=now, leased_until=now)


async def test_jobs_are_listed_read_cancelled_and_tried_again_by_whom_the_log_names(client, gateway, merchant):
    officer = await Officer(client).sign_in("operator")
    asked = {"kind": "statement_export", "merchantId": merchant.merchant_id, "since": "2026-01-01"}
    made = (await officer.ask("POST", JOBS, asked)).json()["job"]
    assert (made["state"], made["requestedBy"], made["durationMs"]) == ("queued", officer.made.operator_id, None)
    assert (await officer.ask("POST", JOBS, asked)).json()["job"]["jobId"] == made["jobId"]
    listed = (await client.get(f"{JOBS}?kind=statement_export&state=queued", headers=ADMIN)).json()
    assert [job["jobId"] for job in listed["jobs"]] == [made["jobId"]]
    one = f"{JOBS}/{made['jobId']}"
    refused(await officer.ask("POST", f"{one}/retry"), 409, "JOB_NOT_FAILED")
    refused(await officer.ask("GET", f"{one}/output"), 409, "JOB_WITHOUT_FILE")
    assert (await officer.ask("POST", f"{one}/cancel")).json()["job"]["state"] == "cancelled"
    assert (await officer.ask("POST", f"{one}/retry")).json()["job"]["state"] == "queued"
    job = await started(gateway, made["jobId"])
    async with gateway.db.transaction() as conn:
        for number, text in enumerate((b"id,type\n", b"led_1,credit\n")):
            await conn.exec_driver_sql(
                "INSERT INTO job_outputs VALUES ($1, $2, $3)", (job.pk, number, gzip.compress(text))
            )
        await leases.succeed(conn, job, {"entries": 1, "complete": True}, gateway.clock.now())
    refused(await officer.ask("POST", f"{one}/cancel"), 409, "JOB_ENDED")
    file = await officer.ask("GET", f"{one}/output")
    assert (file.headers["content-type"], file.text) == ("text/csv; charset=utf-8", "id,type\nled_1,credit\n")
    async with gateway.db.autocommit() as conn:
        log = [(entry.action, entry.actor, entry.subject) for entry in await newest(conn, limit=4)]
    by = officer.made.operator_id, made["jobId"]
    assert log == [("job.changed", *by), ("job.changed", *by), ("job.asked", *by), ("job.asked", *by)]


async def test_what_cannot_be_meant_is_refused(client):
    await Officer(client).sign_in("operator")
    asked = {"kind": "statement_export", "merchantId": "mer_x"}
    refused(await client.post(JOBS, json=asked, headers=ADMIN), 404, "MERCHANT_NOT_FOUND")
    backwards = {**asked, "since": "2026-02-01", "until": "2026-01-01"}
    answer = await client.post(JOBS, json=backwards, headers=ADMIN)
    refused(answer, 400, "VALIDATION_ERROR", "until")
    assert answer.json()["error"] == "until must be later than since"
    refused(await client.get(f"{JOBS}/job_x", headers=ADMIN), 404, "JOB_NOT_FOUND")
    for chain in ("moon", "pretend"):
        refused(await client.post(RECONCILE, json={"chains": [chain]}, headers=ADMIN), 400, "UNSUPPORTED_CHAIN")
    assert (await client.get(JOBS, headers=ADMIN)).json()["jobs"] == []


async def test_what_recurs_is_listed_with_its_latest_run(client, gateway, clock):
    async def run(name, error=None):
        now = clock.now()
        async with gateway.db.transaction() as conn:
            claimed = await cron_runs.claim(conn, name, now, worker="here", now=now, leased_until=now)
            clock.advance(2)
            await cron_runs.finish(conn, claimed, clock.now(), error)

    # PostgreSQL's clock refuses moments that lie ahead of it.
    assert (await client.get(f"{JOBS}/recurring", headers=ADMIN)).json()["recurring"] == []
    await run("prices")
    await run("prices", Said(Trouble.UNEXPECTED, "RateUnavailableError: nobody answers"))
    await run("usage")
    prices, usage = (await client.get(f"{JOBS}/recurring", headers=ADMIN)).json()["recurring"]
    assert (prices["name"], prices["error"]) == ("prices", "RateUnavailableError: nobody answers")
    assert (prices["errorCode"], usage["errorCode"]) == ("UNEXPECTED", None)
    assert prices["lastSuccessAt"] == prices["dueAt"]
    assert (usage["name"], usage["error"], usage["durationMs"]) == ("usage", None, 2000)


LINE = {
    "merchantId": "mer_1",
    "group": "deposits",
    "token": "USDX",
    "contract": "0x5b",
    "onChain": "90",
    "booked": "100",
    "inTransit": "0",
    "difference": "-10",
    "addresses": [{"address": "mem1abc", "onChain": "90", "expected": "100"}],
}


async def test_a_comparison_is_asked_for_once_and_tells_every_difference_with_what_could_explain_it(
    client, gateway, merchant
):
    officer = await Officer(client).sign_in("support")
    line = LINE | {"merchantId": merchant.merchant_id}
    lines = [line, LINE | {"merchantId": None, "group": "gas"}]
    made = (await officer.ask("POST", RECONCILE, {"chains": ["memory"]})).json()["run"]
    assert (made["agrees"], made["chains"], made["waiting"]) == (None, [], ["memory"])
    again = (await officer.ask("POST", RECONCILE, {"chains": ["memory", "memory"]})).json()["run"]
    assert again["jobId"] == made["jobId"]
    job = await started(gateway, made["jobId"])
    counted = {"addressesAsked": 3, "balances": 2000, "differing": 1234}
    done = {"memory": {"height": 7, "blockHash": "0x1", "differences": lines} | counted}
    async with gateway.db.transaction() as conn:
        await leases.save(conn, job, done, gateway.clock.now())
    run = (await officer.ask("GET", f"{RECONCILE}/{made['jobId']}")).json()
    assert (run["run"]["state"], run["run"]["waiting"]) == ("running", [])
    async with gateway.db.transaction() as conn:
        await leases.succeed(conn, job, {"agrees": False, "chains": done}, gateway.clock.now())
    detail = (await officer.ask("GET", f"{RECONCILE}/{made['jobId']}")).json()
    assert detail["run"]["agrees"] is False
    asked = {"addressesAsked": 3, "balances": 2000, "differences": 1234, "listed": 2}
    asked |= {"problem": None, "problemCode": None}
    assert detail["run"]["chains"] == [{"chain": "memory", "height": 7, "blockHash": "0x1", **asked}]
    path = f"{RECONCILE}/{made['jobId']}/differences"
    other, difference = await listed(officer, path, "differences")
    explained = difference.pop("explanations")
    (named,) = (await officer.ask("GET", "/api/admin/merchants")).json()["merchants"]
    assert difference == {"chain": "memory", "height": 7, "contractAddress": line["contract"]} | {
        "merchantName": named["name"]
    } | {name: value for name, value in line.items() if name != "contract"}
    assert (other["merchantId"], other["merchantName"]) == (None, None)
    assert "takes a fee of its own" in explained[0]
    assert "another wallet" in explained[1]
    runs = (await officer.ask("GET", RECONCILE)).json()["runs"]
    assert [(one["jobId"], one["agrees"]) for one in runs] == [(made["jobId"], False)]
    for path in (f"{RECONCILE}/job_x", f"{RECONCILE}/job_x/differences"):
        refused(await officer.ask("GET", path), 404, "JOB_NOT_FOUND")


async def test_what_differs_is_filtered_paged_and_saved_as_every_list(client, gateway, merchant):
    officer = await Officer(client).sign_in("support")
    made = (await officer.ask("POST", RECONCILE, {"chains": ["memory"]})).json()["run"]
    path = f"{RECONCILE}/{made['jobId']}/differences"
    assert await listed(officer, path, "differences") == [], "nothing was compared yet"
    lines = [LINE | {"merchantId": merchant.merchant_id}, LINE | {"merchantId": None, "group": "gas", "token": "MEM"}]
    summary = {"height": 7, "blockHash": "0x1", "addressesAsked": 3, "balances": 2, "differences": lines}
    problem = {"problem": "No endpoint answers.", "problemCode": "CHAIN_UNAVAILABLE"}
    done = {"memory": summary, "pretend": summary | {"height": 9}, "idle": problem}
    job = await started(gateway, made["jobId"])
    async with gateway.db.transaction() as conn:
        await leases.succeed(conn, job, {"agrees": False, "chains": done}, gateway.clock.now())
    places = [("memory", "gas"), ("memory", "deposits"), ("pretend", "gas"), ("pretend", "deposits")]
    for query, wanted in {
        "": places,
        "sort=-chain": places[::-1],
        "chain=pretend": places[2:],
        "token=MEM": [places[0], places[2]],
        "group=deposits": [places[1], places[3]],
        f"merchantId={merchant.merchant_id}": [places[1], places[3]],
        "chain=memory&group=gas": places[:1],
        "chain=nowhere": [],
    }.items():
        found = await listed(officer, f"{path}?{query}", "differences", limit=1)
        assert [(one["chain"], one["group"]) for one in found] == wanted, query
        answer = await officer.ask("GET", f"{path}?{query}&format=csv")
        assert answer.headers["content-type"].startswith("text/csv")
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        assert [(one["chain"], one["group"], one["difference"]) for one in rows] == [(*one, "-10") for one in wanted]


async def listed(officer, path, name, limit=25):
    """Return all items of a list, read page by page."""
    found, cursor = [], ""
    while cursor is not None:
        begin = path if "?" in path else f"{path}?"
        page = (await officer.ask("GET", f"{begin}&limit={limit}{cursor}")).json()
        assert (page["total"] >= len(found), page["totalIsExact"]) == (True, True)
        found += page[name]
        cursor = None if page["nextCursor"] is None else f"&cursor={page['nextCursor']}"
    assert page["total"] == len(found)
    return found
