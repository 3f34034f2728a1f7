"""The command, as an operator types it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import pytest

from cambist.cli.imports import collector_off
from cambist.db.migrations import newest_revision, revision_at
from cambist.diagnosis import _chain
from cambist.domain.text import hidden_in
from cambist.embedded.processes import free_port
from cambist.ports import SystemClock
from cambist.signer import SignerUnavailableError
from cambist.signer.keystore import Kdf, Keystore, open_keystore, save_keystore
from cambist.signer.remote import RemoteSigner
from cambist.signer.store import Store
from cambist.testing.memory import MemoryChain, memory_chain_info
from tests.support.command import run_command
from tests.support.descendants import everything_below, still_there
from tests.support.signing import open_signer, request, stranger

CAMBIST = str(Path(sys.executable).with_name("cambist"))
PASSPHRASE = "correct horse battery"
WORDS = " ".join(["abandon"] * 11 + ["about"])


@pytest.fixture
def cambist(tmp_path):
    def run(*arguments: str, settings: str = "", stdin: str = "") -> subprocess.CompletedProcess[str]:
        (tmp_path / "cambist.toml").write_text(settings)
        return run_command(*arguments, cwd=tmp_path, stdin=stdin)

    return run


def test_help_lists_the_commands():
    answer = subprocess.run([CAMBIST, "--help"], capture_output=True, text=True, timeout=50, check=False)
    assert answer.returncode == 0
    for command in ("up", "web", "worker", "migrate", "keys", "plugins", "doctor"):
        assert re.search(rf"^  {command} ", answer.stdout, re.MULTILINE), command


def test_an_unknown_command_is_refused(cambist):
    answer = cambist("upp")
    assert answer.returncode == 2
    assert "No such command 'upp'" in answer.stderr


def test_garbage_is_collected_again_after_imports_whatever_became_of_them():
    with contextlib.suppress(ImportError), collector_off():
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled()


@pytest.mark.parametrize("command", ["web", "worker", "migrate", "up", "plugins"])
def test_a_mistake_in_the_settings_is_told_in_a_sentence(cambist, command):
    answer = cambist(command, settings="[databse]")
    assert answer.returncode == 78
    assert answer.stderr.strip().endswith("cambist.toml: there is no table 'databse'.")
    assert "Traceback" not in answer.stderr


def test_up_refuses_a_plugin_that_is_not_installed_before_it_starts_a_server(cambist, tmp_path):
    answer = cambist("up", "--data-dir", "data", settings="[plugins.evn]")
    assert answer.returncode == 78
    assert "[plugins.evn] names a plugin that is not installed, did you mean 'evm'?" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("command", ["web", "worker"])
def test_a_process_alone_needs_addresses(cambist, command):
    answer = cambist(command)
    assert answer.returncode == 78
    assert f"'cambist {command}' needs database.url and redis.url" in answer.stderr


def test_what_a_command_fails_with_does_nothing_to_the_terminal(cambist, tmp_path):
    taken = tmp_path / "key\x1b[2J\u202estore\u200b"
    taken.touch()
    result = cambist("keys", "init", str(taken))
    assert result.returncode == 1
    assert result.stderr.endswith(r"key\u001b[2J\u202estore\u200b exists already and is not replaced." + "\n")
    unknown = cambist("keys", "init", "--no\x1b[2J\u200bne")
    assert (unknown.returncode, unknown.stderr.startswith("Usage: cambist keys init")) == (2, True)
    assert hidden_in(unknown.stderr, lines=True) is None


def test_keys_init_makes_a_keystore_and_shows_its_words_once(cambist, tmp_path):
    answer = cambist("keys", "init", "keystore.json", stdin=f"{PASSPHRASE}\n{PASSPHRASE}\n")
    assert answer.returncode == 0, answer.stderr
    words = re.findall(r"\d+ ([a-z]+)", answer.stdout.partition("not shown again")[2])
    assert open_keystore(tmp_path / "keystore.json", PASSPHRASE).mnemonic == " ".join(words)
    again = cambist("keys", "init", "keystore.json", stdin=f"{PASSPHRASE}\n{PASSPHRASE}\n")
    assert again.returncode == 1
    assert "not replaced" in again.stderr


def test_keys_init_takes_the_words_of_an_existing_mnemonic(cambist, tmp_path):
    mnemonic = " ".join(["abandon"] * 11 + ["about"])
    (tmp_path / "passphrase").write_text(PASSPHRASE + "\n")
    arguments = ("keys", "init", "keystore.json", "--import", "--passphrase-file", "passphrase")
    answer = cambist(*arguments, stdin=mnemonic + "\n")
    assert answer.returncode == 0, answer.stderr
    assert "abandon" not in answer.stdout
    opened = open_keystore(tmp_path / "keystore.json", PASSPHRASE)
    assert opened.account_xpub("live", 60, 1) == Keystore(mnemonic).account_xpub("live", 60, 1)


def test_keys_init_refuses_words_with_a_mistake_and_writes_nothing(cambist, tmp_path):
    (tmp_path / "passphrase").write_text(PASSPHRASE)
    answer = cambist("keys", "init", "k.json", "--import", "--passphrase-file", "passphrase", stdin="a b c\n")
    assert answer.returncode == 1
    assert "mnemonic is not valid" in answer.stderr
    assert not (tmp_path / "k.json").exists()


def test_keys_init_tells_when_the_passphrase_file_is_no_text(cambist, tmp_path):
    (tmp_path / "passphrase").write_bytes(b"\xff\xfe a long enough passphrase")
    answer = cambist("keys", "init", "k.json", "--passphrase-file", "passphrase")
    assert (answer.returncode, answer.stderr) == (1, "Error: passphrase cannot be read: it is not UTF-8 text.\n")
    assert not (tmp_path / "k.json").exists()


@pytest.fixture
def made(tmp_path):
    """Make a keystore from everybody's test words, with its passphrase in a file."""
    (tmp_path / "passphrase").write_text(PASSPHRASE)
    quick = Kdf(time_cost=1, memory_kib=64, parallelism=1)
    save_keystore(tmp_path / "keystore.json", Keystore(WORDS), PASSPHRASE, os.urandom, quick)


def test_keys_show_xpubs_shows_those_of_the_accounts_asked_for_and_warns(cambist, made):
    answer = cambist(
        "keys", "show-xpubs", "keystore.json", "--passphrase-file", "passphrase", "--accounts", "1-3", "--coin", "195"
    )
    assert answer.returncode == 0, answer.stderr
    expected = [f"m/44'/195'/{at}'  {Keystore(WORDS).account_xpub('live', 195, at)}" for at in (1, 2, 3)]
    assert answer.stdout.splitlines() == expected
    assert "private key of any one of them" in " ".join(answer.stderr.split())
    assert "abandon" not in answer.stdout + answer.stderr


@pytest.mark.parametrize("accounts", ["", "x", "3-1", "0-1000", "2147483648", "-1", "٣"])
def test_keys_show_xpubs_refuses_accounts_that_are_none(cambist, made, accounts):
    answer = cambist("keys", "show-xpubs", "keystore.json", "--passphrase-file", "passphrase", f"--accounts={accounts}")
    assert answer.returncode == 1
    assert "--accounts takes" in answer.stderr


def test_keys_rotate_passphrase_changes_what_opens_the_keystore(cambist, made, tmp_path):
    (tmp_path / "next").write_text("another passphrase")
    files = ("--passphrase-file", "passphrase", "--new-passphrase-file", "next")
    answer = cambist("keys", "rotate-passphrase", "keystore.json", *files)
    assert answer.returncode == 0, answer.stderr
    assert open_keystore(tmp_path / "keystore.json", "another passphrase").mnemonic == WORDS
    again = cambist("keys", "rotate-passphrase", "keystore.json", *files)
    assert again.returncode == 1
    assert "does not open" in again.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cambist.toml", "keystore.json", "next", "passphrase"]


SIGNER = """
[keys]
keystore = "keystore.json"
passphrase = { file = "passphrase" }
application_key = { env = "WHAT_THE_SIGNER_NEED_NOT_KNOW" }
[signer]
socket = "signer.sock"
store = "signed"
[plugins.evm.chains.ethereum]
rpc_urls = ["http://127.0.0.1:1"]
"""


async def test_the_signer_signs_for_others_needs_no_server_and_stops_when_asked(made, tmp_path):
    (tmp_path / "cambist.toml").write_text(SIGNER)
    process = await asyncio.create_subprocess_exec(CAMBIST, "signer", "run", cwd=tmp_path, stderr=subprocess.PIPE)
    remote = RemoteSigner(tmp_path / "signer.sock")
    deadline = time.monotonic() + 120
    while True:
        try:
            assert await remote.account_xpub("live", 60, 1) == Keystore(WORDS).account_xpub("live", 60, 1)
            break
        except SignerUnavailableError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)
    await remote.aclose()
    process.terminate()
    async with asyncio.timeout(60):
        log = (await process.communicate())[1].decode()
    assert process.returncode == 0
    assert "signer_ready" in log
    assert not (tmp_path / "signer.sock").exists()
    for secret in ("abandon", PASSPHRASE, "xprv"):
        assert secret not in log


def test_the_signer_needs_a_socket(cambist, made):
    answer = cambist("signer", "run", settings=SIGNER.replace('socket = "signer.sock"', ""))
    assert answer.returncode == 78
    assert "signer.socket must be set" in answer.stderr


def test_an_operator_agrees_to_what_is_shown_and_to_nothing_else(cambist, tmp_path):
    settings = '[signer]\nstore = "signed"'
    assert "Nothing waits" in cambist("signer", "pending", settings=settings).stdout
    assert cambist("signer", "approve", "payout:po_1", settings=settings).returncode == 1

    async def sign(*amounts: int) -> list[str | None]:
        signer = open_signer(tmp_path / "signed", SystemClock(), approval_limits={"memory/USDX": "0.0001"})
        named = "payout:po_1"
        asked = [request(stranger("a"), amount, sequence=at, reference=named) for at, amount in enumerate(amounts)]
        replies = [reply.refusal for reply in await signer.sign(asked)]
        await signer.aclose()
        return replies

    assert asyncio.run(sign(100, 200)) == ["APPROVAL_NEEDED"] * 2
    waiting = cambist("signer", "pending", settings=settings).stdout.splitlines()
    assert [line.startswith("payout:po_1  0.000") for line in waiting] == [True, True]
    assert stranger("a") in waiting[0]
    answer = cambist("signer", "approve", "payout:po_1", settings=settings, stdin="n\ny\n")
    assert "1 of 2 approved." in answer.stdout
    assert asyncio.run(sign(100, 200)) == ["APPROVAL_NEEDED", None]


def test_a_store_that_saw_a_clock_far_ahead_is_taken_back_when_a_person_says_so(cambist, tmp_path):
    settings = '[signer]\nstore = "signed"'
    assert "Nothing is wrong" in cambist("signer", "clock", settings=settings).stdout
    with contextlib.closing(Store(tmp_path / "signed")) as store:
        with store.book(4_102_444_800):
            pass
        refused = cambist("signer", "clock", settings=settings, stdin="\n")
        assert (refused.returncode, "2100-01-01T00:00:00+00:00" in refused.stdout) == (1, True)
        assert store.latest() == 4_102_444_800
        assert cambist("signer", "clock", settings=settings, stdin="y\n").returncode == 0
        assert abs(store.latest() - time.time()) < 120


def test_migrate_brings_an_empty_database_up_to_date(cambist, empty_database_url):
    settings = f'[database]\nurl = "{empty_database_url}"'
    assert cambist("migrate", settings=settings).returncode == 0
    assert asyncio.run(revision_at(empty_database_url)) == newest_revision()
    assert "is at revision" in cambist("migrate", settings=settings).stdout


def test_migrate_tells_when_the_database_is_out_of_reach(cambist):
    answer = cambist("migrate", settings='[database]\nurl = "postgresql://cambist:hunter2@127.0.0.1:1/x"')
    assert answer.returncode == 1
    assert "cannot be reached" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert "hunter2" not in answer.stderr


def test_plugins_are_listed_with_what_is_wrong_with_them(cambist):
    answer = cambist("plugins", settings='[plugins.prices.static]\nUSDX = { usd = "1" }')
    assert answer.returncode == 0, answer.stdout
    assert re.search(r"^evm +no +cambist-evm +\S+ +1$", answer.stdout, re.MULTILINE)
    assert re.search(r"^prices +yes +cambist-prices +\S+ +1$", answer.stdout, re.MULTILINE)
    assert re.search(r"^tron +yes +cambist-tron +\S+ +1$", answer.stdout, re.MULTILINE)
    assert "The tables of all that are enabled are right: tron, prices." in answer.stdout
    missing = cambist("plugins", settings="[plugins.evn]")
    assert missing.returncode == 1
    assert "evn: it is not installed" in missing.stdout


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ("[plugins.prices]", "no source is configured"),
        ("[plugins.evm]\nspeed = 1", "[plugins.evm] has an unknown field 'speed'"),
        ("[plugins.evm.chains.local]\nrpc_urls = ['http://127.0.0.1:1']", "[plugins.evm] chains.local"),
        ("[plugins.swap_1inch]\nkey = 'k'\n[plugins.swap_1inch.chains.ethereum]\nrouter = '0x1'", "router"),
        ("[signer]\nfee_caps = { etherium = '1' }", "etherium"),
    ],
)
def test_a_table_with_which_no_process_would_start_is_said_where_plugins_are_listed(cambist, settings, sentence):
    answer = cambist("plugins", settings=settings)
    assert answer.returncode == 1
    assert "No process would start: " in answer.stdout
    assert sentence in answer.stdout


def test_the_doctor_finds_a_healthy_gateway_healthy(cambist, database_url, redis_url):
    settings = f'[database]\nurl = "{database_url}"\n[redis]\nurl = "{redis_url}"'
    answer = cambist("doctor", settings=settings)
    assert answer.returncode == 0, answer.stdout
    assert "✓ database: PostgreSQL 18, at revision" in answer.stdout
    assert "✓ redis: Valkey 9" in answer.stdout
    assert "✓ plugins: enabled: tron" in answer.stdout
    assert "✓ chain tron: no endpoints are configured; it is listed" in answer.stdout
    assert "✗" not in answer.stdout


def test_the_doctor_names_everything_that_is_wrong(cambist, empty_database_url, tmp_path):
    (tmp_path / "keystore.json").write_text("{}")
    settings = f"""
        [database]
        url = "{empty_database_url}"
        [redis]
        url = "redis://:hunter2@127.0.0.1:1/0"
        [keys]
        keystore = "keystore.json"
        passphrase = "{PASSPHRASE}"
        [plugins.evn]
    """
    answer = cambist("doctor", settings=settings)
    assert answer.returncode == 1
    assert "✗ database: it is at revision none" in answer.stdout
    assert "run 'cambist migrate'" in answer.stdout
    assert "✗ redis: it cannot be reached" in answer.stdout
    assert "✗ keystore:" in answer.stdout
    assert "✗ plugins: plugin 'evn'" in answer.stdout
    assert "hunter2" not in answer.stdout


def test_the_doctor_says_of_an_address_that_means_nothing_that_it_does(cambist):
    settings = '[database]\nurl = "postgresql://db:s3cret/x"\n[redis]\nurl = "redis://cache:hunter2/0"'
    answer = cambist("doctor", settings=settings)
    assert answer.returncode == 1
    assert "✗ database: database.url is no address that can be used: ValueError" in answer.stdout
    assert "✗ redis: redis.url is no address that can be used: ValueError" in answer.stdout
    assert "✓ plugins:" in answer.stdout
    assert not re.search(r"Traceback|s3cret|hunter2", answer.stdout + answer.stderr)


async def test_the_doctor_goes_on_where_a_plugin_trips_over_its_endpoints():
    class Silent(MemoryChain):
        def endpoints(self):
            raise KeyError("result")

    (found,) = await _chain(Silent(memory_chain_info()))
    assert (found.text, found.problem) == ("it cannot be read: 'result'", True)


def test_the_doctor_reads_settings_that_cannot_be_used(cambist):
    answer = cambist("doctor", settings="[web]\nport = 0")
    assert answer.returncode == 1
    assert "✗ settings:" in answer.stdout


def test_the_doctor_asks_a_signer_of_its_own_instead_of_opening_the_keystore(cambist):
    settings = '[signer]\nsocket = "gone.sock"\nhourly_caps = { "ethereum/USDX" = "1" }\n' + GATEWAY
    answer = cambist("doctor", settings=settings)
    assert answer.returncode == 1
    assert re.search(r"✗ signer: The signer at \S+gone.sock does not answer", answer.stdout)
    assert "✗ signer: signer.hourly_caps: 'ethereum/USDX' names no token of ethereum" in answer.stdout
    assert "keystore:" not in answer.stdout


GATEWAY = """
[plugins.evm.chains.ethereum]
simulated = true
"""


class _Up:
    """``cambist up`` in a folder of its own."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        (folder / "cambist.toml").write_text(GATEWAY + settings)
        self.data_dir = folder / "data"
        self.port = free_port()
        self.log = folder / "log"
        arguments = ["up", "--config", "cambist.toml", "--data-dir", "data", "--port", str(self.port)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [CAMBIST, *arguments],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == f"ready http://127.0.0.1:{self.port}\n", self.log.read_text()[-3000:]

    def child(self, name: str) -> psutil.Process | None:
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):  # a zombie has no command line
                if name in child.cmdline()[-2:]:
                    return child
        return None

    def is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@pytest.fixture
def start_up(tmp_path):
    started = []

    def start(settings: str = "") -> _Up:
        started.append(_Up(tmp_path, settings))
        return started[-1]

    yield start
    for gateway in started:
        if gateway.process.poll() is None:
            gateway.stop()


def test_up_gives_the_passphrase_to_the_signer_alone_starts_again_after_a_kill_and_restarts_what_is_killed(
    start_up, tmp_path
):
    passphrase = "CAMBIST_KEYS__PASSPHRASE"
    # Whoever signs, signs for chains of all families.
    up = start_up("[signer]\nseparate = true\n[plugins.tron]\nsimulated = true\n")
    up.wait_until_ready()  # account keys are in stock, so the worker has asked the signer for them
    assert "KEYSTORE MADE" in up.log.read_text()
    assert passphrase in up.child("signer").environ()
    assert passphrase not in up.child("web").environ()
    assert passphrase not in up.child("worker").environ()
    assert (up.data_dir / "signer" / "signed.sqlite").stat().st_mode & 0o077 == 0

    below = everything_below(up.process.pid)
    assert up.stop(signal.SIGKILL) == -signal.SIGKILL
    up = start_up()
    up.wait_until_ready()
    assert not still_there(below)
    assert up.child("signer") is None
    assert up.is_healthy()
    worker = up.child("worker")
    assert passphrase in worker.environ()
    assert passphrase not in up.child("web").environ()

    web = up.child("web")
    web.kill()
    deadline = time.monotonic() + 120
    while (served := up.child("web")) is None or served.pid == web.pid or not up.is_healthy():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert up.child("worker").pid == worker.pid

    same = ("up", "--config", "cambist.toml", "--data-dir", "data", "--port", str(up.port))
    second = run_command(*same, cwd=tmp_path)
    assert second.returncode == 1
    assert f"in use by another cambist process (pid {up.process.pid})" in second.stderr

    below = everything_below(up.process.pid)
    assert up.stop() == 0
    assert not still_there(below)
    assert not (up.data_dir / "postgres" / "postmaster.pid").exists()
    for name in ("keystore.json", "keystore.passphrase", "application.key", "jwt.secret"):
        assert (up.data_dir / name).stat().st_mode & 0o077 == 0


def test_up_on_a_port_that_is_taken_says_so_before_it_starts_a_server(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = run_command("up", "--data-dir", "data", "--port", str(port), cwd=tmp_path)
    assert answer.returncode == 1
    assert f"Nothing can listen on 127.0.0.1:{port}: Address already in use." in answer.stderr
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["lock"]


def test_up_with_a_plugin_that_cannot_be_used_says_so_and_ends(cambist):
    answer = cambist("up", settings="[plugins.evm]\nnonsense = 1")
    assert answer.returncode == 1
    assert "plugin 'evm': [plugins.evm] has an unknown field 'nonsense'" in answer.stderr
    assert "Traceback" not in answer.stderr
