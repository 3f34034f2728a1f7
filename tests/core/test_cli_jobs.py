"""``cambist jobs``, as an operator types it."""

from __future__ import annotations

import asyncio
import json

import pytest
from click.testing import CliRunner
from redis.asyncio import Redis

from cambist.cli import cambist
from cambist.hints import PREFIX
from cambist.services.jobs import leases, requests
from cambist.services.jobs.requests import Kind, NewJob
from tests.support.command import leave_no_config
from tests.support.webhooks import make_project

NEW = NewJob(kind=Kind.RECONCILE, arguments={"chain": "memory"}, requested_by="operator")


@pytest.fixture
def typed(tmp_path, database_url, redis_url, monkeypatch):
    leave_no_config(monkeypatch)
    config = tmp_path / "cambist.toml"
    config.write_text(
        f'[database]\nurl = "{database_url}"\n[redis]\nurl = "{redis_url}"\n'
        '[plugins.evm.chains.ethereum]\nrpc_urls = ["http://127.0.0.1:1"]\n'
    )

    def run(*arguments):
        command, *rest = arguments or ("",)
        words = ["jobs", *([command] if command and not command.startswith("-") else []), "--config", str(config)]
        words += rest if words[1] == command else [one for one in arguments if one]
        return CliRunner().invoke(cambist, words)

    return run


@pytest.fixture
async def job(db, clock, ids):
    async with db.transaction() as conn:
        return await requests.request(conn, ids, NEW, clock.now())


def in_a_thread(call, *arguments):
    """Run a command, which has a loop of its own, where no test's loop is."""
    return asyncio.to_thread(call, *arguments)


async def test_jobs_are_listed_shown_cancelled_and_tried_again(typed, job, db, clock, tmp_path):
    answer = await in_a_thread(typed)
    assert answer.exit_code == 0, answer.output
    assert f"{job.job_id}  " in answer.output
    assert "reconcile  queued  by operator" in answer.output
    assert "There are no jobs." in (await in_a_thread(typed, "--state", "failed")).output
    async with db.transaction() as conn:
        held = await leases.claim(conn, job.pk, worker="here", now=clock.now(), leased_until=clock.now())
        await leases.save(conn, held, {"done": 1}, clock.now())
        await conn.exec_driver_sql(
            "INSERT INTO job_outputs (job_pk, number, content) VALUES ($1, 0, 'file')", (job.pk,)
        )
    shown = json.loads((await in_a_thread(typed, "show", job.job_id)).output)
    assert (shown["state"], shown["arguments"], shown["progress"]) == ("running", {"chain": "memory"}, {"done": 1})
    assert "cancelled" in (await in_a_thread(typed, "cancel", job.job_id)).output
    assert "queued" in (await in_a_thread(typed, "retry", job.job_id)).output


SAID = {
    Kind.AUDIT_VERIFICATION: ({}, {"seals": 7, "entries": 900}, "", "7 seals, 900 entries"),
    Kind.RECONCILE: ({}, {"tron": {}, "ethereum": {}}, "", "compared ethereum, tron"),
    Kind.RESCAN: (
        {"chain": "tron", "first": 5, "last": 90},
        {"height": 40, "blocks": 36, "deposits": 2},
        "tron 5 to 90",
        "tron 5 to 90, up to block 40",
    ),
    Kind.STATEMENT_EXPORT: ({}, {"pieces": 2, "entries": 4000, "first": 9, "end": 12}, "", "4000 entries"),
    Kind.TRACKER_HISTORY: ({"chain": "tron", "scope": 0}, {"height": 40}, "tron", "tron up to block 40"),
    Kind.WEBHOOK_REDELIVERY: ({}, {"queued": 30, "last": 77}, "", "30 deliveries"),
}
"""What is asked for and how far it is, and what a line says of it before and after."""


async def test_each_line_says_how_far_the_job_is(typed, db, clock, ids):
    assert set(SAID) == set(Kind)
    for kind, (arguments, progress, before, after) in SAID.items():
        async with db.transaction() as conn:
            new = NewJob(kind=kind, arguments=arguments, requested_by="operator")
            job = await requests.request(conn, ids, new, clock.now())
        assert (await in_a_thread(typed)).output.splitlines()[0].split("  ")[2:-2] == [
            kind,
            *([before] if before else []),
        ]
        async with db.transaction() as conn:
            held = await leases.claim(conn, job.pk, worker="here", now=clock.now(), leased_until=clock.now())
            await leases.save(conn, held, progress, clock.now())
        assert (await in_a_thread(typed)).output.splitlines()[0].split("  ")[2:-2] == [kind, after]


async def test_the_file_of_a_job_is_written_once_it_is_whole(typed, job, db, clock, tmp_path):
    file = tmp_path / "file"
    async with db.transaction() as conn:
        held = await leases.claim(conn, job.pk, worker="here", now=clock.now(), leased_until=clock.now())
        await conn.exec_driver_sql(
            "INSERT INTO job_outputs (job_pk, number, content) VALUES ($1, 0, 'file')", (job.pk,)
        )
    answer = await in_a_thread(typed, "show", job.job_id, "--output", str(file))
    assert (answer.exit_code, answer.output) == (
        1,
        "Error: The job is running; there is no file before it succeeded.\n",
    )
    assert not file.exists()
    async with db.transaction() as conn:
        await leases.succeed(conn, held, {}, clock.now())
    shown = json.loads((await in_a_thread(typed, "show", job.job_id, "--output", str(file))).output)
    assert (shown["state"], file.read_bytes()) == ("succeeded", b"file")
    for path, words in (
        (tmp_path / "nowhere" / "file", "cannot be written: No such file"),
        ("/dev/full", "not whole: No"),
    ):
        answer = await in_a_thread(typed, "show", job.job_id, "--output", str(path))
        assert answer.exit_code == 1
        assert f"{path} {'is ' if 'whole' in words else ''}{words}" in answer.output


async def test_a_file_from_before_is_there_until_the_whole_one_takes_its_place(
    typed, job, db, clock, tmp_path, monkeypatch
):
    file = tmp_path / "file"
    file.write_bytes(b"of before")
    async with db.transaction() as conn:
        held = await leases.claim(conn, job.pk, worker="here", now=clock.now(), leased_until=clock.now())
        await conn.exec_driver_sql(
            "INSERT INTO job_outputs (job_pk, number, content) VALUES ($1, 0, 'fi'), ($1, 1, 'le')", (job.pk,)
        )
        await leases.succeed(conn, held, {}, clock.now())
    read = requests.output

    async def broken_off(*where):
        async for piece in read(*where):
            yield piece
            raise OSError("the connection broke off")

    monkeypatch.setattr(requests, "output", broken_off)
    answer = await in_a_thread(typed, "show", job.job_id, "--output", str(file))
    assert str(answer.exception) == "The database cannot be used: the connection broke off."
    assert file.read_bytes() == b"of before"
    monkeypatch.setattr(requests, "output", read)
    await in_a_thread(typed, "show", job.job_id, "--output", str(file))
    assert file.read_bytes() == b"file"
    # As with /dev/stdout, which is another file or a pipe, and has to stay.
    link = tmp_path / "link"
    link.symlink_to(file)
    file.write_bytes(b"of before")
    await in_a_thread(typed, "show", job.job_id, "--output", str(link))
    assert (link.readlink(), file.read_bytes()) == (file, b"file")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "cambist.toml", file, link]


async def test_workers_are_told_at_once_of_what_a_command_has_queued(typed, job, redis_url):
    async with Redis.from_url(redis_url) as redis, redis.pubsub(ignore_subscribe_messages=True) as pubsub:
        await pubsub.subscribe(PREFIX + requests.TOPIC)
        await in_a_thread(typed, "cancel", job.job_id)
        for words in (["reconcile"], ["retry", job.job_id]):
            assert (await in_a_thread(typed, *words)).exit_code == 0
            async with asyncio.timeout(60):
                while await pubsub.get_message(timeout=None) is None:
                    pass


async def test_what_cannot_be_done_is_said_in_a_sentence(typed, job):
    answer = await in_a_thread(typed, "retry", job.job_id)
    assert (answer.exit_code, answer.output) == (
        1, "Error: The job is queued; only failed and cancelled ones are retried.\n",
    )  # fmt: skip
    assert "There is no job job_x." in (await in_a_thread(typed, "show", "job_x")).output


async def test_a_reconcile_and_a_statement_can_be_asked_for_once_at_a_time(typed, db, ids):
    await make_project(db, ids)
    async with db.autocommit() as conn:
        merchant = (await conn.exec_driver_sql("SELECT merchant_id FROM merchants")).scalar_one()
    for words in (["reconcile"], ["reconcile", "--chain", "ethereum"], ["statement", merchant, "--from", "2026-01-01"]):
        first, second = [await in_a_thread(typed, *words) for _ in range(2)]
        assert first.exit_code == 0, first.output
        assert first.output == second.output
    async with db.autocommit() as conn:
        jobs = (await requests.list_jobs(conn)).items
    assert [(job.kind, job.arguments, job.mode) for job in jobs] == [
        ("statement_export", {"since": "2026-01-01T00:00:00+00:00", "merchant_id": merchant}, "live"),
        ("reconcile", {"chains": ["ethereum"]}, None),
        ("reconcile", {}, None),
    ]
    assert "There is no such merchant." in (await in_a_thread(typed, "statement", "mer_x")).output


async def test_a_reconcile_of_a_chain_that_is_not_there_is_refused(typed, db):
    answer = await in_a_thread(typed, "reconcile", "--chain", "moon")
    assert str(answer.exception) == "There is no live chain 'moon'; there are: ethereum."
    async with db.autocommit() as conn:
        assert (await requests.list_jobs(conn)).items == []
