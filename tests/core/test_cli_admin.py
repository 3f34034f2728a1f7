"""``cambist admin``, as somebody types it on the gateway's machine."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from cambist.cli import cambist
from cambist.services.audit.entries import newest
from cambist.services.identity import credentials
from cambist.services.identity.operators import OPERATORS
from cambist.settings_file import CONFIG_VARIABLE
from tests.support.command import run_command

PASSWORD = "correct horse battery staple"
URL = "https://pay.example.com"


@pytest.fixture
def folder(tmp_path, database_url):
    settings = f'[database]\nurl = "{database_url}"\n[web]\npublic_url = "{URL}"\n'
    (tmp_path / "cambist.toml").write_text(settings)
    return tmp_path


@pytest.fixture
def typed(folder):
    def run(*arguments):
        return run_command("admin", *arguments, cwd=folder)

    return run


def create(typed, email="ada@example.com", role="owner"):
    return typed("create", email, "--name", "Ada", "--role", role)


async def test_the_first_owner_is_made_with_a_link_that_sets_the_password_once(typed, db, clock):
    made = create(typed, "Ada@Example.com")
    assert made.returncode == 0, made.stderr
    operator_id, _, link = made.stdout.splitlines()
    found = re.fullmatch(rf"{URL}/operator/set-password#(opl_\w+)", link)
    assert found is not None
    async with db.transaction() as conn:
        entries = await newest(conn, limit=9)
        stored = (await conn.exec_driver_sql("SELECT e::text FROM audit_entries e")).scalars().all()
        assert found[1] not in "".join(stored)
        now = (await conn.exec_driver_sql("SELECT now()")).scalar_one()
        person = await credentials.set_by_link(conn, OPERATORS, found[1], "hash", now=now)
    assert (person.operator_id, person.email, person.role) == (operator_id, "ada@example.com", "owner")
    (entry,) = entries
    assert (entry.action, entry.actor_kind, entry.subject) == ("operator.made", "operator", operator_id)
    assert entry.actor.endswith(" at the command line")
    assert "not signed in yet" in typed("list").stdout
    again = create(typed)
    assert (again.returncode, again.stdout) == (1, "")
    assert "exists already. 'cambist admin link ada@example.com' prints another link." in again.stderr


@pytest.mark.parametrize("act", ["create", "link", "reset-two-factor"])
def test_a_link_leads_to_the_port_that_was_said_where_nothing_else_says_where_it_leads(typed, folder, act):
    config = folder / "cambist.toml"
    config.write_text(config.read_text().partition("[web]")[0])
    if act != "create":
        assert create(typed).returncode == 0
    more = ("--name", "Ada", "--role", "owner") if act == "create" else ()
    made = typed(act, "ada@example.com", *more, "--port", "8099")
    assert made.stdout.splitlines()[-1].startswith("http://127.0.0.1:8099/operator/set-password#"), made.stderr


def test_a_password_is_asked_for_without_being_shown_and_judged(folder, monkeypatch):
    monkeypatch.setenv(CONFIG_VARIABLE, str(folder / "cambist.toml"))
    arguments = ["admin", "create", "ada@example.com", "--name", "Ada", "--role", "owner", "--ask-password"]
    weak = CliRunner().invoke(cambist, arguments, input="password12\npassword12\n")
    assert weak.exit_code == 1
    assert "too easy to guess" in weak.output
    made = CliRunner().invoke(cambist, arguments, input=f"{PASSWORD}\n{PASSWORD}\n")
    assert made.exit_code == 0, made.output
    assert PASSWORD not in made.output
    assert "#" not in made.output, "no link is needed"


async def test_the_last_owner_stays_and_others_come_and_go(typed, db):
    create(typed)
    create(typed, "bob@example.com", "support")
    for refused in (typed("disable", "ada@example.com"), typed("set-role", "ada@example.com", "auditor")):
        assert refused.returncode == 1
        assert "last owner" in refused.stderr
    assert "  operator  bob@example.com" in typed("set-role", "bob@example.com", "operator").stdout
    assert typed("disable", "Bob@example.com").stdout.rstrip().endswith("disabled")
    assert typed("enable", "bob@example.com").stdout.rstrip().endswith("not signed in yet")
    async with db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE operators SET password_hash = 'stolen'")
    assert "/operator/set-password#opl_" in typed("reset-two-factor", "bob@example.com").stdout
    async with db.transaction() as conn:
        query = "SELECT email FROM operators WHERE password_hash = 'stolen'"
        assert (await conn.exec_driver_sql(query)).scalars().all() == ["ada@example.com"]
    assert "/operator/set-password#opl_" in typed("link", "bob@example.com").stdout
    async with db.transaction() as conn:
        acts = [entry.action for entry in reversed(await newest(conn, limit=99))]
    assert acts == [
        "operator.made", "operator.made", "operator.role_changed", "operator.disabled", "operator.enabled",
        "two_factor.reset", "password_reset.issued",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("disable", "nobody@example.com"), "no operator with this e-mail address"),
        (("link", "nobody@example.com"), "no operator with this e-mail address"),
        (("reset-two-factor", "nobody@example.com"), "no operator with this e-mail address"),
        (("create", "nobody", "--name", "N", "--role", "owner"), "must be an e-mail address"),
        (("create", "a@example.com", "--name", " ", "--role", "owner"), "must be printable text"),
    ],
)
def test_what_cannot_be_meant_is_said_in_a_sentence(typed, arguments, words):
    answer = typed(*arguments)
    assert answer.returncode == 1
    assert words in answer.stderr
    assert "Traceback" not in answer.stderr
