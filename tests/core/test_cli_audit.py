"""``cambist audit``, as an operator types it."""

from __future__ import annotations

import asyncio
import json

import pytest
from click.testing import CliRunner
from sqlalchemy import text

from cambist.cli import cambist
from cambist.ports import SystemClock
from cambist.secrets import SecretsBox
from cambist.services.audit.entries import Action, Origin, newest, record
from cambist.services.audit.seals import append_lines, seal
from tests.support.command import leave_no_config

KEY = "ab" * 32


@pytest.fixture
def typed(tmp_path, database_url, redis_url, monkeypatch):
    leave_no_config(monkeypatch)
    config = tmp_path / "cambist.toml"
    config.write_text(
        f'[database]\nurl = "{database_url}"\n[redis]\nurl = "{redis_url}"\n'
        f'[keys]\napplication_key = "{KEY}"\n[auth]\njwt_secret = "{"j" * 40}"\n[audit]\nseals_file = "seals"\n'
    )

    async def run(*words):
        at = 2 if words[:2] == ("audit", "verify") or words[0] == "jobs" else 1
        command = [*words[:at], "--config", str(config), *words[at:]]
        return await asyncio.to_thread(CliRunner().invoke, cambist, command)

    return run


@pytest.fixture
async def entries(db, ids, tmp_path):
    """Have three entries written and sealed, one of them about what a stranger typed."""
    clock = SystemClock()
    async with db.transaction() as conn:
        ada = Origin(actor_kind="merchant", actor="ses_1", address="192.0.2.7", merchant_id="mer_ada")
        await record(conn, ada, Action.KEY_ISSUED, clock.now(), subject="key_1", details={"name": "Till"})
        stranger = Origin(actor_kind="stranger", actor="\x1b[2J\u202eeve@x.example", address="192.0.2.9")
        await record(conn, stranger, Action.PASSWORD_RESET_ASKED, clock.now())
        await record(conn, ada, Action.SESSION_ENDED, clock.now())
    async with db.transaction() as conn:
        made = await seal(conn, SecretsBox([bytes.fromhex(KEY)], ids.random_bytes), clock.now())
    append_lines(tmp_path / "seals", [made])


@pytest.mark.usefixtures("entries")
async def test_entries_are_listed_and_what_a_stranger_typed_is_written_out(typed):
    lines = (await typed("audit")).output.splitlines()
    assert [line.split("  ")[1:3] for line in lines] == [
        ["session.ended", "by merchant ses_1 192.0.2.7"],
        ["password_reset.asked", "by stranger \\u001b[2J\\u202eeve@x.example 192.0.2.9"],
        ["api_key.issued", "by merchant ses_1 192.0.2.7"],
    ]
    assert lines[2].endswith('mer_ada key_1  {"name":"Till"}')
    assert len((await typed("audit", "--merchant", "mer_ada", "--limit", "1")).output.splitlines()) == 1
    found = (await typed("audit", "--action", "password_reset.asked", "--json")).output.splitlines()
    assert [json.loads(line)["actor"] for line in found] == ["\x1b[2J\u202eeve@x.example"]
    assert (await typed("audit", "--action", "api_key.revoked")).output == "There are no entries.\n"


@pytest.mark.usefixtures("entries")
async def test_verify_says_what_was_changed_and_ends_with_1(typed, db, tmp_path):
    answer = await typed("audit", "verify")
    assert (answer.exit_code, answer.output) == (0, "3 entries in 1 seals; 0 wait for their seal.\n")
    async with db.transaction() as conn:
        await conn.execute(text("SET LOCAL session_replication_role = replica"))
        await conn.execute(text("DELETE FROM audit_entries WHERE id = 2"))
    answer = await typed("audit", "verify", "--json")
    assert (answer.exit_code, json.loads(answer.output)["problems"]) == (1, ["entry 2 of seal 1 was removed"])
    async with db.transaction() as conn:
        await conn.execute(text("SET LOCAL session_replication_role = replica"))
        await conn.execute(text("DELETE FROM audit_entries"))
        await conn.execute(text("DELETE FROM audit_seals"))
    answer = await typed("audit", "verify")
    assert answer.exit_code == 1
    assert "seal 1 is in the file and not in the database" in answer.output
    (tmp_path / "empty").touch()
    answer = await typed("audit", "verify", "--seals", str(tmp_path / "empty"))
    assert (answer.exit_code, "no file of seals to compare with" in answer.output) == (0, True)
    async with db.transaction() as conn:
        await conn.execute(text("DROP TABLE audit_seals"))
    assert (await typed("audit", "verify")).exit_code == 2


async def test_what_an_operator_asks_for_at_the_command_line_is_written_down(typed, db):
    job_id = (await typed("jobs", "reconcile")).output.split()[0]
    assert (await typed("jobs", "cancel", job_id)).exit_code == 0
    async with db.autocommit() as conn:
        found = await newest(conn, limit=5)
    assert [(one.action, one.subject) for one in found] == [("job.changed", job_id), ("job.asked", job_id)]
    assert all(one.actor_kind == "operator" and one.actor.endswith(" at the command line") for one in found)
