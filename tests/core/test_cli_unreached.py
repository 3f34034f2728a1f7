"""Every command that needs the database says in a sentence why it cannot have it, and no word of the password."""

from __future__ import annotations

import asyncio
import os
import re
from urllib.parse import urlsplit

import asyncpg
import pytest

from cambist.signer.keystore import Kdf, Keystore, save_keystore
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
PASSPHRASE = "correct horse battery"
WORDS = " ".join(["abandon"] * 11 + ["about"])
QUICK = Kdf(time_cost=1, memory_kib=64, parallelism=1)
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


def run(folder, url, redis_url, command):
    (folder / "cambist.toml").write_text(
        f'[database]\nurl = "{url}"\n[redis]\nurl = "{redis_url}"\n'
        f'[keys]\napplication_key = "{"ab" * 32}"\nkeystore = "k.json"\npassphrase = "{PASSPHRASE}"\n'
        f'[auth]\njwt_secret = "{"j" * 32}"\n'
    )
    (folder / "empty.json").write_text('{"merchants": [], "chains": []}')
    save_keystore(folder / "k.json", Keystore(WORDS), PASSPHRASE, os.urandom, QUICK)
    return run_command(*command, cwd=folder)


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
    answer = run(tmp_path, addresses[way], redis_url, command)
    told = answer.stdout + answer.stderr
    assert answer.returncode != 0
    assert re.search(WAYS[way], told), told
    assert "Traceback" not in told, told
    assert PASSWORD not in told


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [one for one in COMMANDS if one[0] not in {"migrate", "doctor", "sweeper"}], ids=" ".join
)
def test_a_command_says_that_a_database_is_not_migrated(tmp_path, empty_database_url, redis_url, command):
    answer = run(tmp_path, empty_database_url, redis_url, command)
    assert answer.returncode != 0
    assert "has not the tables of this version, 'cambist migrate' makes them" in answer.stderr


@pytest.mark.slow
def test_a_command_says_that_a_database_takes_no_writes(tmp_path, databases, redis_url):
    with databases.fresh() as url:
        name = urlsplit(url).path.removeprefix("/")
        asyncio.run(read_only(url, name))
        answer = run(tmp_path, url, redis_url, ("admin", "create", "a@b.example", "--name", "A", "--role", "owner"))
        assert (answer.returncode, "The database cannot be used: it takes no writes." in answer.stderr) == (78, True)


async def read_only(url: str, name: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    await connection.close()
