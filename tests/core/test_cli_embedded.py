"""Commands that read the books, beside a gateway whose database is its own: while it is up, and while it is not."""

from __future__ import annotations

import json
import os

import pytest

from cambist.db.migrations import migrate
from cambist.embedded import EmbeddedServers, own_data_dir
from tests.support.command import run_command


@pytest.fixture
def cambist(tmp_path):
    (tmp_path / "cambist.toml").write_text("")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CAMBIST")}
    return lambda *arguments: run_command(*arguments, cwd=tmp_path, environment=environment)


def agrees(answer) -> bool:
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)["agrees"]


def test_the_database_of_the_data_directory_is_read_whether_or_not_it_runs(cambist, tmp_path):
    with own_data_dir(tmp_path / "data") as folder, EmbeddedServers(folder, os.urandom, valkey=False) as servers:
        assert servers.database_url is not None
        migrate(servers.database_url)
        assert agrees(cambist("reconcile", "--json", "--data-dir", "data"))
        assert servers.running
    assert agrees(cambist("reconcile", "--json", "--data-dir", "data"))
    with own_data_dir(tmp_path / "data"):
        starting = cambist("reconcile", "--json", "--data-dir", "data")
    assert starting.returncode == 78
    assert "is in use by another cambist process" in starting.stderr


def test_where_there_is_none_it_says_what_to_name(cambist, tmp_path):
    answer = cambist("reconcile", "--data-dir", "nowhere")
    assert answer.returncode == 78
    assert "database.url must be set" in answer.stderr
    assert f"named by --data-dir, and {tmp_path / 'nowhere'} has none." in answer.stderr
    assert not (tmp_path / "nowhere").exists()
