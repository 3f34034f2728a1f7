"""What ``cambist doctor`` says of what is stored, of the keys that it takes, and of files that are opened later."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from redis import Redis

from cambist.bootstrap import secrets_box
from cambist.db.engine import connect
from cambist.diagnosis import _SERVER, _of_server
from cambist.ports import SystemClock, system_ids
from cambist.services.addresses.account_keys import fill_stock
from cambist.services.recovery import unfinished
from cambist.settings import KeySettings, Settings
from cambist.signer.files import why_not_written
from cambist.signer.keystore import Keystore, save_keystore
from cambist.signer.local import KeystoreXpubs
from cambist.signer.store import FILE, VERSION, Store
from tests.support.command import run_command
from tests.support.valkey import mortal_valkey

WORDS = " ".join(["abandon"] * 11 + ["about"])
OTHER_WORDS = " ".join(["zoo"] * 11 + ["wrong"])
PASSPHRASE = "correct horse battery"
KEY, OTHER_KEY = "ab" * 32, "cd" * 32


@pytest.fixture
def doctor(tmp_path, database_url, redis_url):
    ids = system_ids()
    for name, words in (("k.json", WORDS), ("other.json", OTHER_WORDS)):
        save_keystore(tmp_path / name, Keystore(words), PASSPHRASE, ids.random_bytes)

    async def fill():
        db = connect(database_url, application_name="cambist-tests")
        box = secrets_box(Settings(keys=KeySettings(application_key=KEY)), ids)
        await fill_stock(db, KeystoreXpubs(Keystore(WORDS)), box, coin_types=[195], stock=1)
        await db.close()

    asyncio.run(fill())

    def told(keystore="k.json", key=KEY, more="", signer="", redis=redis_url):
        (tmp_path / "cambist.toml").write_text(
            f'{more}\n[database]\nurl = "{database_url}"\n[redis]\nurl = "{redis}"\n[signer]\n{signer}\n'
            f'[keys]\nkeystore = "{keystore}"\npassphrase = "{PASSPHRASE}"\napplication_key = "{key}"\n'
        )
        answer = run_command("doctor", cwd=tmp_path)
        problems = [line.removeprefix("✗ ") for line in answer.stdout.splitlines() if line.startswith("✗")]
        assert answer.returncode == (1 if problems else 0), answer.stdout + answer.stderr
        return problems

    return told


@pytest.mark.slow
def test_keys_that_are_not_those_of_the_database_are_told(doctor):
    assert doctor() == []
    (problem,) = doctor(keystore="other.json")
    assert problem.startswith("keystore: The database's account keys were derived from another keystore")
    (problem,) = doctor(key=OTHER_KEY)
    assert problem == (
        "application key: none that is configured opens all of account_keys.xpub_encrypted: put what is missing into"
        " keys.previous_keys"
    )


@pytest.mark.slow
def test_a_restore_that_has_not_come_to_its_end_is_told(doctor, database_url):
    async def begin():
        db = connect(database_url, application_name="cambist-tests")
        async with db.transaction() as conn:
            await unfinished.begin(conn)
        await db.close()

    asyncio.run(begin())
    (problem,) = doctor()
    assert problem.startswith("database: a restore of it has not come to its end, and workers wait for that")


@pytest.mark.slow
def test_files_without_which_a_worker_does_not_start_or_loses_what_it_writes_are_told(doctor, tmp_path):
    (problem,) = doctor(signer="approvals_by_api = true")
    assert "nobody has a secret: run 'cambist signer enrol' first" in problem
    store = tmp_path / ".cambist" / "signer"
    Store(store).close()
    assert doctor() == []
    with closing(sqlite3.connect(store / FILE)) as connection:
        connection.execute("PRAGMA user_version = 99")
    (problem,) = doctor()
    assert problem.startswith("signer: The signer's store")
    assert problem.endswith(f"is of version 99, not {VERSION}.")
    (store / FILE).write_bytes(b"no database" * 1_000)
    (problem,) = doctor()
    assert "cannot be used: file is not a database" in problem
    (store / FILE).unlink()
    (tmp_path / "file").touch()
    manifest, signed = doctor(more='data_dir = "file/data"')
    assert manifest.startswith("data_dir: the recovery manifest cannot be written to ")
    assert signed.startswith("signer.store: what was signed cannot be written to ")


@pytest.mark.slow
def test_a_redis_that_takes_no_writes_is_told(doctor, tmp_path):
    (tmp_path / "redis").mkdir()
    with mortal_valkey(tmp_path / "redis") as valkey, Redis.from_url(valkey.url) as client:
        client.config_set("maxmemory", "1")
        (problem,) = doctor(redis=valkey.url)
        assert problem.startswith("redis: this Valkey takes no writes, so that no job runs: ")
        assert problem.endswith("command not allowed when used memory > 'maxmemory'.")
        client.config_set("maxmemory", "0")
        client.replicaof("127.0.0.1", 1)
        (problem,) = doctor(redis=valkey.url)
        assert problem == "redis: this Valkey is a replica, which takes no writes: name the primary"


@pytest.mark.slow
async def test_stored_settings_that_are_not_read_are_told(doctor, db):
    async with db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO platform_settings (id, settings, updated_at) VALUES (1, '{\"moon\": 1}', $1)"
            " ON CONFLICT (id) DO UPDATE SET settings = excluded.settings",
            (SystemClock().now(),),
        )
    (problem,) = await asyncio.to_thread(doctor)
    assert problem == "platform settings: this version does not read moon: 'cambist settings' says why"


@pytest.mark.slow
async def test_a_database_that_is_full_or_read_only_is_told(doctor, db):
    """PostgreSQL says that its disk is full to whoever needs more room, and answers all that is read: as here."""
    async with db.transaction() as conn:
        name = (await conn.exec_driver_sql("SELECT current_database()")).scalar_one()
        await conn.exec_driver_sql(
            "CREATE FUNCTION full_disk() RETURNS event_trigger LANGUAGE plpgsql AS $$"
            " BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$"
        )
        await conn.exec_driver_sql("CREATE EVENT TRIGGER full_disk ON ddl_command_start EXECUTE FUNCTION full_disk()")
    try:
        (problem,) = await asyncio.to_thread(doctor)
        assert problem == "database: its disk is full: nothing is written to it until there is room"
    finally:
        async with db.transaction() as conn:
            await conn.exec_driver_sql("DROP EVENT TRIGGER full_disk")
            await conn.exec_driver_sql("DROP FUNCTION full_disk")
            await conn.exec_driver_sql(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    try:
        (problem,) = await asyncio.to_thread(doctor)
        assert problem == "database: it takes no writes: it is read-only"
    finally:
        async with db.transaction() as conn:
            await conn.exec_driver_sql(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')


def test_a_folder_that_takes_no_more_is_told(tmp_path):
    assert why_not_written(tmp_path) is None
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        assert why_not_written(tmp_path) == "takes no more: File too large"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_to_whose_folder_takes_no_others():
    with TemporaryDirectory() as folder:
        seals = Path(folder, "seals")
        seals.touch()
        seals.chmod(0o666)
        Path(folder).chmod(0o555)
        me = os.geteuid()
        if me == 0:  # who may write to every folder
            os.seteuid(65_534)
        try:
            assert why_not_written(seals) is None
            assert why_not_written(Path(folder)) is not None
        finally:
            os.seteuid(me)
            Path(folder).chmod(0o755)


def test_a_standby_a_clock_that_is_wrong_and_tables_that_are_closed_are_told(clock):
    now = clock.now()
    row = SimpleNamespace(is_standby=False, is_read_only=False, at=now, account="app", closed=None)
    assert _of_server(row, now + timedelta(seconds=60)) == []
    told = SimpleNamespace(is_standby=True, is_read_only=True, at=now, account="app", closed="jobs, merchants")
    assert [finding.text for finding in _of_server(told, now - timedelta(seconds=61)) if finding.problem] == [
        "it is a standby, which takes no writes: name the primary",
        "this machine's clock is 61 s behind the database's; set both right",
        "the account app may not read and write jobs, merchants: see 'Accounts of the database'",
    ]


async def test_the_tables_are_looked_at_with_the_rights_of_the_account(db):
    async with db.transaction() as conn:
        await conn.exec_driver_sql("CREATE ROLE doctor_of_this_test")
        await conn.exec_driver_sql("GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO doctor_of_this_test")
        await conn.exec_driver_sql("REVOKE INSERT ON jobs FROM doctor_of_this_test")
        await conn.exec_driver_sql("SET LOCAL ROLE doctor_of_this_test")
        row = (await conn.exec_driver_sql(_SERVER)).one()
        await conn.rollback()
    assert (row.is_standby, row.is_read_only, row.account, row.closed) == (False, False, "doctor_of_this_test", "jobs")
