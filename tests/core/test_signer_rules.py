"""The operator's ``[signer]``: what it means, and that a mistake in it is never no rule."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cambist import diagnosis
from cambist.ports import SystemClock
from cambist.settings import KeySettings, Settings, SettingsError, SignerSettings
from cambist.settings_file import load_settings, problems
from cambist.signer.rules import asset_name, load_rules, said_unlimited, unlimited
from cambist.signer.startup import open_local_signer
from tests.support.signing import KEYSTORE, registry, stranger

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


TOKENS = "memory/MEM, memory/USDX, memory/DAIX, other/MEM, other/USDX, other/DAIX"
ENOUGH = {
    "hourly_caps": "unlimited",
    "fee_caps": {"memory": "1", "other": "unlimited"},
    "fee_hourly_caps": {"memory": "1", "other": "1"},
}


@pytest.mark.parametrize(
    "table, sentence",
    [
        (
            {"hourly_caps": {"memory/USDX": "1"}},
            r"signer\.hourly_caps has no entry for memory/MEM, memory/DAIX, other/MEM",
        ),
        ({"fee_caps": {"memory": "1"}}, r"signer\.fee_caps has no entry for other"),
        ({"fee_hourly_caps": {"other": "unlimited"}}, r"signer\.fee_hourly_caps has no entry for memory"),
    ],
)
async def test_production_does_not_start_a_signer_that_could_be_emptied_unless_that_is_said(tmp_path, table, sentence):
    async def start(environment: str, signer) -> None:
        signer = msgspec.convert({"store": str(tmp_path / "store"), **signer}, SignerSettings, dec_hook=_path)
        settings = Settings(environment=environment, signer=signer)
        async with open_local_signer(settings, registry(), SystemClock(), KEYSTORE):
            pass

    with pytest.raises(SettingsError, match=sentence + ".*in production each needs an amount, or 'unlimited'"):
        await start("production", {**ENOUGH, **table})
    await start("production", ENOUGH)
    await start("development", table)


def _path(_kind, value):
    return Path(value)


def test_what_is_unlimited_on_purpose_lacks_nothing_and_is_told():
    found = rules("production", **ENOUGH, fresh_address_caps="unlimited")
    assert unlimited(found, CHAINS) == []
    assert said_unlimited(found, CHAINS) == [
        f"signer.hourly_caps is unlimited for {TOKENS}",
        f"signer.fresh_address_caps is unlimited for {TOKENS}",
        "signer.fee_caps is unlimited for other",
    ]


async def test_doctor_names_what_lacks_and_what_is_unlimited_on_purpose(monkeypatch):
    signer = SignerSettings(**{**ENOUGH, "fee_caps": {"memory": "1"}})
    settings = Settings(environment="production", signer=signer, keys=KeySettings(keystore=Path("k.json")))
    found = diagnosis._rules(settings, registry())
    assert [(one.problem, one.text.split(" for ")[0]) for one in found] == [
        (True, "signer.fresh_address_caps has no entry"),
        (True, "signer.fee_caps has no entry"),
        (False, "signer.hourly_caps is unlimited"),
    ]


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
hourly_caps = "unlimited"
fee_caps = { ethereum = "0.05" }
fee_hourly_caps = { ethereum = "1" }
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
    file.write_text(FILE.replace('fee_hourly_caps = { ethereum = "1" }', ""))
    with pytest.raises(SettingsError, match=r"signer\.fee_hourly_caps must be set"):
        load_settings(file, {}, signer_only=True)
    file.write_text(FILE.replace('keystore = "k.json"', ""))
    with pytest.raises(SettingsError, match=r"keys\.keystore must be set"):
        load_settings(file, {}, signer_only=True)
    remote = Settings(environment="production", signer=SignerSettings(separate=True))
    assert not [sentence for sentence in problems(remote) if "keystore" in sentence]
    assert [sentence for sentence in problems(Settings(environment="production")) if "keystore" in sentence]
