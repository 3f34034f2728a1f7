"""What the signer remembers: whose file it is, what a person agreed to, and that it does not grow for ever."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from cambist.registry import Registry
from cambist.settings import Settings, SettingsError, SignerSettings
from cambist.signer import store as store_module
from cambist.signer import store_schema
from cambist.signer.files import write_whole
from cambist.signer.keystore import Kdf, save_keystore
from cambist.signer.protocol import SignerUnavailableError
from cambist.signer.startup import open_local_signer
from cambist.signer.store import FILE, VERSION, Store, StoreError
from tests.support.signing import COIN_TYPE, KEYSTORE, WALLET, open_signer, request, stranger

LIMITS = {"approval_limits": {"memory/USDX": "0.0001"}}
DAY_S = 86_400
QUICK = Kdf(time_cost=1, memory_kib=64, parallelism=1)


@pytest.fixture
async def signer(tmp_path, clock):
    opened = open_signer(tmp_path / "store", clock, **LIMITS)
    yield opened
    await opened.aclose()


@pytest.fixture
def operator(tmp_path, clock):
    """Give what an operator does in another process."""

    class Operator:
        def __init__(self) -> None:
            self.store = Store(tmp_path / "store")

        def book(self):
            return self.store.book(int(clock.now().timestamp()))

        def approve(self, reference: str) -> int:
            with self.book() as book:
                asked = book.asked(reference)
                for one in asked:
                    book.approve(one.pk)
            return len(asked)

    found = Operator()
    yield found
    found.store.close()


async def answer(signer, asked):
    return (await signer.sign([asked]))[0]


async def test_a_large_amount_waits_for_a_person_and_is_then_signed_once(signer, operator):
    asked = request(stranger("a"), 100, reference="payout:po_1")
    refused = await answer(signer, asked)
    assert (refused.refusal, refused.retry_at) == ("APPROVAL_NEEDED", None)
    assert (await answer(signer, asked)).refusal == "APPROVAL_NEEDED"
    with operator.book() as book:
        (waiting,) = book.asked()
    assert (waiting.reference, waiting.text, waiting.to_address) == ("payout:po_1", "0.0001 USDX", stranger("a"))
    assert operator.approve("payout:po_1") == 1
    # Another sequence than when it was asked for: the gateway may have used that for something else.
    assert (await answer(signer, request(stranger("a"), 100, sequence=3, reference="payout:po_1"))).refusal is None
    replaced = request(stranger("a"), 100, sequence=3, reference="payout:po_1", price=2)
    assert (await answer(signer, replaced)).refusal is None
    again = request(stranger("a"), 100, sequence=4, reference="payout:po_1")
    assert (await answer(signer, again)).refusal == "ALREADY_SIGNED"
    assert operator.approve("payout:po_1") == 1
    assert (await answer(signer, again)).refusal is None


async def test_an_approval_is_for_what_the_person_saw(signer, operator):
    await answer(signer, request(stranger("a"), 100, reference="r"))
    operator.approve("r")
    for other in (
        request(stranger("b"), 100, reference="r"),
        request(stranger("a"), 101, reference="r"),
        request(stranger("a"), 100, reference="r", tag="7"),
        request(stranger("a"), 100, reference="s"),
        request(stranger("a"), 100, reference="r", symbol="USDX", chain="memory", path=WALLET, sequence=1),
    ):
        reply = await answer(signer, other)
        if other.payload == request(stranger("a"), 100, sequence=1).payload:
            assert reply.refusal is None
        else:
            assert reply.refusal == "APPROVAL_NEEDED"
    assert (await answer(signer, request(stranger("a"), 99, reference="t", sequence=7))).refusal is None


async def test_an_approval_that_nobody_used_in_a_week_is_none(signer, operator, clock):
    asked = request(stranger("a"), 100)
    await answer(signer, asked)
    operator.approve("payout:po_1")
    clock.advance(7 * DAY_S)
    assert (await answer(signer, asked)).refusal == "APPROVAL_NEEDED"


async def test_what_is_signed_is_on_disk_and_nothing_in_the_file_is_secret(signer, tmp_path):
    await answer(signer, request(stranger("a"), 99))
    reader = sqlite3.connect(tmp_path / "store" / FILE)
    assert reader.execute("SELECT count(*) FROM slots").fetchone() == (1,)
    reader.close()
    key = KEYSTORE.private_key("live", COIN_TYPE, WALLET.account, WALLET.change, WALLET.index)
    for file in (tmp_path / "store").iterdir():
        assert file.stat().st_mode & 0o077 == 0
        content = file.read_bytes()
        assert key.secret not in content
        assert key.to_hex().encode() not in content
        assert b"abandon" not in content
        assert b"xpub" not in content


async def test_old_slots_and_minutes_are_dropped_and_few_addresses_kept(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(store_module, "KNOWN_MAX", 20)
    monkeypatch.setattr(store_module, "KNOWN_DROPPED", 5)
    signer = open_signer(tmp_path / "few", clock, fresh_address_delay_s=DAY_S)
    for day in range(12):
        await signer.sign([request(stranger(f"{day}/{at}"), 1, sequence=day * 10 + at) for at in range(10)])
        clock.advance(DAY_S)
    await signer.aclose()
    reader = sqlite3.connect(tmp_path / "few" / FILE)
    (slots,) = reader.execute("SELECT count(*) FROM slots").fetchone()
    (minutes,) = reader.execute("SELECT count(*) FROM spent").fetchone()
    (addresses,) = reader.execute("SELECT count(*) FROM known_addresses").fetchone()
    reader.close()
    assert 70 <= slots <= 80
    assert minutes <= 3
    assert addresses <= 20


async def test_nothing_is_signed_when_it_cannot_be_remembered(signer, tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "LOCK_TIMEOUT_S", 0)
    impatient = Store(tmp_path / "store")
    signer._store.close()
    signer._store = impatient
    other = sqlite3.connect(tmp_path / "store" / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(SignerUnavailableError, match="locked"):
        await signer.sign([request(stranger("a"), 1)])
    other.execute("ROLLBACK")
    other.close()
    assert (await answer(signer, request(stranger("a"), 1))).refusal is None


def test_a_store_that_others_could_change_is_refused(tmp_path):
    Store(tmp_path / "store").close()
    (tmp_path / "store").chmod(0o755)
    with pytest.raises(StoreError, match="chmod 700"):
        Store(tmp_path / "store")
    (tmp_path / "store").chmod(0o700)
    (tmp_path / "store" / FILE).chmod(0o644)
    with pytest.raises(StoreError, match="chmod 600"):
        Store(tmp_path / "store")


@pytest.mark.parametrize("content", [b"no database" * 500, b"SQLite format 3\0" + os.urandom(5_000)])
def test_a_file_that_is_no_store_is_refused_and_not_replaced(tmp_path, content):
    (tmp_path / "store").mkdir(mode=0o700)
    file = tmp_path / "store" / FILE
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(StoreError, match="cannot be used"):
        Store(tmp_path / "store")
    assert file.read_bytes() == content


async def test_a_store_that_was_cut_off_to_nothing_is_refused_and_signs_nothing_twice(tmp_path, clock):
    """SQLite takes a file without content for a new one: all that was signed would be signed once more."""
    with capture_logs() as logs:
        Store(tmp_path / "store").close()
    assert [entry["event"] for entry in logs] == ["signer_store_made"]
    file = tmp_path / "store" / FILE
    file.write_bytes(b"")
    with pytest.raises(StoreError, match="is empty: what was signed is lost"):
        Store(tmp_path / "store")
    with pytest.raises(StoreError, match="is empty"):
        store_schema.check(file)
    with pytest.raises(SettingsError, match="look at the chain for all that waits"):
        async with open_local_signer(Settings(signer=SignerSettings(store=file.parent)), Registry({}), clock, KEYSTORE):
            pass
    assert [one.name for one in file.parent.iterdir()] == [FILE]


def test_signers_that_begin_at_once_have_one_store(tmp_path, monkeypatch):
    def slower(file, content):
        write_whole(file, content)  # the other one's
        write_whole(file, content)

    monkeypatch.setattr(store_schema, "write_whole", slower)
    file = tmp_path / FILE
    store_schema.make(file)
    assert [one.name for one in tmp_path.iterdir()] == [FILE]
    store_schema.check(file)


def test_a_store_of_a_later_version_is_refused(tmp_path):
    Store(tmp_path / "store").close()
    later = sqlite3.connect(tmp_path / "store" / FILE)
    later.execute(f"PRAGMA user_version = {VERSION + 1}")
    later.close()
    with pytest.raises(StoreError, match=f"of version {VERSION + 1}"):
        Store(tmp_path / "store")


async def test_a_store_that_is_locked_for_long_is_no_wrong_setting(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(store_module, "LOCK_TIMEOUT_S", 0.1)
    settings = Settings(signer=SignerSettings(store=tmp_path / "store"))
    Store(tmp_path / "store").close()
    other = sqlite3.connect(tmp_path / "store" / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(SignerUnavailableError, match="database is locked"):
        async with open_local_signer(settings, Registry({}), clock, KEYSTORE):
            pass
    other.close()
    async with open_local_signer(settings, Registry({}), clock, KEYSTORE):
        pass
    (tmp_path / "store" / FILE).chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        async with open_local_signer(settings, Registry({}), clock, KEYSTORE):
            pass


@pytest.mark.slow
def test_a_signer_whose_disk_takes_nothing_more_may_be_started_again(tmp_path):
    save_keystore(tmp_path / "keystore.json", KEYSTORE, "correct horse battery", os.urandom, QUICK)
    (tmp_path / "passphrase").write_text("correct horse battery")
    (tmp_path / "cambist.toml").write_text(
        '[keys]\nkeystore = "keystore.json"\npassphrase = { file = "passphrase" }\n[signer]\nsocket = "signer.sock"\n'
        'store = "store"\n'
    )
    (tmp_path / "passphrase").chmod(0o600)
    ended = subprocess.run(
        [sys.executable, "-m", "cambist.cli", "signer", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )
    assert (ended.returncode, "Traceback" in ended.stderr) == (1, False), ended.stderr
    assert "The signer's store" in ended.stderr


async def test_a_clock_that_was_far_ahead_is_taken_back_and_nothing_signed_is_forgotten(tmp_path, clock):
    rules = {
        "hourly_caps": {"memory/USDX": "0.0001"},
        "fresh_address_delay_s": DAY_S,
        "fresh_address_caps": {"memory/USDX": "0"},
    }
    known, learned = stranger("a"), stranger("b")
    signer, store = open_signer(tmp_path / "store", clock, **rules), Store(tmp_path / "store")
    began = clock.now()
    assert (await answer(signer, request(known, 60, reference="p:1"))).refusal == "TARGET_TOO_FRESH"
    clock.advance(75 * 365 * DAY_S)
    assert (await answer(signer, request(known, 60, reference="p:1"))).refusal is None
    assert (await answer(signer, request(learned, 1, reference="p:2", sequence=1))).refusal == "TARGET_TOO_FRESH"
    clock.set(began + timedelta(days=2))
    present = int(clock.now().timestamp())
    capped = await answer(signer, request(known, 60, reference="p:3", sequence=2))
    assert (capped.refusal, capped.retry_at > clock.now() + timedelta(days=74 * 365)) == ("HOURLY_CAP", True)

    store.take_back(present)
    assert store.latest() == present
    capped = await answer(signer, request(known, 60, reference="p:3", sequence=2))
    assert (capped.refusal, (capped.retry_at - clock.now()).total_seconds() <= 3_660) == ("HOURLY_CAP", True)
    clock.advance(3_700)
    assert (await answer(signer, request(known, 60, reference="p:3", sequence=2))).refusal is None
    # It is not signed a second time, and what was learned ahead is fresh.
    assert (await answer(signer, request(known, 60, reference="p:1", sequence=9))).refusal == "ALREADY_SIGNED"
    fresh = await answer(signer, request(learned, 1, reference="p:2", sequence=1))
    assert (fresh.refusal, round((fresh.retry_at - clock.now()).total_seconds())) == ("TARGET_TOO_FRESH", DAY_S)
    store.close()
    await signer.aclose()
