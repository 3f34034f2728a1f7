"""What can be asked for: a comparison of chains and books, and a statement as a file."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime

import pytest

from cambist.bootstrap import Parts
from cambist.domain.troubles import Said, Trouble
from cambist.registry import Registry
from cambist.services.accounting.ledger import asset_key
from cambist.services.accounting.statements import entries, export
from cambist.services.accounting.statements.entries import Filters
from cambist.services.audit import verify
from cambist.services.audit.entries import GATEWAY, Action, record
from cambist.services.jobs import requests
from cambist.services.jobs.requests import Kind, NewJob
from cambist.signer.keystore import Keystore
from cambist.testing.fixtures import TEST_MNEMONIC
from cambist.testing.memory import MemoryFamily
from cambist_tasks.job_lease import LaterError
from cambist_tasks.jobs import reconcile
from cambist_tasks.jobs.audit import seal_audit_log, verify_audit_log
from cambist_tasks.requested import REQUESTED, JobRunner, Requested
from tests.core.test_statements import HISTORY
from tests.support.shop import Shop, memory_of
from tests.tasks.test_worker import MEMORY

ENTRIES = 2_500


@pytest.fixture
def gateway_parts(clock, ids):
    return Parts(
        clock=clock, ids=ids, registry=Registry({"memory": {}}, found=[MEMORY]), keystore=Keystore(TEST_MNEMONIC)
    )


@pytest.fixture
async def shop(db, worker_gateway, clock, ids):
    return await Shop(db, MemoryFamily(), clock, ids).open()


async def done(gateway, **asked):
    """Ask for a job, work it off, and return it."""
    async with gateway.db.transaction() as conn:
        new = NewJob(requested_by="a test", **asked)
        job = await requests.request(conn, gateway.ids, new, gateway.clock.now())
    await JobRunner(gateway, "here").run(job.pk)
    async with gateway.db.autocommit() as conn:
        return await requests.get(conn, job.job_id)


def test_every_kind_has_a_function_and_no_slice_is_longer_than_a_run():
    assert set(REQUESTED) == set(Kind)
    assert all(one.slice_timeout_s <= 50 for one in REQUESTED.values())


@pytest.mark.slow
async def test_a_reconcile_compares_every_chain_and_tells_the_differences_alone(worker_gateway, shop, monkeypatch):
    chain = memory_of(worker_gateway)
    job = await done(worker_gateway, kind=Kind.RECONCILE, arguments={})
    assert (job.state, job.result["agrees"]) == ("succeeded", False)
    told = job.result["chains"]["memory"]
    assert ("not read" in told["problem"], told["problemCode"]) == (True, "OTHER")
    watcher = shop.watcher(chain)
    await shop.poll(watcher)
    address = await shop.payment(chain, "USDX", 5)
    chain.transfer(chain.info.token("USDX"), address, 5)
    chain.mine(4)
    await shop.poll(watcher)
    job = await done(worker_gateway, kind=Kind.RECONCILE, arguments={"chains": ["memory"]})
    found = job.result["chains"]["memory"]
    assert (job.result["agrees"], found["differences"], found["height"]) == (True, [], 4)
    chain.transfer(chain.info.token("USDX"), address, 5)
    chain.mine(4)
    async with chain.view() as view:
        head = await view.block(8)
    async with worker_gateway.db.transaction() as conn:
        # A deposit that nobody credited: the worker read past it.
        await conn.exec_driver_sql("UPDATE chain_cursors SET height = 8, hash = $1", (head.hash,))
        await conn.exec_driver_sql(
            "INSERT INTO chain_blocks (chain, scope, height, hash, parent_hash, mined_at)"
            " VALUES ('memory', 0, 8, $1, $2, now())",
            (head.hash, head.parent_hash),
        )
    job = await done(worker_gateway, kind=Kind.RECONCILE, arguments={})
    assert (job.state, job.result["agrees"]) == ("succeeded", False)
    [difference] = job.result["chains"]["memory"]["differences"]
    assert (difference["group"], difference["difference"]) == ("deposits", "+0.000005")
    monkeypatch.setattr(reconcile, "DIFFERENCES_MAX", 0)
    job = await done(worker_gateway, kind=Kind.RECONCILE, arguments={})
    told = job.result["chains"]["memory"]
    assert (job.result["agrees"], told["differing"], told["differences"]) == (False, 1, []), "more than a run keeps"
    job = await done(worker_gateway, kind=Kind.RECONCILE, arguments={"chains": ["moon"]})
    assert job.result["chains"] == {
        "moon": {"problem": "There is no such live chain.", "problemCode": "CHAIN_NOT_CONNECTED"}
    }


async def test_a_reconcile_tells_of_a_plugins_bug_beside_the_chains_that_it_compares(worker_gateway, shop):
    chain = memory_of(worker_gateway)
    await shop.poll(shop.watcher(chain))
    chain.faults.crash = KeyError("result")
    job = await done(worker_gateway, kind=Kind.RECONCILE, arguments={})
    told = {"problem": "The plugin of memory failed with KeyError.", "problemCode": "UNEXPECTED"}
    assert (job.state, job.result["chains"]) == ("succeeded", {"memory": told})


async def test_the_audit_log_is_compared_with_its_seals_and_what_was_changed_is_told(gateway):
    async with gateway.db.transaction() as conn:
        for number in range(3):
            await record(conn, GATEWAY, Action.JOB_ASKED, gateway.clock.now(), subject=f"job_{number}")
    assert not await seal_audit_log(gateway)
    job = await done(gateway, kind=Kind.AUDIT_VERIFICATION, arguments={})
    assert job.state == "succeeded"
    found = {"agrees": True, "seals": 1, "entries": 3, "waiting": 0, "problems": []}
    assert job.result == found | {"compared_with_file": False}
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        await conn.exec_driver_sql("UPDATE audit_entries SET subject = 'another'")
    job = await done(gateway, kind=Kind.AUDIT_VERIFICATION, arguments={})
    assert (job.result["agrees"], len(job.result["problems"])) == (False, 3)
    assert "was changed" in job.result["problems"][0]


async def one_slice(gateway, lease):
    assert await verify_audit_log(gateway, lease) is None
    raise LaterError(Said(Trouble.OTHER, "It is another worker's turn."), 0)


ONE_SLICE = {Kind.AUDIT_VERIFICATION: Requested(handler=one_slice, slice_timeout_s=30)}


async def asked_to_verify(gateway, monkeypatch):
    """Write and seal three entries, and ask for a comparison that takes a step for each; return the job."""
    for name in ("SEALS_MAX", "ENTRIES_AT_ONCE"):
        monkeypatch.setattr(verify, name, 1)
    for number in range(3):
        async with gateway.db.transaction() as conn:
            await record(conn, GATEWAY, Action.JOB_ASKED, gateway.clock.now(), subject=f"job_{number}")
        await seal_audit_log(gateway)
    async with gateway.db.transaction() as conn:
        new = NewJob(kind=Kind.AUDIT_VERIFICATION, arguments={}, requested_by="a test")
        return await requests.request(conn, gateway.ids, new, gateway.clock.now())


async def test_a_verification_that_is_tried_again_sees_what_was_changed_in_what_it_had_compared(gateway, monkeypatch):
    job, now = await asked_to_verify(gateway, monkeypatch), gateway.clock.now()
    for number in (1, 2):
        await JobRunner(gateway, f"worker {number}", ONE_SLICE).run(job.pk)
    async with gateway.db.transaction() as conn:
        assert (await requests.cancel(conn, job.job_id, now)).progress["number"] == 2
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        await conn.exec_driver_sql("UPDATE audit_entries SET subject = 'another' WHERE subject = 'job_0'")
    async with gateway.db.transaction() as conn:
        await requests.retry(conn, job.job_id, now)
    await JobRunner(gateway, "the last").run(job.pk)
    async with gateway.db.autocommit() as conn:
        found = await requests.get(conn, job.job_id)
    assert (found.state, found.result["agrees"], found.result["seals"]) == ("succeeded", False, 3)
    assert ["was changed" in problem for problem in found.result["problems"]] == [True]


async def test_a_verification_goes_on_where_another_worker_left_it(gateway, monkeypatch):
    job = await asked_to_verify(gateway, monkeypatch)
    for number in (1, 2):
        await JobRunner(gateway, f"worker {number}", ONE_SLICE).run(job.pk)
        async with gateway.db.autocommit() as conn:
            found = await requests.get(conn, job.job_id)
        assert (found.state, found.progress["number"], found.progress["entries"]) == ("queued", number, number)
    await JobRunner(gateway, "the last").run(job.pk)
    async with gateway.db.autocommit() as conn:
        found = await requests.get(conn, job.job_id)
    whole = {"agrees": True, "seals": 3, "entries": 3, "waiting": 0, "problems": []}
    assert found.result == whole | {"compared_with_file": False}


async def test_a_reconcile_of_no_chain_does_not_say_that_all_agree(gateway):
    job = await done(gateway, kind=Kind.RECONCILE, arguments={})
    assert (job.state, job.result) == ("succeeded", {"agrees": False, "chains": {}})


@pytest.mark.slow
async def test_a_stored_statement_is_the_streamed_one(worker_gateway, shop):
    token = worker_gateway.chains["memory"].info.token("USDX")
    async with worker_gateway.db.transaction() as conn:
        await conn.exec_driver_sql("ALTER TABLE ledger_movements DISABLE TRIGGER USER")
        await conn.exec_driver_sql(HISTORY, (asset_key("memory", token.contract), ENTRIES))
    since = datetime(2026, 1, 1, 1, tzinfo=UTC)
    for arguments, filters in (({}, Filters()), ({"since": since.isoformat()}, Filters(since=since))):
        job = await done(
            worker_gateway, kind=Kind.STATEMENT_EXPORT, arguments=arguments, merchant_pk=shop.merchant, mode="live"
        )
        assert job.state == "succeeded", job.error
        async with worker_gateway.db.autocommit() as conn:
            scope = await entries.scope_of(conn, worker_gateway.registry, shop.merchant, "live", filters)
            bounds = await entries.bounds_of(conn, filters)
        lines = export.lines(worker_gateway.db.transaction, scope, filters, bounds)
        streamed = b"".join([line async for line in lines])
        stored = b"".join([piece async for piece in requests.output(worker_gateway.db, job)])
        assert gzip.decompress(stored) == streamed
        count = streamed.count(b"\r\n") - 1
        assert (job.result["entries"], job.result["complete"]) == (count, True)
        assert job.progress["pieces"] == -(-count // entries.BATCH)


async def test_a_statement_of_an_unknown_token_fails_at_once_with_a_sentence(worker_gateway, shop):
    job = await done(
        worker_gateway, kind=Kind.STATEMENT_EXPORT, arguments={"token": "MOON"}, merchant_pk=shop.merchant, mode="live"
    )
    told = job.state, job.error, job.error_code
    assert told == ("failed", "token is not supported on any chain", "OTHER")


async def test_a_stored_statement_is_bounded(worker_gateway, shop, monkeypatch):
    monkeypatch.setattr(export, "STORED_ENTRIES_MAX", 1_500)
    token = worker_gateway.chains["memory"].info.token("USDX")
    async with worker_gateway.db.transaction() as conn:
        await conn.exec_driver_sql("ALTER TABLE ledger_movements DISABLE TRIGGER USER")
        await conn.exec_driver_sql(HISTORY, (asset_key("memory", token.contract), ENTRIES))
    job = await done(worker_gateway, kind=Kind.STATEMENT_EXPORT, arguments={}, merchant_pk=shop.merchant, mode="live")
    assert (job.result["entries"], job.result["complete"]) == (2_000, False)
