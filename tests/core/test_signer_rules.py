"""The operator's ``[signer]``: what it means, and that a mistake in it is never no rule."""

from __future__ import annotations

import pytest

from cambist.settings import Settings, SettingsError, SignerSettings
from cambist.settings_file import load_settings, problems
from cambist.signer.rules import asset_name, load_rules, unlimited
from tests.support.signing import registry, stranger

CHAINS = registry().chains
USDX = asset_name("memory", CHAINS["memory"].token("USDX").contract)


def rules(environment: str = "development", **signer):
    known = registry()
    settings = Settings(environment=environment, signer=SignerSettings(**signer))
    return load_rules(settings, known.chains, known.families)


def test_amounts_are_in_tokens_and_become_smallest_units():
    found = rules(
        hourly_caps={"memory/USDX": "50000.5", "memory/MEM": "1"},
        fee_caps={"memory": "0.05"},
        allowed_addresses={"memory": (stranger("a").upper(),)},
    )
    assert found.hourly_caps == {USDX: 50_000_500_000, "memory/native": 10**18}
    assert found.fee_caps == {"memory": 5 * 10**16}
    assert found.allowed_addresses == {"memory": frozenset({stranger("a")})}


@pytest.mark.parametrize(
    "table, sentence",
    [
        ({"hourly_caps": {"memori/USDX": "1"}}, "signer.hourly_caps: there is no chain 'memori'"),
        ({"hourly_caps": {"memory/USDC": "1"}}, "'memory/USDC' names no token"),
        ({"hourly_caps": {"memory": "1"}}, "'memory' names no token"),
        ({"approval_limits": {"memory/USDX": "0.0000001"}}, "more than 6 decimals"),
        ({"fee_caps": {"memory/MEM": "1"}}, "there is no chain 'memory/MEM'"),
        ({"allowed_addresses": {"memory": ("nobody",)}}, "signer.allowed_addresses.memory: "),
        ({"delegates": {"nowhere": ()}}, "there is no chain 'nowhere'"),
    ],
)
def test_a_rule_that_names_nothing_stops_the_start(table, sentence):
    with pytest.raises(SettingsError, match=sentence):
        rules(**table)


@pytest.mark.parametrize("amount", ['"-1"', '"1e5"', '"1_0"', '"NaN"', "1.5", "5", '""', '"٣"'])
def test_amounts_are_texts_of_plain_digits(tmp_path, amount):
    file = tmp_path / "cambist.toml"
    file.write_text(f'[signer]\nhourly_caps = {{ "memory/USDX" = {amount} }}')
    with pytest.raises(SettingsError, match="hourly_caps"):
        load_settings(file, {})


def test_addresses_are_fresh_for_a_day_in_production_unless_the_operator_says_otherwise():
    assert rules("production").fresh_address_delay_s == 86_400
    assert rules("production", fresh_address_delay_s=60).fresh_address_delay_s == 60
    assert rules().fresh_address_delay_s == 0


def test_what_has_no_limit_is_named():
    sentences = unlimited(rules("production", hourly_caps={"memory/USDX": "1", "memory/MEM": "1"}), CHAINS)
    assert [sentence.split()[0] for sentence in sentences] == [
        "signer.hourly_caps", "signer.fresh_address_caps", "signer.fee_caps", "signer.fee_hourly_caps",
    ]  # fmt: skip
    assert "memory/USDX" not in sentences[0]
    assert "other/USDX" in sentences[0]
    assert all("toy" not in sentence and "later" not in sentence for sentence in sentences)


FILE = """
environment = "production"
[database]
url = { env = "GONE" }
[keys]
keystore = "k.json"
passphrase = { env = "PASSPHRASE" }
application_key = { env = "GONE" }
[auth]
jwt_secret = { env = "GONE" }
[signer]
socket = "run/signer.sock"
"""


def test_the_signer_reads_no_other_secret(tmp_path):
    file = tmp_path / "cambist.toml"
    file.write_text(FILE)
    environ = {"PASSPHRASE": "correct horse battery", "CAMBIST_REDIS__URL": '{ env = "GONE" }'}
    settings = load_settings(file, environ, passphrase=True, signer_only=True)
    assert settings.keys.passphrase == "correct horse battery"
    assert (settings.keys.application_key, settings.database.url) == (None, None)
    assert settings.signer_socket == tmp_path / "run" / "signer.sock"
    with pytest.raises(SettingsError, match="GONE, which is not set"):
        load_settings(file, environ, passphrase=True)
    file.write_text(FILE.replace("[signer]", "[signre]"))
    with pytest.raises(SettingsError, match="no table 'signre'"):
        load_settings(file, environ, signer_only=True)


def test_the_signer_must_have_a_keystore_and_who_asks_it_need_not(tmp_path):
    file = tmp_path / "cambist.toml"
    file.write_text(FILE.replace('keystore = "k.json"', ""))
    with pytest.raises(SettingsError, match=r"keys\.keystore must be set"):
        load_settings(file, {}, signer_only=True)
    remote = Settings(environment="production", signer=SignerSettings(separate=True))
    assert not [sentence for sentence in problems(remote) if "keystore" in sentence]
    assert [sentence for sentence in problems(Settings(environment="production")) if "keystore" in sentence]
