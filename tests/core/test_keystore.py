"""The keystore: known answers, and what it refuses."""

from __future__ import annotations

import hmac
import os

import msgspec
import pytest
from bip_utils import Bip32Slip10Secp256k1, Bip39SeedGenerator
from coincurve import PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from cambist.signer.bip32 import master_node
from cambist.signer.keystore import (
    Kdf,
    Keystore,
    KeystoreError,
    change_passphrase,
    new_keystore,
    open_keystore,
    save_keystore,
)

MNEMONIC = " ".join(["abandon"] * 11 + ["about"])
PASSPHRASE = "correct horse battery"
QUICK = Kdf(time_cost=1, memory_kib=64, parallelism=1)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "keystore.json"
    save_keystore(path, Keystore(MNEMONIC), PASSPHRASE, os.urandom, QUICK)
    return path


def test_the_first_vector_of_bip_32_is_met():
    node = master_node(bytes.fromhex("000102030405060708090a0b0c0d0e0f"))
    assert node.xpub() == (
        "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8"
    )
    assert node.hardened(0).xpub() == (
        "xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9xv5ski8PX9rL2dZXvgGDnw"
    )


def test_the_vector_of_bip_32_with_leading_zeros_is_met():
    node = master_node(bytes.fromhex("3ddd5602285899a946114506157c7997e5444528f3003f6134712147db19b678"))
    assert node.hardened(0).xpub() == (
        "xpub69AUMk3qDBi3uW1sXgjCmVjJ2G6WQoYSnNHyzkmdCHEhSZ4tBok37xfFEqHd2AddP56Tqp4o56AePAgCjYdvpW2PU2jbUPFKsav5ut6Ch1m"
    )


@settings(max_examples=30, deadline=None)
@given(
    seed=st.binary(min_size=64, max_size=64),
    coin_type=st.sampled_from([0, 60, 195, 2**31 - 1]),
    account=st.integers(0, 2**31 - 1),
)
def test_account_keys_are_those_of_another_wallet(seed, coin_type, account):
    theirs = Bip32Slip10Secp256k1.FromSeed(seed).DerivePath(f"m/44'/{coin_type}'/{account}'")
    ours = master_node(seed).hardened(44).hardened(coin_type).hardened(account)
    assert ours.xpub() == theirs.PublicKey().ToExtended()


@settings(max_examples=30, deadline=None)
@given(
    seed=st.binary(min_size=64, max_size=64),
    account=st.integers(0, 2**31 - 1),
    change=st.integers(0, 1),
    index=st.integers(0, 2**31 - 1),
)
def test_keys_that_sign_are_those_of_another_wallet(seed, account, change, index):
    theirs = Bip32Slip10Secp256k1.FromSeed(seed).DerivePath(f"m/44'/60'/{account}'/{change}/{index}")
    ours = master_node(seed).hardened(44).hardened(60).hardened(account).normal(change).normal(index)
    assert ours.key == theirs.PrivateKey().Raw().ToBytes()
    assert ours.xpub() == theirs.PublicKey().ToExtended()


@pytest.mark.parametrize("mode, passphrase", [("live", ""), ("sandbox", "cambist sandbox")])
@pytest.mark.parametrize("account, change, index", [(0, 0, 0), (1, 1, 0), (2**31 - 1, 1, 2**31 - 1)])
def test_a_mnemonic_leads_to_the_keys_that_another_wallet_shows(mode, passphrase, account, change, index):
    seed = Bip39SeedGenerator(MNEMONIC).Generate(passphrase)
    theirs = Bip32Slip10Secp256k1.FromSeed(seed).DerivePath(f"m/44'/195'/{account}'/{change}/{index}")
    ours = Keystore(MNEMONIC).private_key(mode, 195, account, change, index)
    assert ours.secret == theirs.PrivateKey().Raw().ToBytes()


@pytest.mark.parametrize("path", [(-1, 0, 0), (2**31, 0, 0), (0, -1, 0), (0, 0, -1), (0, 0, 2**31)])
def test_a_path_out_of_bounds_has_no_key(path):
    with pytest.raises(ValueError, match="an index is from 0"):
        Keystore(MNEMONIC).private_key("live", 60, *path)


def test_one_private_key_and_the_accounts_public_key_give_the_accounts_private_key():
    """Why no private key ever leaves: this is the sum that whoever has both would do."""
    keystore = Keystore(MNEMONIC)
    account = keystore._coin_node("live", 60).hardened(1)
    branch = account.normal(0)
    leaked, order = branch.normal(5).key, 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    # From the extended public key alone: point and chain code of the branch.
    point = PublicKey.from_secret(branch.key).format()
    tweak = hmac.digest(branch.chain_code, point + (5).to_bytes(4, "big"), "sha512")[:32]
    found = (int.from_bytes(leaked, "big") - int.from_bytes(tweak, "big")) % order
    assert found.to_bytes(32, "big") == branch.key


@pytest.mark.parametrize("mode, passphrase", [("live", ""), ("sandbox", "cambist sandbox")])
def test_a_mnemonic_leads_to_the_accounts_that_another_wallet_shows(mode, passphrase):
    seed = Bip39SeedGenerator(MNEMONIC).Generate(passphrase)
    theirs = Bip32Slip10Secp256k1.FromSeed(seed).DerivePath("m/44'/60'/7'").PublicKey().ToExtended()
    assert Keystore(MNEMONIC).account_xpub(mode, 60, 7) == theirs


def test_live_and_sandbox_have_different_keys():
    keystore = Keystore(MNEMONIC)
    assert keystore.account_xpub("live", 60, 1) != keystore.account_xpub("sandbox", 60, 1)


def test_a_new_keystore_has_twenty_four_words_and_no_two_are_alike():
    first, second = new_keystore(os.urandom), new_keystore(os.urandom)
    assert len(first.mnemonic.split()) == 24
    assert first.mnemonic != second.mnemonic


def test_what_was_saved_is_opened_with_the_passphrase(saved):
    assert open_keystore(saved, PASSPHRASE).mnemonic == MNEMONIC
    assert saved.stat().st_mode & 0o777 == 0o600
    assert "abandon" not in saved.read_text()
    assert [path.name for path in saved.parent.iterdir()] == ["keystore.json"]


def test_another_passphrase_does_not_open_it(saved):
    with pytest.raises(KeystoreError, match="passphrase does not open"):
        open_keystore(saved, PASSPHRASE + "!")


@pytest.mark.parametrize(
    "change", [{"salt": os.urandom(16)}, {"nonce": os.urandom(12)}, {"ciphertext": os.urandom(90)}]
)
def test_a_changed_file_is_not_opened(saved, change):
    content = msgspec.json.decode(saved.read_bytes())
    saved.write_bytes(msgspec.json.encode(content | change))
    with pytest.raises(KeystoreError, match="does not open"):
        open_keystore(saved, PASSPHRASE)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"\xff", b'{"version": 2}'], ids=["empty", "object", "list", "binary", "future"]
)
def test_a_file_that_is_no_keystore_is_refused_with_a_sentence(saved, content):
    saved.write_bytes(content)
    with pytest.raises(KeystoreError, match="is not a keystore of this version"):
        open_keystore(saved, PASSPHRASE)


def test_a_file_that_asks_for_absurd_amounts_of_memory_is_refused(saved):
    content = msgspec.json.decode(saved.read_bytes())
    content["kdf"]["memory_kib"] = 2**40
    saved.write_bytes(msgspec.json.encode(content))
    with pytest.raises(KeystoreError, match="memory_kib"):
        open_keystore(saved, PASSPHRASE)


def test_a_file_that_others_can_read_is_refused(saved):
    saved.chmod(0o640)
    with pytest.raises(KeystoreError, match="chmod 600"):
        open_keystore(saved, PASSPHRASE)


def test_a_new_file_takes_a_noticeable_part_of_a_second_to_open(tmp_path):
    made, changed = tmp_path / "made.json", tmp_path / "changed.json"
    save_keystore(made, Keystore(MNEMONIC), PASSPHRASE, os.urandom)
    save_keystore(changed, Keystore(MNEMONIC), PASSPHRASE, os.urandom, QUICK)
    change_passphrase(changed, PASSPHRASE, "another horse battery", os.urandom)
    expected = {"name": "argon2id", "time_cost": 3, "memory_kib": 2**16, "parallelism": 4}
    assert [msgspec.json.decode(path.read_bytes())["kdf"] for path in (made, changed)] == [expected] * 2


def test_a_file_is_never_replaced(saved):
    before = saved.read_bytes()
    with pytest.raises(KeystoreError, match="not replaced"):
        save_keystore(saved, new_keystore(os.urandom), PASSPHRASE, os.urandom, QUICK)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["keystore.json"]


def test_another_passphrase_takes_the_place_of_the_old_one_and_no_copy_is_left(saved):
    change_passphrase(saved, PASSPHRASE, "another passphrase", os.urandom, QUICK)
    assert open_keystore(saved, "another passphrase").mnemonic == MNEMONIC
    assert saved.stat().st_mode & 0o777 == 0o600
    with pytest.raises(KeystoreError, match="does not open"):
        open_keystore(saved, PASSPHRASE)
    assert [path.name for path in saved.parent.iterdir()] == ["keystore.json"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what somebody else owns")
def test_a_keystore_stays_its_owners_when_root_changes_the_passphrase(saved):
    os.chown(saved, 12_345, 23_456)
    change_passphrase(saved, PASSPHRASE, "another passphrase", os.urandom, QUICK)
    there = saved.stat()
    assert (there.st_uid, there.st_gid, there.st_mode & 0o777) == (12_345, 23_456, 0o600)


@pytest.mark.parametrize(
    "old, new, sentence",
    [("wrong passphrase", "another passphrase", "does not open"), (PASSPHRASE, "short", "at least")],
)
def test_a_passphrase_that_cannot_be_changed_changes_nothing(saved, old, new, sentence):
    before = saved.read_bytes()
    with pytest.raises(KeystoreError, match=sentence):
        change_passphrase(saved, old, new, os.urandom, QUICK)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["keystore.json"]


def test_a_keystore_behind_a_link_is_changed_where_it_lies(saved, tmp_path):
    link = tmp_path / "elsewhere" / "link.json"
    link.parent.mkdir()
    link.symlink_to(saved)
    change_passphrase(link, PASSPHRASE, "another passphrase", os.urandom, QUICK)
    assert link.is_symlink()
    assert open_keystore(saved, "another passphrase").mnemonic == MNEMONIC


def test_a_short_passphrase_is_refused(tmp_path):
    with pytest.raises(KeystoreError, match="at least 12"):
        save_keystore(tmp_path / "k.json", Keystore(MNEMONIC), "short", os.urandom, QUICK)


@pytest.mark.parametrize("words", ["", "abandon", MNEMONIC.replace("about", "abandon"), MNEMONIC + " zzz"])
def test_a_mnemonic_with_a_mistake_is_refused(words):
    with pytest.raises(KeystoreError, match="mnemonic is not valid"):
        Keystore(words)


def test_a_mnemonic_may_be_typed_with_capitals_and_line_breaks():
    assert Keystore("  " + MNEMONIC.upper().replace(" ", "\n ")).mnemonic == MNEMONIC


def test_nothing_secret_shows_in_representations():
    keystore = Keystore(MNEMONIC)
    assert "abandon" not in repr(keystore)
    assert master_node(b"\x01" * 32).key.hex() not in repr(master_node(b"\x01" * 32))


def test_what_a_killed_process_of_the_same_number_left_is_not_in_the_way(tmp_path):
    """In a container each start has the same number."""
    for name in ("keystore.json", "other.json"):
        for left in (f"{name}.{os.getpid()}.partial", f"{name}.{os.getpid()}.new"):
            (tmp_path / left).touch()
    path = tmp_path / "keystore.json"
    save_keystore(path, Keystore(MNEMONIC), PASSPHRASE, os.urandom, QUICK)
    change_passphrase(path, PASSPHRASE, "another long passphrase", os.urandom, QUICK)
    assert open_keystore(path, "another long passphrase").mnemonic == MNEMONIC


def test_a_passphrase_in_another_encoding_is_told(saved):
    with pytest.raises(KeystoreError, match="The passphrase is not UTF-8 text"):
        open_keystore(saved, b"correct h\xf6rse battery".decode("utf-8", "surrogateescape"))
