"""``cambist reconcile``, ``manifest`` and ``restore``, as an operator types them."""

from __future__ import annotations

import json

import pytest

from tests.support.command import run_command

NODE = """
[plugins.evm.chains.ethereum]
rpc_urls = ["http://127.0.0.1:1"]
"""


@pytest.fixture
def cambist(tmp_path, database_url, redis_url):
    base = f'[database]\nurl = "{database_url}"\n[redis]\nurl = "{redis_url}"\n'

    def run(*arguments, settings=NODE, stdin=""):
        (tmp_path / "cambist.toml").write_text(base + settings)
        return run_command(*arguments, cwd=tmp_path, stdin=stdin)

    return run


@pytest.fixture
def keystore(cambist, tmp_path):
    (tmp_path / "passphrase").write_text("correct horse battery\n")
    words = " ".join(["abandon"] * 11 + ["about"])
    made = cambist("keys", "init", "k.json", "--import", "--passphrase-file", "passphrase", stdin=words + "\n")
    assert made.returncode == 0, made.stderr
    return NODE + '[keys]\nkeystore = "k.json"\npassphrase = { file = "passphrase" }\n'


def test_books_that_cannot_be_compared_are_no_difference(cambist):
    answer = cambist("reconcile")
    assert answer.returncode == 2
    assert "ethereum: the worker has not read this chain yet" in answer.stderr
    answer = cambist("reconcile", "--json")
    assert (answer.returncode, json.loads(answer.stdout)["agrees"]) == (2, False)


def test_a_gateway_without_live_chains_has_no_differences(cambist):
    answer = cambist("reconcile", "--json", settings="")
    assert (answer.returncode, json.loads(answer.stdout)) == (0, {"agrees": True, "chains": [], "problems": []})


def test_a_chain_that_is_not_there_is_refused(cambist):
    answer = cambist("reconcile", "--chain", "moon")
    assert answer.returncode == 78
    assert "There is no live chain 'moon'; there are: ethereum." in answer.stderr


def test_the_manifest_of_a_new_gateway_is_empty(cambist, tmp_path):
    answer = cambist("manifest", "recovery.json")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == (
        "0 merchants and 0 chains are in recovery.json.\n"
        "0 accounts are in recovery.json.accounts: a restore needs both.\n"
    )
    assert (tmp_path / "recovery.json.accounts").read_text() == ""
    found = json.loads((tmp_path / "recovery.json").read_text())
    coin_types = [family["coinType"] for family in found["families"]]
    assert (found["version"], found["merchants"], coin_types) == (1, [], [195, 60])
    assert cambist("manifest", "nowhere/recovery.json").returncode == 1


def test_accounts_that_the_database_does_not_have_are_kept_beside_the_new_manifest(cambist, tmp_path):
    accounts = tmp_path / "recovery.json.accounts"
    assert cambist("manifest", "recovery.json").returncode == 0
    lost = {
        "type": "account", "accountId": "acc_1", "publicId": "pub_1", "externalId": "carol", "projectId": "prj_1",
        "isActive": True, "chains": ["ethereum"], "indexes": {"evm": 1},
    }  # fmt: skip
    accounts.write_text(json.dumps(lost))
    answer = cambist("manifest", "recovery.json")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "What was there knew of more than the database does, and is recovery-" in answer.stdout
    assert accounts.read_text() == ""
    (kept,) = tmp_path.glob("recovery-*.accounts")
    assert json.loads(kept.read_text()) == lost


def test_a_restore_says_what_it_needs(cambist, keystore):
    answer = cambist("restore", settings=keystore)
    assert answer.returncode == 2
    assert "--accounts, --indexes, and a --first-height" in answer.stderr
    answer = cambist("restore", "--accounts", "1", "--indexes", "1", "--first-height", "ethereum=x", settings=keystore)
    assert answer.returncode == 2
    assert "'ethereum=x' is not CHAIN=N" in answer.stderr
    answer = cambist("restore", "--accounts", "1", "--indexes", "1", "--first-height", "ethereum=1")
    assert answer.returncode == 78
    assert "keys.keystore must be set" in answer.stderr


def test_a_restore_that_finds_nothing_ends_well(cambist, keystore, tmp_path):
    (tmp_path / "recovery.json").write_text(
        '{"merchants": [{"merchantId": "mer_1", "email": "a@b.c", "name": "A", "account": 2,'
        ' "indexes": {"live/60": 3}}], "chains": []}'
    )
    answer = cambist("restore", "recovery.json", "--gap", "4", settings=keystore)
    assert answer.returncode == 0, answer.stderr
    assert "There is no recovery.json.accounts: addresses of accounts come back" in answer.stdout
    assert "Restored: 1 merchants, 24 addresses, 0 accounts, 0 deposits." in answer.stdout
    assert "Not read, because nothing says from where on: ethereum." in answer.stdout
    again = cambist("manifest", "again.json")
    assert again.returncode == 0
    (merchant,) = json.loads((tmp_path / "again.json").read_text())["merchants"]
    indexes = {"live/60": 7, "sandbox/60": 4, "live/195": 4, "sandbox/195": 4}
    assert (merchant["account"], merchant["indexes"]) == (2, indexes)


def test_a_backup_is_told_what_was_handed_out_since(cambist, keystore, tmp_path):
    manifest = tmp_path / "recovery.json"
    known = {"merchantId": "mer_1", "email": "a@b.c", "name": "A", "account": 1, "indexes": {"live/60": 3}}
    manifest.write_text(json.dumps({"merchants": [known], "chains": []}))
    alone = cambist("restore", "--backup", settings=keystore)
    assert (alone.returncode, "--backup takes a MANIFEST" in alone.stderr) == (2, True)
    empty = cambist("restore", "--backup", "recovery.json", settings=keystore)
    assert (empty.returncode, "The database has no merchants, so it is no backup" in empty.stderr) == (1, True)
    assert cambist("restore", "recovery.json", "--gap", "0", settings=keystore).returncode == 0
    newer = known | {"merchantId": "mer_2", "email": "b@b.c", "account": 2, "indexes": {"live/60": 5}}
    manifest.write_text(json.dumps({"merchants": [known | {"indexes": {"live/60": 10}}, newer], "chains": []}))
    answer = cambist("restore", "--backup", "recovery.json", "--gap", "0", settings=keystore)
    assert answer.returncode == 0, answer.stderr
    assert "Added: 1 merchants and 24 addresses that the backup does not know." in answer.stdout
    assert cambist("manifest", "again.json").returncode == 0
    found = json.loads((tmp_path / "again.json").read_text())["merchants"]
    assert [(one["merchantId"], one["account"], one["indexes"]["live/60"]) for one in found] == [
        ("mer_1", 1, 10),
        ("mer_2", 2, 5),
    ]
