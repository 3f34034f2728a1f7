"""A tracker's past over the API: read by a job, told of, shown, cancelled and begun anew; on a simulated chain, too."""

from __future__ import annotations

import asyncio

import pytest

from cambist.domain.troubles import Trouble, say
from cambist.services.jobs import requests
from cambist.services.jobs.leases import LeaseLostError
from cambist_tasks.job_lease import Lease
from cambist_tasks.jobs import tracker_history
from cambist_tasks.jobs.tracker_history import queue_histories
from cambist_tasks.requested import JobRunner
from tests.support import scenes
from tests.support.tracker_api import CREATE, URL, make
from tests.support.web import Merchant, refused

CONFIRMATIONS = 3


async def post(merchant, path, body):
    answer = await merchant.client.post(path, json=body, headers=merchant.key)
    assert answer.status_code in {200, 201}, answer.text
    return answer.json()


@pytest.fixture
def plays(plays):
    return plays | {"past": make_past}


async def make_past(client, clock):
    """Have three payments be made to an account's address, and be confirmed; return whose it is, and the address."""
    merchant = await scenes.sandbox_merchant(client, clock)
    account = (await post(merchant, "/api/account", {"externalId": "user-1", "chains": ["memory"]}))["account"]
    for amount in ("1", "2", "3"):
        asked = {"accountId": account["accountId"], "token": "USDX", "amount": amount}
        await post(merchant, "/api/sandbox/deposit", asked | {"confirmations": CONFIRMATIONS})
    return merchant, account["addresses"][0]["address"]


@pytest.fixture
def past(scene, client, clock):
    return scene.copy(client, clock)


@pytest.fixture
def merchant(past):
    return past[0]


@pytest.fixture
def paid(past):
    """Give an address that three payments were made to."""
    return past[1]


async def work(gateway, workers=1):
    """Do what recurs, and what it asks for; return the jobs that there are."""
    await queue_histories(gateway)
    async with gateway.db.autocommit() as conn:
        jobs = (await requests.list_jobs(conn)).items
    runners = [JobRunner(gateway, f"worker{number}") for number in range(workers)]
    await asyncio.gather(*(runner.run(job.pk) for job in jobs for runner in runners))
    async with gateway.db.autocommit() as conn:
        return (await requests.list_jobs(conn)).items


async def shown(tracker):
    return (await tracker.told())["webhook"]["history"]


async def told(tracker):
    found = await tracker.told("transaction/list")
    return sorted(one["amount"] for one in found["transactions"])


@pytest.mark.slow
async def test_a_job_reads_the_past_and_says_how_far_it_is(client, gateway, merchant, paid):
    plain, tracker = await make(client, merchant.key), await make(client, merchant.key, startBlock=0)
    assert await shown(tracker) is None
    for one in (plain, tracker):
        await one.done("address/add", {"address": paid})
    assert await shown(plain) is None
    assert await shown(tracker) == {
        "state": "reading",
        "fromBlock": None,
        "toBlock": None,
        "readBlock": None,
        "error": None,
        "untoldMovements": 0,
    }
    jobs = await work(gateway, workers=3)
    assert [(job.kind, job.state) for job in jobs] == [("tracker_history", "succeeded")]
    assert (await told(plain), await told(tracker)) == ([], ["1", "2", "3"])
    height = (await shown(tracker))["toBlock"]
    assert jobs[0].result == {"readBlock": height - CONFIRMATIONS}
    assert len(await work(gateway)) == 1, "nothing more can be read before there are more blocks"
    await post(merchant, "/api/sandbox/mine", {"chain": "memory", "blocks": CONFIRMATIONS})
    await work(gateway)
    await work(gateway)
    history = await shown(tracker)
    ends = {"fromBlock": 0, "toBlock": height, "readBlock": height}
    assert history == {"state": "done", **ends, "error": None, "untoldMovements": 0}


async def test_the_past_of_a_long_simulated_chain_is_read_though_its_empty_blocks_were_forgotten(
    client, gateway, merchant, paid
):
    for blocks in (1000, 1):
        await post(merchant, "/api/sandbox/mine", {"chain": "memory", "blocks": blocks})
    tracker = await make(client, merchant.key, startBlock=0)
    await tracker.done("address/add", {"address": paid})
    await work(gateway)
    assert (await told(tracker), (await shown(tracker))["error"]) == (["1", "2", "3"], None)


async def test_it_is_cancelled_and_begun_anew_by_token_and_in_person(client, gateway, merchant, paid):
    tracker = await make(client, merchant.key, startBlock=0)
    await tracker.done("address/add", {"address": paid})
    assert (await tracker.done("history/cancel"))["webhook"]["history"]["state"] == "cancelled"
    assert await work(gateway) == []
    assert await told(tracker) == []
    base = f"/api/dashboard/projects/{merchant.project_id}/trackers/{tracker.webhook_id}/history"
    for word, state in (("restart", "reading"), ("cancel", "cancelled"), ("restart", "reading")):
        assert (await merchant.ask("POST", f"{base}/{word}"))["webhook"]["history"]["state"] == state
    await work(gateway)
    assert await told(tracker) == ["1", "2", "3"]
    # A sandbox's time changes when its blocks were mined, and no id.
    await post(merchant, "/api/sandbox/advance-time", {"chain": "memory", "seconds": 3_600})
    assert (await tracker.done("history/restart"))["webhook"]["history"]["readBlock"] is None
    await work(gateway)
    deliveries = "SELECT count(*) FROM webhook_deliveries WHERE tracker_pk IS NOT NULL"
    async with gateway.db.autocommit() as conn:
        assert (await conn.exec_driver_sql(deliveries)).scalar_one() == 6, "what was told is not told again"
    bob = await Merchant(client).open("bob@shop.example", mode="sandbox")
    refused(await client.post(f"{base}/cancel", headers=bob.bearer), 403, "PROJECT_NOT_OWNED")
    theirs = f"/api/dashboard/projects/{bob.project_id}/trackers/{tracker.webhook_id}/history/restart"
    refused(await client.post(theirs, headers=bob.bearer), 404, "TRACKER_NOT_FOUND")


async def test_what_was_dropped_is_sent_again(client, gateway, merchant, paid):
    tracker = await make(client, merchant.key, startBlock=0)
    await tracker.done("address/add", {"address": paid})
    await work(gateway)
    dropped = "UPDATE webhook_deliveries SET status = 'dropped' WHERE tracker_pk IS NOT NULL"
    base = f"/api/dashboard/projects/{merchant.project_id}/trackers/{tracker.webhook_id}"
    since = {"since": "2020-01-01"}
    for ask in (
        lambda: tracker.done("redeliver", since),
        lambda: merchant.ask("POST", f"{base}/redeliver", since),
    ):
        async with gateway.db.transaction() as conn:
            await conn.exec_driver_sql(dropped)
        assert await ask() == {"success": True, "queued": 6, "more": False}
        assert (await ask())["queued"] == 0
    backwards = await tracker.post("redeliver", {"since": "2026-02-01", "until": "2026-01-01"})
    refused(backwards, 400, "VALIDATION_ERROR", "until")
    await tracker.done("deactivate")
    refused(await tracker.post("redeliver", since), 409, "TRACKER_INACTIVE")
    bob = await Merchant(client).open("bob@shop.example", mode="sandbox")
    refused(await client.post(f"{base}/redeliver", json=since, headers=bob.bearer), 403, "PROJECT_NOT_OWNED")


async def test_who_lost_the_lease_stores_and_tells_nothing(client, gateway, merchant, paid):
    tracker = await make(client, merchant.key, startBlock=0)
    await tracker.done("address/add", {"address": paid})
    await queue_histories(gateway)
    async with gateway.db.autocommit() as conn:
        (job,) = (await requests.list_jobs(conn)).items
    with pytest.raises(LeaseLostError):
        await tracker_history.read_history(gateway, Lease(gateway, job))
    async with gateway.db.autocommit() as conn:
        assert (await conn.exec_driver_sql("SELECT count(*) FROM tracker_transactions")).scalar_one() == 0
    await work(gateway)
    assert await told(tracker) == ["1", "2", "3"]


async def test_what_the_operator_cancelled_waits_until_it_is_retried(client, gateway, merchant, paid):
    tracker = await make(client, merchant.key, startBlock=0)
    await tracker.done("address/add", {"address": paid})
    await queue_histories(gateway)
    async with gateway.db.transaction() as conn:
        (job,) = (await requests.list_jobs(conn)).items
        await requests.cancel(conn, job.job_id, gateway.clock.now())
    assert [job.state for job in await work(gateway)] == ["cancelled"]
    async with gateway.db.transaction() as conn:
        await requests.retry(conn, job.job_id, gateway.clock.now())
    assert [job.state for job in await work(gateway)] == ["succeeded"]
    assert await told(tracker) == ["1", "2", "3"]


async def test_a_chain_that_cannot_be_read_is_said_in_the_job_and_tried_again(
    client, gateway, merchant, paid, monkeypatch
):
    tracker = await make(client, merchant.key, startBlock=0)
    await tracker.done("address/add", {"address": paid})

    def unconnected(*_):
        raise tracker_history.LaterError(say(Trouble.CHAIN_NOT_CONNECTED, chain="memory"), 300)

    with monkeypatch.context() as patch:
        patch.setattr(tracker_history, "_chain", unconnected)
        (job,) = await work(gateway)
    in_the_way = job.state, job.error, job.error_code
    assert in_the_way == ("queued", "memory is not connected.", "CHAIN_NOT_CONNECTED")
    assert (job.due_at - gateway.clock.now()).total_seconds() == 300
    await work(gateway)
    assert await told(tracker) == ["1", "2", "3"], "whoever asks anew hurries it"


async def test_a_start_block_too_far_back_is_refused(client, gateway, sandbox_merchant):
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO sandbox_chains (project_pk, chain, height)"
            " SELECT id, 'memory', 1000001 FROM projects WHERE project_id = $1",
            (sandbox_merchant.project_id,),
        )
    body = {"url": URL, "name": "Desk", "chain": "memory"}
    answer = await client.post(CREATE, json=body | {"startBlock": 0}, headers=sandbox_merchant.key)
    refused(answer, 400, "VALIDATION_ERROR", "startBlock")
    assert (await make(client, sandbox_merchant.key, startBlock=1)).made["startBlock"] == 1
