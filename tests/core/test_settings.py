"""The operator's file and variables: what they mean, and how each mistake is told."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
import structlog

from cambist.logs import REDACTED, configure_logs, redact_text
from cambist.ports import Ids
from cambist.provision import provision
from cambist.services.identity.operators import base_url
from cambist.settings import Group, Settings, SettingsError
from cambist.settings_file import load_settings, secret_variables
from cambist.signer.keystore import Kdf, open_keystore

PRODUCTION = """
environment = "production"
[database]
url = "postgresql://cambist@db/cambist?sslmode=verify-full"
[redis]
url = "rediss://cache/0"
[web]
public_url = "https://pay.example"
[keys]
keystore = "keystore.json"
passphrase = { env = "PASSPHRASE" }
application_key = { file = "app.key" }
[auth]
jwt_secret = { env = "JWT" }
[signer]
hourly_caps = { "ethereum/USDT" = "50000" }
fee_caps = { ethereum = "0.05" }
fee_hourly_caps = "unlimited"
"""


@pytest.fixture
def load(tmp_path):
    def load(text: str = "", environ=None, **options) -> Settings:
        config = tmp_path / "cambist.toml"
        config.write_text(text)
        return load_settings(config, environ or {}, **options)

    return load


@pytest.fixture
def production(tmp_path, load):
    (tmp_path / "app.key").write_text("ab" * 32 + "\n")

    def change(old: str = "", new: str = "", **options) -> Settings:
        assert old in PRODUCTION
        environ = {"PASSPHRASE": "correct horse battery", "JWT": "j" * 40}
        return load(PRODUCTION.replace(old, new, 1), environ, **options)

    return change


def test_an_empty_file_is_a_development_gateway(load, tmp_path):
    settings = load()
    assert settings.environment == "development"
    assert settings.data_dir == tmp_path / ".cambist"
    assert (settings.webhooks.retries, settings.webhooks.timeout_ms, settings.webhooks.base_delay_ms) == (
        5,
        10_000,
        1000,
    )
    assert settings.web.base_url == "http://127.0.0.1:8080"


def test_without_any_file_there_are_only_variables():
    settings = load_settings(None, {"CAMBIST_WEB__PORT": "9000", "HOME": "/"})
    assert settings.web.port == 9000


def test_references_are_resolved_everywhere(load, tmp_path):
    (tmp_path / "secret").write_text("from the file\n")
    settings = load(
        """
        [database]
        url = { env = "DB" }
        [plugins.evm.chains.ethereum]
        rpc_urls = ["http://one", { env = "RPC" }, { file = "secret" }]
        [[plugins.evm.chains.ethereum.tokens]]
        contract = { env = "RPC" }
        """,
        {"DB": "postgresql://u:p@h/d", "RPC": "http://two"},
    )
    assert settings.database.url == "postgresql://u:p@h/d"
    ethereum = settings.plugins["evm"]["chains"]["ethereum"]
    assert ethereum["rpc_urls"] == ["http://one", "http://two", "from the file"]
    assert ethereum["tokens"] == [{"contract": "http://two"}]


def test_a_table_with_more_than_a_reference_is_left_alone(load):
    assert load('[plugins.x]\na = { env = "A", other = 1 }').plugins["x"]["a"] == {"env": "A", "other": 1}


def test_variables_win_over_the_file_and_may_hold_lists_and_references(load):
    settings = load(
        '[web]\nport = 1000\ntrusted_proxies = ["10.0.0.0/8"]',
        {
            "CAMBIST_WEB__PORT": "2000",
            "CAMBIST_WEB__TRUSTED_PROXIES": '["127.0.0.1/32"]',
            "CAMBIST_WEBHOOKS__ALLOW_PRIVATE_TARGETS": "true",
            "CAMBIST_DATABASE__URL": '{ env = "DB" }',
            "DB": "postgresql://h/d",
            "CAMBIST_PLUGINS__EVM__CHAINS__BASE__POLL_INTERVAL_MS": "500",
            "CAMBIST_PLUGINS__EVM__CHAINS__BASE__RPC_URL": "http://x",
        },
    )
    assert settings.web.port == 2000
    assert settings.web.trusted_proxies == ("127.0.0.1/32",)
    assert settings.webhooks.allow_private_targets is True
    assert settings.database.url == "postgresql://h/d"
    assert settings.plugins["evm"]["chains"]["base"] == {"poll_interval_ms": 500, "rpc_url": "http://x"}


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("[databse]", "there is no table 'databse'"),
        ("[database]\nuri = 'x'", "there is no setting 'uri' in [database]"),
        ("[web.rate_limits]\nper_kay = 1", "there is no setting 'per_kay' in [web.rate_limits]"),
        ("[web]\nport = 0", "web.port: expected `int` >= 1"),
        ("[web]\nport = 'x'", "web.port: expected `int`"),
        ("[web]\npublic_url = 'pay.example'", "web.public_url must be"),
        ("[web]\npublic_url = 'https://pay.example/shop'", "web.public_url must be"),
        ("[web]\npublic_url = 'https://pay.example?x#y'", "web.public_url must be"),
        ("[web]\npublic_url = 'https://me:secret@pay.example'", "web.public_url must be"),
        ("[web]\npublic_url = 'ftp://pay.example'", "web.public_url must be"),
        ("[web]\nadmin_port = 8081\nadmin_url = 'admin.example'", "web.admin_url must be"),
        ("[web]\nadmin_url = 'https://admin.example'", "set web.admin_port, too"),
        ("[web]\nport = 8081\nadmin_port = 8081\nadmin_host = 'localhost'", "another port than web.port"),
        ("[web]\nadmin_port = 8081\nadmin_host = '0:0::0'", "web.admin_url must be set"),
        ("[webhooks]\nretries = 21", "webhooks.retries: expected `int` <= 20"),
        ("[keys]\napplication_key = 'short'", "keys.application_key"),
        ("[keys]\nkeystore = 1", "keys.keystore: expected a path"),
        ("environment = 'staging'", "environment: invalid enum value"),
        ("plugins = 1", "plugins: expected"),
        ("[plugins]\nevm = 1", "plugins.evm must be a table"),
        ("[database]\nurl = 'mysql://h/d'", "database.url must start with postgresql://"),
        ("[redis]\nurl = 'http://h'", "redis.url must start with redis://"),
        ("[database]\nurl = { env = 'NOT_THERE' }", "database.url refers to the environment variable NOT_THERE"),
        ("[plugins.p]\na = [{ file = 'gone' }]", "plugins.p.a.0 refers to the file"),
        ("[prices]\nttl_s = 400", "prices.ttl_s must not be larger"),
        ("[auth]\naccess_token_s = 999\noperator_session_s = 900", "nor auth.operator_session_s"),
        ("[web", "is not valid TOML"),
    ],
)
def test_each_mistake_is_told_with_file_and_setting(load, text, sentence):
    with pytest.raises(SettingsError) as raised:
        load(text)
    assert "cambist.toml" in str(raised.value)
    assert sentence in str(raised.value)


def test_a_variable_that_names_no_setting_is_refused(load):
    with pytest.raises(SettingsError, match="CAMBIST_DATABSE__URL names no setting"):
        load("", {"CAMBIST_DATABSE__URL": "x"})
    with pytest.raises(SettingsError, match="there is no setting 'uri'"):
        load("", {"CAMBIST_DATABASE__URI": "x"})


def test_a_missing_file_and_an_empty_or_binary_secret_are_told(load, tmp_path):
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(tmp_path / "gone.toml", {})
    for content, sentence in ((b"", "is empty"), (b"\xff\xfe", "not UTF-8"), (b"x" * 70_000, "larger than")):
        (tmp_path / "secret").write_bytes(content)
        with pytest.raises(SettingsError, match=sentence):
            load("[redis]\nurl = { file = 'secret' }")


def test_production_accepts_a_complete_file(production, tmp_path):
    settings = production()
    assert settings.production
    assert settings.keys.keystore == tmp_path / "keystore.json"
    assert settings.keys.application_key == "ab" * 32


@pytest.mark.parametrize(
    "removed, sentence",
    [
        ('url = "postgresql://cambist@db/cambist?sslmode=verify-full"', "database.url and redis.url must be set"),
        ('url = "rediss://cache/0"', "database.url and redis.url must be set"),
        ('public_url = "https://pay.example"', "web.public_url must be set"),
        ('keystore = "keystore.json"', "keys.keystore must be set"),
        ('application_key = { file = "app.key" }', "keys.application_key must be set"),
        ('jwt_secret = { env = "JWT" }', "auth.jwt_secret must be set"),
        ('hourly_caps = { "ethereum/USDT" = "50000" }', "signer.hourly_caps must be set"),
        ('fee_caps = { ethereum = "0.05" }', "signer.fee_caps must be set"),
        ('fee_hourly_caps = "unlimited"', "signer.fee_hourly_caps must be set"),
    ],
)
def test_production_makes_nothing_up(production, removed, sentence):
    with pytest.raises(SettingsError, match=sentence):
        production(removed)


def test_production_is_served_over_https(production):
    for url in ("http://pay.example", "HTTP://pay.example"):
        with pytest.raises(SettingsError, match=r"web\.public_url must be https"):
            production("https://pay.example", url)
    assert production("https://pay.example", "HTTPS://pay.example").production


def test_production_shows_no_operators_password_to_who_is_on_the_way(production):
    public = 'public_url = "https://pay.example"'
    own = f'{public}\nadmin_port = 8081\nadmin_host = "%s"\nadmin_url = "%s"'
    tunnelled = own % ("127.0.0.1", "http://localhost:8081")
    for web in (own % ("10.0.0.5", "HTTPS://admin.example"), tunnelled, f"{public}\nadmin_port = 8081"):
        assert production(public, web).production
    for web in (
        own % ("10.0.0.5", "http://admin.example"),
        own % ("127.0.0.1", "http://admin.example"),
        own % ("10.0.0.5", "http://localhost:8081"),
        f'{public}\nadmin_port = 8081\nadmin_host = "10.0.0.5"',
    ):
        with pytest.raises(SettingsError, match=r"web\.admin_url must be https"):
            production(public, web)


DATABASE = "postgresql://cambist@db/cambist?sslmode=verify-full"


@pytest.mark.parametrize(
    "database",
    [
        "postgresql://cambist@db/cambist",
        "postgresql://cambist@db/cambist?sslmode=require",
        "postgresql://cambist@db/cambist?sslmode=verify-ca",
        "postgresql://cambist@127.0.0.1,db/cambist",
        "postgresql://cambist@localhost/cambist?host=db",
        "postgresql://cambist@/cambist?host=10.0.0.1",
        "postgresql://cambist@localhost.example/cambist",
        "postgresql://cambist@[2001:db8::1]:5432/cambist",
    ],
)
def test_production_knows_whose_database_it_talks_to(production, database):
    with pytest.raises(SettingsError, match=r"database\.url of another machine must have sslmode=verify-full"):
        production(DATABASE, database)
    assert production(f'url = "{DATABASE}"', f'url = "{database}"\nallow_unverified_tls = true').production


@pytest.mark.parametrize("password", ["p#secret", "p?secret", "p/secret", "p[secret", "p@secret"])
@pytest.mark.parametrize("table, scheme", [("database", "postgresql"), ("redis", "rediss")])
def test_an_address_that_can_be_read_in_two_ways_is_refused_and_not_shown(load, table, scheme, password):
    options = "?sslmode=verify-full" if table == "database" else ""
    with pytest.raises(SettingsError, match=rf"{table}\.url can be read in two ways: percent-encode") as told:
        load(f"[{table}]\nurl = '{scheme}://cambist:{password}@db.example/0{options}'")
    assert "secret" not in str(told.value)
    encoded = quote(password, safe="")
    assert load(f"[{table}]\nurl = '{scheme}://cambist:{encoded}@[2001:db8::1]/0{options}'")


@pytest.mark.parametrize(
    "database", ["postgresql:///cambist", "postgresql://cambist@/cambist", "postgresql://,/cambist"]
)
def test_production_looks_where_the_driver_would_for_a_database_without_a_host(production, database, monkeypatch):
    assert production(DATABASE, database).production
    monkeypatch.setenv("PGHOST", "/run/postgresql,db.example")
    with pytest.raises(SettingsError, match=r"database\.url of another machine must have sslmode=verify-full"):
        production(DATABASE, database)


@pytest.mark.parametrize(
    "redis", ["redis://cache/0", "rediss://cache/0?ssl_cert_reqs=none", "rediss://cache/0?ssl_check_hostname=false"]
)
def test_production_knows_whose_redis_it_talks_to(production, redis):
    with pytest.raises(SettingsError, match=r"redis\.url of another machine must be rediss://"):
        production("rediss://cache/0", redis)
    assert production('"rediss://cache/0"', f'"{redis}"\nallow_unverified_tls = true').production


@pytest.mark.parametrize(
    "database, redis",
    [
        ("postgresql://cambist@localhost/cambist", "redis://localhost/0"),
        ("postgresql://cambist:p%40ss@127.0.0.1:5432/cambist", "redis://:secret@127.0.0.1:6379/0"),
        ("postgresql://cambist@[::1]:5432/cambist", "redis://[::1]:6379/0"),
        ("postgresql://cambist@/cambist?host=/run/postgresql", "unix:///run/valkey.sock"),
        ("postgresql:///cambist", "rediss://cache.example/0"),
    ],
)
def test_what_is_on_this_machine_needs_no_certificate(production, database, redis):
    assert production(DATABASE, database).production
    assert production("rediss://cache/0", redis).production


def test_production_takes_no_strangers_unless_it_says_so(production, load):
    assert not production().registration_open
    assert production("[auth]", "[auth]\nregistration = true").registration_open
    assert load("").registration_open
    assert not load("[auth]\nregistration = false").registration_open


def test_production_does_not_call_private_targets(production):
    with pytest.raises(SettingsError, match="allow_private_targets must be false"):
        production("[web]", "[webhooks]\nallow_private_targets = true\n[web]")


@pytest.mark.parametrize(
    "table, setting",
    [
        (
            '[plugins.evm.chains.ethereum]\nrpc_urls = ["https://a.example", "HTTP://b.example/key"]',
            "evm.chains.ethereum.rpc_urls",
        ),
        ('[plugins.tron]\nrpc_urls = ["http://8.8.8.8:8090"]', "tron.rpc_urls"),
        ('[plugins.tron]\nrpc_urls = ["http://10.0.0.1@b.example/key"]', "tron.rpc_urls"),
        ('[plugins.prices.coingecko]\nbase_url = "http://prices.example"', "prices.coingecko.base_url"),
    ],
)
def test_production_asks_no_node_and_no_price_source_over_http(production, load, table, setting):
    with pytest.raises(SettingsError, match=f"in production plugins.{setting} must be https") as error:
        production("[signer]", f"{table}\n[signer]")
    assert "b.example" not in str(error.value), "an address may carry a key"
    assert production("[signer]", f"{table}\n[nodes]\nallow_http = true\n[signer]").nodes_over_http
    assert load(table).nodes_over_http
    with pytest.raises(SettingsError, match="must be https") as error:
        production("[signer]", f"{table}\n[nodes]\nallow_http = false\n[signer]")


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8545", "localhost:8545", "[::1]:8545", "10.1.2.3", "192.168.0.7", "[fd00::1]"]
)
def test_a_node_on_this_machine_or_in_a_private_network_may_be_asked_over_http(production, host):
    table = f'[plugins.evm.chains.ethereum]\nrpc_urls = ["http://{host}/"]\n[signer]'
    assert not production("[signer]", table).nodes_over_http


def test_production_sends_webhooks_over_https_unless_it_says_otherwise(production, load):
    assert not production().webhook_targets.allow_http
    assert production("[auth]", "[webhooks]\nallow_http = true\n[auth]").webhook_targets.allow_http
    assert load("").webhook_targets.allow_http
    assert not load("[webhooks]\nallow_http = false").webhook_targets.allow_http


def test_only_who_asks_for_the_passphrase_gets_it(production, load):
    assert production().keys.passphrase is None
    assert production(passphrase=True).keys.passphrase == "correct horse battery"
    # Not even looked up: where it is not needed, it need not be there.
    assert load("[keys]\npassphrase = { env = 'GONE' }").keys.passphrase is None


def test_the_variables_that_carry_the_passphrase_are_known(tmp_path):
    config = tmp_path / "cambist.toml"
    config.write_text(PRODUCTION)
    assert set(secret_variables(config, {})) == {"CAMBIST_KEYS__PASSPHRASE", "PASSPHRASE"}
    environ = {"CAMBIST_KEYS__PASSPHRASE": '{ env = "OTHER" }'}
    assert set(secret_variables(config, environ)) == {"CAMBIST_KEYS__PASSPHRASE", "OTHER"}
    assert "CAMBIST_keys__Passphrase" in secret_variables(None, {"CAMBIST_keys__Passphrase": "correct horse battery"})


def test_a_table_in_a_variable_may_refer_to_the_passphrase_and_not_hold_it():
    assert "OTHER" in secret_variables(None, {"CAMBIST_KEYS": '{ passphrase = { env = "OTHER" } }'})
    with pytest.raises(SettingsError, match="CAMBIST_KEYS__PASSPHRASE may"):
        secret_variables(None, {"CAMBIST_KEYS": '{ keystore = "k", passphrase = "correct horse battery" }'})


def test_no_representation_shows_a_value(production):
    settings = production(passphrase=True)
    for shown in (repr(settings), repr(settings.keys), repr(settings.database), f"{settings.auth}"):
        assert "correct horse" not in shown
        assert "ab" * 32 not in shown
        assert "jjjj" not in shown
        assert "postgresql" not in shown


QUICK = Kdf(time_cost=1, memory_kib=64, parallelism=1)


def test_development_makes_its_secrets_once_and_uses_them_again(load, ids: Ids, tmp_path):
    made = provision(load(), ids, kdf=QUICK)
    settings = load("", made, passphrase=True)
    assert settings.keys.keystore is not None
    first = open_keystore(settings.keys.keystore, settings.keys.passphrase or "").mnemonic
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / ".cambist").iterdir())
    assert provision(load(), ids, kdf=QUICK) == made
    again = load("", made, passphrase=True)
    assert open_keystore(settings.keys.keystore, again.keys.passphrase or "").mnemonic == first
    assert again.keys.application_key == settings.keys.application_key
    assert again.auth.jwt_secret == settings.auth.jwt_secret


def test_who_may_not_know_the_passphrase_makes_no_keystore(load, ids, tmp_path):
    made = provision(load(), ids, keystore=False)
    assert set(made) == {"CAMBIST_KEYS__APPLICATION_KEY", "CAMBIST_AUTH__JWT_SECRET"}
    assert not (tmp_path / ".cambist" / "keystore.json").exists()


def test_what_is_configured_is_not_made(production, ids):
    assert provision(production(passphrase=True), ids) == {}


def test_production_never_makes_a_secret(ids, tmp_path):
    settings = Settings(environment="production", data_dir=tmp_path / "data")
    with pytest.raises(SettingsError, match="must be set"):
        provision(settings, ids)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "text, left",
    [
        ("postgresql://cambist:hunter2@db/cambist", "hunter2"),
        ("https://rpc.example/?apikey=s3cr3t&x=1", "s3cr3t"),
        ("key ck_live_0a1b2c3d", "0a1b2c3d"),
        ("Authorization: Bearer abc.def", "abc.def"),
        (
            "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi",
            "xprv9",
        ),
    ],
)
def test_what_looks_secret_is_removed_from_texts(text, left):
    assert left not in redact_text(text)
    assert REDACTED in redact_text(text)


@pytest.fixture
def logged():
    stream = io.StringIO()
    configure_logs(json=True, stream=stream)
    return stream


def test_logs_carry_no_secrets_at_any_depth_and_not_in_tracebacks(logged):
    log = structlog.get_logger("test")
    try:
        int("postgresql://u:hunter2@db/d")
    except ValueError:
        log.exception("failed", passphrase="hunter2", deep={"list": [{"api_key": "hunter2"}]}, token="USDC", amount=5)
    line = json.loads(logged.getvalue())
    assert "hunter2" not in logged.getvalue()
    assert (line["token"], line["amount"], line["event"]) == ("USDC", 5, "failed")
    assert "ValueError" in line["exception"]


@pytest.mark.parametrize("json_lines", [True, False])
def test_a_value_cannot_begin_a_line_of_its_own(json_lines):
    stream = io.StringIO()
    configure_logs(json=json_lines, stream=stream)
    hostile = "ada\n2026-01-01 [info] all is well\r\x1b[2J"
    structlog.get_logger("test").warning("refused", email=hostile, deep=[{"name": hostile}])
    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()


def test_the_log_says_where_the_files_are_that_were_made(load, ids, tmp_path, logged):
    provision(load(), ids, kdf=QUICK)
    made = [json.loads(line) for line in logged.getvalue().splitlines() if "KEYSTORE MADE" in line]
    folder = tmp_path / ".cambist"
    assert [(line["keystore"], line["opened_by"]) for line in made] == [
        (str(folder / "keystore.json"), str(folder / "keystore.passphrase"))
    ]


def test_relative_paths_are_relative_to_the_file(load, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    assert load('data_dir = "state"').data_dir == tmp_path / "state"
    assert load("", data_dir=Path("elsewhere")).data_dir == Path("/elsewhere")


def _paths(group: type, prefix: str = ""):
    for field in msgspec.structs.fields(group):
        if isinstance(field.default, Group):
            yield from _paths(type(field.default), f"{prefix}{field.name}.")
        else:
            yield prefix + field.name


def test_every_setting_is_documented_and_nothing_else_is():
    page = Path(__file__).parents[2].joinpath("docs/operators/settings.md").read_text()
    documented = set(re.findall(r"^\| `([a-z_.]+)` \|", page, re.MULTILINE))
    assert documented == set(_paths(Settings)) - {"environment", "data_dir", "plugins"}


def test_links_of_operators_start_with_their_own_address_where_they_have_one(load):
    web = "[web]\npublic_url = 'https://pay.example'\n"
    assert base_url(load(web).web) == "https://pay.example"
    assert base_url(load(web + "admin_port = 8081").web) == "http://127.0.0.1:8081"
    own = load(web + "admin_port = 8081\nadmin_url = 'https://admin.example/'").web
    assert (base_url(own), own.base_url) == ("https://admin.example", "https://pay.example")


@pytest.mark.parametrize("url", ["https://pay.example/", "http://127.0.0.1:8080", "https://[2001:db8::1]:8443"])
def test_links_start_with_the_public_url(load, url):
    assert load(f"[web]\npublic_url = {url!r}").web.base_url == url.rstrip("/")
