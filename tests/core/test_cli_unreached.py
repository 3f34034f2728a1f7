"""Every command that needs the database says in a sentence why it cannot have it, and no word of the password."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from tests.support.command import run_command

COMMANDS = (
    ("migrate",),
    ("admin", "list"),
    ("audit",),
    ("audit", "verify"),
    ("jobs",),
    ("jobs", "retry", "job_1"),
    ("settings",),
    ("settings", "remove", "x"),
    ("keys", "reencrypt"),
    ("manifest", "recovery.json"),
    ("reconcile",),
    ("restore", "empty.json"),
    ("stake", "tron", "show"),
    ("sweeper", "tron"),
    ("doctor",),
)
PASSWORD = "hunter2"
WAYS = {
    "down": "Connection refused|Connect call failed",
    "nowhere": "not known|name resolution",
    "password": "password authentication failed",
    "name": 'database "moon" does not exist',
}


@pytest.fixture
def addresses(database_url):
    """Give for each way an address that leads nowhere."""
    there = urlsplit(database_url)
    with_password = there._replace(netloc=f"{there.username}:{PASSWORD}@{there.netloc.rpartition('@')[2]}")
    return {
        "down": f"postgresql://cambist:{PASSWORD}@127.0.0.1:1/x",
        "nowhere": f"postgresql://cambist:{PASSWORD}@nowhere.invalid/x",
        "password": with_password.geturl(),
        "name": there._replace(path="/moon").geturl(),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "command, way",
    [
        *((command, "password") for command in COMMANDS),
        *((command, way) for command in (("migrate",), ("jobs",), ("doctor",)) for way in WAYS if way != "password"),
    ],
    ids=lambda part: part if isinstance(part, str) else " ".join(part),
)
def test_a_command_says_why_it_has_no_database(tmp_path, addresses, redis_url, command, way):
    (tmp_path / "cambist.toml").write_text(
        f'[database]\nurl = "{addresses[way]}"\n[redis]\nurl = "{redis_url}"\n'
        f'[keys]\napplication_key = "{"ab" * 32}"\nkeystore = "k.json"\npassphrase = "correct horse battery"\n'
    )
    (tmp_path / "empty.json").write_text('{"merchants": [], "chains": []}')
    (tmp_path / "passphrase").write_text("correct horse battery")
    made = run_command("keys", "init", "k.json", "--passphrase-file", "passphrase", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    answer = run_command(*command, cwd=tmp_path)
    told = answer.stdout + answer.stderr
    assert answer.returncode != 0
    assert re.search(WAYS[way], told), told
    assert "Traceback" not in told, told
    assert PASSWORD not in told
