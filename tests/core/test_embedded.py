"""The embedded servers: that they start, are found closed to others, and recover from their owner's sudden end."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncpg
import psutil
import pytest
import redis

from cambist.embedded import EmbeddedError, EmbeddedServers, own_data_dir, postgres, reached_database
from cambist.embedded.postgres import shared_buffers_mb, usable_memory

OWNER = """
import os, sys, time
from pathlib import Path
from cambist.embedded import EmbeddedServers, own_data_dir
with own_data_dir(Path(sys.argv[1])) as folder, EmbeddedServers(folder, os.urandom) as servers:
    print(servers.database_url, flush=True)
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("embedded") / "data"
    with own_data_dir(folder), EmbeddedServers(folder, os.urandom):
        pass
    return folder


def _query(url: str, statement: str):
    async def run():
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return asyncio.run(run())


def _ask(servers, statement):
    assert servers.database_url is not None
    return _query(servers.database_url, statement)


def _kill(servers: EmbeddedServers, *pid_files: Path) -> None:
    for file in pid_files:
        os.kill(int(file.read_text().splitlines()[0]), signal.SIGKILL)
    while servers.running:
        time.sleep(0.01)


def test_both_start_again_in_less_than_two_seconds_and_stop(data_dir):
    took = []
    for _ in range(10):  # the machine may be busy with something else
        began = time.monotonic()
        with own_data_dir(data_dir) as folder, EmbeddedServers(folder, os.urandom):
            took.append(time.monotonic() - began)
        if took[-1] < 2:
            break
    assert min(took) < 2
    with own_data_dir(data_dir) as folder, EmbeddedServers(folder, os.urandom) as servers:
        assert servers.running
        assert _ask(servers, "SHOW server_version_num") >= "180000"
        with redis.Redis.from_url(servers.redis_url) as client:
            assert client.info("server")["valkey_version"].startswith("9.")
    assert not servers.running
    assert not (data_dir / "postgres" / "postmaster.pid").exists()
    assert not (data_dir / "valkey" / "valkey.sock").exists()


def test_commits_survive_a_power_cut_by_configuration(data_dir):
    with own_data_dir(data_dir) as folder, EmbeddedServers(folder, os.urandom, valkey=False) as servers:
        for setting in ("fsync", "synchronous_commit", "full_page_writes", "data_checksums"):
            assert _ask(servers, f"SHOW {setting}") == "on"
        assert _ask(servers, "SHOW server_encoding") == "UTF8"
        assert _ask(servers, "SHOW listen_addresses") == ""


def test_nobody_gets_in_without_the_password(data_dir):
    with own_data_dir(data_dir) as folder, EmbeddedServers(folder, os.urandom) as servers:
        wrong = servers.database_url.replace((data_dir / "postgres.password").read_text().strip(), "wrong")
        with pytest.raises(asyncpg.InvalidPasswordError):
            _query(wrong, "SELECT 1")
        with (
            redis.Redis.from_url(f"unix://{data_dir}/valkey/valkey.sock") as client,
            pytest.raises(redis.AuthenticationError),
        ):
            client.ping()
    for name in ("postgres", "run", "valkey", "postgres.password", "postgres.log"):
        assert stat.S_IMODE((data_dir / name).stat().st_mode) & 0o077 == 0, name


def test_a_data_directory_has_one_owner(data_dir):
    refused = pytest.raises(EmbeddedError, match=f"in use by .*pid {os.getpid()}")
    with own_data_dir(data_dir), refused, own_data_dir(data_dir):
        pass
    with own_data_dir(data_dir):
        pass


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(EmbeddedError, match="cannot be used"), own_data_dir(tmp_path / "file" / "data"):
        pass


def test_what_was_committed_is_there_after_the_owner_was_killed(data_dir):
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(data_dir)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    url = owner.stdout.readline().strip()
    _query(url, "CREATE TABLE IF NOT EXISTS kept AS SELECT 7 AS number")
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    left = int((data_dir / "postgres" / "postmaster.pid").read_text().splitlines()[0])
    os.kill(left, 0)  # still there, as an orphan
    with own_data_dir(data_dir) as folder, EmbeddedServers(folder, os.urandom) as servers:
        assert _ask(servers, "SELECT number FROM kept") == 7
        now = int((data_dir / "postgres" / "postmaster.pid").read_text().splitlines()[0])
        assert now != left


def test_a_server_that_was_killed_starts_again_on_the_same_address(data_dir):
    with own_data_dir(data_dir) as folder, EmbeddedServers(folder, os.urandom) as servers:
        urls = servers.database_url, servers.redis_url
        _kill(servers, data_dir / "valkey" / "valkey.pid", data_dir / "postgres" / "postmaster.pid")
        servers.start()
        assert (servers.database_url, servers.redis_url) == urls
        assert _ask(servers, "SELECT 1") == 1


def test_a_killed_server_starts_again_though_a_query_of_before_is_still_under_way(data_dir):
    with (
        own_data_dir(data_dir) as folder,
        EmbeddedServers(folder, os.urandom, valkey=False) as servers,
        ThreadPoolExecutor(1) as beside,
    ):
        # It takes ten seconds and more, in which it does not notice that its server is gone.
        long = beside.submit(_ask, servers, "SELECT count(*) FROM (SELECT generate_series(1, 100000000)) AS rows")
        others = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()"
        while not _ask(servers, others):
            time.sleep(0.01)
        _kill(servers, data_dir / "postgres" / "postmaster.pid")
        servers.start()
        with pytest.raises((OSError, asyncpg.PostgresError)):
            long.result(timeout=10)
        assert _ask(servers, "SELECT 1") == 1


@pytest.fixture
def recovering(data_dir):
    """Have the database recover when it starts, for seconds: it looks for more to do, and is told each time late."""
    signal_file = data_dir / "postgres" / "recovery.signal"
    signal_file.touch(mode=0o600)
    shutil.chown(signal_file, (data_dir / "postgres").stat().st_uid, (data_dir / "postgres").stat().st_gid)
    yield {"restore_command": "sleep 2; false"}
    signal_file.unlink(missing_ok=True)


@pytest.mark.slow
def test_a_database_that_recovers_for_longer_than_anybody_thought_is_waited_for(
    data_dir, recovering, monkeypatch, capfd
):
    monkeypatch.setattr(postgres, "READY_S", 1)
    with (
        own_data_dir(data_dir) as folder,
        EmbeddedServers(folder, os.urandom, valkey=False, postgres_settings=recovering) as servers,
    ):
        assert _ask(servers, "SELECT 1") == 1
    assert "server_still_starting" in "".join(capfd.readouterr())


@pytest.mark.slow
def test_who_stops_waits_for_no_database_that_recovers(data_dir, recovering):
    with own_data_dir(data_dir) as folder:
        servers = EmbeddedServers(folder, os.urandom, valkey=False, postgres_settings=recovering)
        servers.start((data_dir / "postgres" / "postmaster.pid").exists)
        servers.stop()
    assert not servers.running
    assert (data_dir / "postgres" / "recovery.signal").exists()


def test_a_pid_file_whose_number_belongs_to_somebody_else_now_harms_nobody(data_dir):
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        (data_dir / "valkey" / "valkey.pid").write_text(str(stranger.pid))
        (data_dir / "postgres" / "postmaster.pid").write_text(f"{stranger.pid}\n{data_dir}/postgres\n1\n5432\n")
        with own_data_dir(data_dir) as folder, EmbeddedServers(folder, os.urandom) as servers:
            assert _ask(servers, "SELECT 1") == 1
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_pid_file_that_holds_no_number_harms_nobody(data_dir):
    (data_dir / "postgres" / "postmaster.pid").write_text("\0\0\0")
    with own_data_dir(data_dir) as folder, EmbeddedServers(folder, os.urandom) as servers:
        assert _ask(servers, "SELECT 1") == 1


@pytest.mark.parametrize("part", ["postgres/PG_VERSION", "postgres.password"])
def test_a_part_that_was_removed_is_told(data_dir, part):
    removed, kept = data_dir / part, data_dir / "kept"
    removed.rename(kept)
    try:
        with (
            own_data_dir(data_dir) as folder,
            pytest.raises(EmbeddedError, match=rf"cannot be started: .*{removed.name}: No such file"),
            EmbeddedServers(folder, os.urandom),
        ):
            pass
        with (
            pytest.raises(EmbeddedError, match=f"{removed.name}: No such file"),
            reached_database(data_dir, os.urandom),
        ):
            pass
    finally:
        kept.rename(removed)
    with own_data_dir(data_dir) as folder, EmbeddedServers(folder, os.urandom) as servers:
        assert _ask(servers, "SELECT 1") == 1


def test_a_cluster_that_was_only_half_made_is_made_anew(tmp_path):
    data_dir = tmp_path / "data"
    (data_dir / "postgres.new").mkdir(parents=True)
    (data_dir / "postgres.new" / "PG_VERSION").write_text("18\n")
    with own_data_dir(data_dir) as folder, EmbeddedServers(folder, os.urandom, valkey=False) as servers:
        assert _ask(servers, "SELECT current_database()") == "cambist"


def test_a_cluster_of_another_version_is_refused_and_left_alone(tmp_path):
    data_dir = tmp_path / "data"
    (data_dir / "postgres").mkdir(parents=True)
    (data_dir / "postgres" / "PG_VERSION").write_text("15\n")
    with (
        own_data_dir(data_dir) as folder,
        pytest.raises(EmbeddedError, match="made by PostgreSQL 15"),
        EmbeddedServers(folder, os.urandom, valkey=False),
    ):
        pass


def test_where_the_path_is_too_long_for_a_socket_loopback_and_a_password_serve(tmp_path):
    data_dir = tmp_path / ("long" * 25) / "data"
    with own_data_dir(data_dir) as folder, EmbeddedServers(folder, os.urandom) as servers:
        assert "@127.0.0.1:" in servers.database_url
        assert _ask(servers, "SHOW listen_addresses") == "127.0.0.1"
        with pytest.raises(asyncpg.InvalidPasswordError):
            _query(servers.database_url.replace("cambist:", "cambist:x", 1), "SELECT 1")
        with redis.Redis.from_url(servers.redis_url) as client:
            assert client.ping()


@pytest.mark.parametrize(
    "memory, kept", [(2**29, 128), (2 * 2**30, 256), (4 * 2**30, 512), (24 * 2**30, 1024), (512 * 2**30, 1024)]
)
def test_postgresql_keeps_an_eighth_of_the_memory_within_bounds(memory, kept):
    assert shared_buffers_mb(memory) == kept


def test_a_containers_limit_counts_where_it_is_lower(monkeypatch, tmp_path):
    machine = psutil.virtual_memory().total
    lower, higher, word = (tmp_path / name for name in ("lower", "higher", "word"))
    for path, text in ((lower, f"{machine // 2}\n"), (higher, f"{machine * 4}\n"), (word, "max\n")):
        path.write_text(text)
    for paths, memory in (([lower, higher], machine // 2), ([higher, word, tmp_path / "none"], machine)):
        monkeypatch.setattr("cambist.embedded.postgres._MEMORY_LIMITS", paths)
        assert usable_memory() == memory
