"""Reads ``cambist.toml`` and ``CAMBIST_*`` variables into Settings, and resolves secrets given by reference.

``CAMBIST_DATABASE__URL`` sets ``url`` in ``[database]``, two underscores for each step down. A value is plain
text, or TOML where it starts with ``[`` or ``{``; in a plugin's table, whose types only the plugin knows, numbers
and booleans are read as such too. Variables win over the file.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from .domain.money import CURRENCIES
from .server_urls import is_every_address, is_loopback, is_plain, knows_database, knows_redis, over_http
from .settings import UNLIMITED, Settings, SettingsError, WebSettings

CONFIG_VARIABLE = "CAMBIST_CONFIG"
DATA_DIR_VARIABLE = "CAMBIST_DATA_DIR"
PREFIX = "CAMBIST_"
FILE_BYTES_MAX = 2**20
SECRET_BYTES_MAX = 2**16

_SIGNER_TABLES = ("environment", "data_dir", "keys", "signer", "plugins", "log")
_NOT_THE_SIGNERS_KEYS = ("application_key", "previous_keys")
_NO_KEYSTORE = "in production keys.keystore must be set; 'cambist keys init' makes one."

# Other uses of the prefix: how processes of ours find each other, and how tests are sized.
_NOT_SETTINGS = (CONFIG_VARIABLE, DATA_DIR_VARIABLE, "CAMBIST_SUPERVISOR_FD", "CAMBIST_TEST_")

Path_: TypeAlias = tuple[str, ...]

# Paths are ours to choose: cookies and the files of pages are at the top of the host.
_PUBLIC_URL = re.compile(
    r"https?://[a-z0-9._-]+(:[0-9]{1,5})?/?|https?://\[[0-9a-f:.]+\](:[0-9]{1,5})?/?", re.IGNORECASE
)


def load_settings(
    config: Path | None,
    environ: Mapping[str, str],
    *,
    data_dir: Path | None = None,
    passphrase: bool = False,
    signer_only: bool = False,
) -> Settings:
    """Return the settings of this file (or of none) and these variables.

    Unless ``passphrase`` is asked for, the keystore's passphrase is not even looked up: only who signs may know it.
    With ``signer_only`` nothing else is: no address of a server, no other secret. Relative paths are relative to the
    file's folder. Raises SettingsError.
    """
    source = str(config) if config is not None else "environment"
    raw = _read(config) if config is not None else {}
    _override(raw, environ)
    if not passphrase and isinstance(raw.get("keys"), dict):
        raw["keys"].pop("passphrase", None)
    if signer_only:
        raw = _signers(raw)
    folder = config.resolve().parent if config is not None else Path.cwd()
    resolved = _Secrets(source, folder, environ).resolve(raw, ())
    plugins = resolved.get("plugins", {})
    if isinstance(plugins, dict):
        for name, table in plugins.items():
            if not isinstance(table, dict):
                raise SettingsError(f"{source}: plugins.{name} must be a table, [plugins.{name}].")
    try:
        settings = msgspec.convert(resolved, Settings, strict=False, dec_hook=_decode_path)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{source}: {explain(str(error))}") from None
    keys, signer = settings.keys, settings.signer

    def placed(path: Path | None) -> Path | None:
        return path and folder / path

    settings = replace(
        settings,
        data_dir=(data_dir or folder / settings.data_dir).absolute(),
        keys=replace(keys, keystore=placed(keys.keystore)),
        signer=replace(signer, socket=placed(signer.socket), store=placed(signer.store)),
        audit=replace(settings.audit, seals_file=placed(settings.audit.seals_file)),
    )
    judge = _signers_problems if signer_only else problems
    wrong = judge(settings)
    if wrong:
        raise SettingsError(f"{source}: {wrong[0]}")
    return settings


def _signers(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the signer needs to know, and no other secret."""
    others = set(Settings.__struct_fields__) - set(_SIGNER_TABLES)
    kept = {name: table for name, table in raw.items() if name not in others}
    if isinstance(keys := kept.get("keys"), dict):
        kept["keys"] = {name: value for name, value in keys.items() if name not in _NOT_THE_SIGNERS_KEYS}
    return kept


def process_settings(*, passphrase: bool = False, signer_only: bool = False) -> Settings:
    """Return the settings that the ``cambist`` command left in this process's environment, for its children too."""
    config, data_dir = os.environ.get(CONFIG_VARIABLE), os.environ.get(DATA_DIR_VARIABLE)
    return load_settings(
        Path(config) if config else None,
        os.environ,
        data_dir=Path(data_dir) if data_dir else None,
        passphrase=passphrase,
        signer_only=signer_only,
    )


def secret_variables(config: Path | None, environ: Mapping[str, str]) -> Collection[str]:
    """Return the names of the variables that carry the passphrase: what only the process that signs may inherit.

    Raises SettingsError where one carries it in a table: the other processes need the table, and would know it.
    """
    raw = _read(config) if config is not None else {}
    _override(raw, environ)
    names = {"CAMBIST_KEYS__PASSPHRASE"}
    for name, text in environ.items():
        alone: dict[str, Any] = {}
        _override(alone, {name: text})
        if (held := _passphrase(alone)) == text:
            names.add(name)
        elif isinstance(held, str):
            raise SettingsError(
                f"{name} may not hold the passphrase, which web must not inherit: CAMBIST_KEYS__PASSPHRASE may."
            )
    reference = _passphrase(raw)
    if isinstance(reference, dict) and isinstance(reference.get("env"), str):
        names.add(reference["env"])
    return names


def _passphrase(raw: Mapping[str, Any]) -> object:
    keys = raw.get("keys")
    return keys.get("passphrase") if isinstance(keys, dict) else None


def explain(message: str) -> str:
    """Turn a decoder's message, such as "Expected `int`, got `str` - at `$.web.port`", into a sentence."""
    text, _, where = message.partition(" - at ")
    where = where.strip("`").removeprefix("$").lstrip(".")
    if match := re.fullmatch(r"Object contains unknown field `(.*)`", text):
        return f"there is no setting {match[1]!r} in [{where}]." if where else f"there is no table {match[1]!r}."
    return f"{where}: {text[0].lower()}{text[1:]}." if where else f"{text}."


def _decode_path(kind: type, value: object) -> Path:
    if kind is Path and isinstance(value, str) and value and "\0" not in value:
        try:
            return Path(value).expanduser()
        except RuntimeError:
            raise ValueError("Expected a path, and this one begins with a user who has no home directory") from None
    raise ValueError("Expected a path")


def _read(config: Path) -> dict[str, Any]:
    try:
        if config.stat().st_size > FILE_BYTES_MAX:
            raise SettingsError(f"{config} is larger than {FILE_BYTES_MAX} bytes.")
        return tomllib.loads(config.read_text("utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"{config} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{config} is not valid TOML: {error}.") from None


def _override(raw: dict[str, Any], environ: Mapping[str, str]) -> None:
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name.startswith(_NOT_SETTINGS):
            continue
        path = tuple(part.lower() for part in name.removeprefix(PREFIX).split("__"))
        if not all(path) or path[0] not in Settings.__struct_fields__:
            raise SettingsError(f"The environment variable {name} names no setting; see docs/operators/settings.md.")
        table = raw
        for step in path[:-1]:
            table = table.setdefault(step, {})
            if not isinstance(table, dict):
                raise SettingsError(f"The environment variable {name} goes through {step!r}, which is no table.")
        table[path[-1]] = _value(name, environ[name], typed=path[0] == "plugins")


def _value(name: str, text: str, *, typed: bool) -> object:
    if text.startswith(("[", "{")):
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"The environment variable {name} is not valid TOML: {error}.") from None
    if typed and text in {"true", "false"}:
        return text == "true"
    return int(text) if typed and re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII) else text


class _Secrets:
    """Replaces ``{ env = "NAME" }`` and ``{ file = "path" }`` by what they refer to, at any depth."""

    def __init__(self, source: str, folder: Path, environ: Mapping[str, str]) -> None:
        self._source = source
        self._folder = folder
        self._environ = environ

    def resolve(self, value: Any, path: Path_) -> Any:  # noqa: ANN401  whatever TOML holds
        if isinstance(value, list):
            return [self.resolve(item, (*path, str(number))) for number, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        match value:
            case {"env": str(name)} if len(value) == 1:
                return self._variable(name, path)
            case {"file": str(name)} if len(value) == 1:
                return self._file(name, path)
        return {key: self.resolve(item, (*path, key)) for key, item in value.items()}

    def _variable(self, name: str, path: Path_) -> str:
        text = self._environ.get(name, "")
        if not text:
            raise SettingsError(
                f"{self._source}: {'.'.join(path)} refers to the environment variable {name}, which is not set."
            )
        return text

    def _file(self, name: str, path: Path_) -> str:
        file = self._folder / name
        try:
            file = self._folder / _decode_path(Path, name)
            with file.open("rb") as stream:
                content = stream.read(SECRET_BYTES_MAX + 1)
            text = content.decode("utf-8").rstrip("\r\n")
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
        except UnicodeDecodeError:
            reason = "is not UTF-8 text"
        except ValueError as error:
            reason = f"is none: {str(error).lower()}"
        else:
            if text and len(content) <= SECRET_BYTES_MAX:
                return text
            reason = f"is larger than {SECRET_BYTES_MAX} bytes" if text else "is empty"
        raise SettingsError(f"{self._source}: {'.'.join(path)} refers to the file {file}, which {reason}.")


def problems(settings: Settings) -> list[str]:
    """Return what is wrong with the settings taken together, one sentence each."""
    found = [
        f"{name} can be read in two ways: percent-encode what is in its user name and password, such as %23 for #."
        for name, url in (("database.url", settings.database.url), ("redis.url", settings.redis.url))
        if url and not is_plain(url)
    ]
    if found:
        return found
    if settings.database.url and not settings.database.url.startswith(("postgres://", "postgresql://")):
        found.append("database.url must start with postgresql://; PostgreSQL is the only database.")
    if settings.redis.url and not settings.redis.url.startswith(("redis://", "rediss://", "unix://")):
        found.append("redis.url must start with redis://, rediss:// or unix://.")
    if settings.web.public_url is not None and not _PUBLIC_URL.fullmatch(settings.web.public_url):
        found.append("web.public_url must be an http or https address of a host alone, such as https://pay.example.")
    found += _admin_problems(settings)
    if settings.prices.ttl_s > settings.prices.max_age_s:
        found.append("prices.ttl_s must not be larger than prices.max_age_s: prices would be used when too old.")
    if not CURRENCIES.issuperset(settings.prices.snapshot_currencies):
        found.append("prices.snapshot_currencies must be ISO 4217 codes in lower case, such as usd.")
    if settings.auth.access_token_s > min(settings.auth.refresh_token_s, settings.auth.operator_session_s):
        found.append("auth.access_token_s must not be larger than auth.refresh_token_s, nor auth.operator_session_s.")
    return found + _production_problems(settings) if settings.production else found


def _admin_problems(settings: Settings) -> list[str]:
    web, found = settings.web, []
    if web.admin_url is not None and not _PUBLIC_URL.fullmatch(web.admin_url):
        found.append("web.admin_url must be an http or https address of a host alone, such as https://admin.example.")
    if web.admin_url is not None and web.admin_port is None:
        found.append("web.admin_url is for an address of operators' own: set web.admin_port, too.")
    # On another host, too: an address has several spellings, and some hosts are every address.
    if web.admin_port is not None and web.admin_port == web.port:
        found.append("web.admin_port must be another port than web.port.")
    if web.admin_port is not None and web.admin_url is None and is_every_address(web.admin_host):
        found.append(f"web.admin_url must be set: no link can lead to {web.admin_host}, which is web.admin_host.")
    if settings.production and _shows_passwords(web):
        found.append("in production web.admin_url must be https, unless operators come from this machine alone.")
    return found


def _shows_passwords(web: WebSettings) -> bool:
    """Say whether operators' passwords cross a network over plain http, rather than a tunnel to this machine."""
    if web.admin_port is None or (web.admin_url or "").lower().startswith("https://"):
        return False
    try:
        named = urlsplit(web.admin_url or "").hostname or web.admin_host
    except ValueError:
        return True
    return not all(host == "localhost" or is_loopback(host) for host in (web.admin_host, named))


def _signers_problems(settings: Settings) -> list[str]:
    """Return what lacks to sign. For which chains and tokens caps must be said, the signer knows."""
    if not settings.production:
        return []
    if settings.keys.keystore is None:
        return [_NO_KEYSTORE]
    return [
        f"in production signer.{name} must be set, to amounts or to {UNLIMITED!r}: it bounds what a thief could take."
        for name in ("hourly_caps", "fee_caps", "fee_hourly_caps")
        if not getattr(settings.signer, name)
    ]


def _production_problems(settings: Settings) -> list[str]:
    found = []
    if settings.database.url is None or settings.redis.url is None:
        found.append("in production database.url and redis.url must be set; embedded servers are for development.")
    if settings.keys.keystore is not None or settings.signer_socket is None:
        found += _signers_problems(settings)
    if settings.keys.application_key is None:
        found.append("in production keys.application_key must be set to 64 hexadecimal characters.")
    if settings.auth.jwt_secret is None:
        found.append("in production auth.jwt_secret must be set to at least 32 characters.")
    if settings.webhooks.allow_private_targets:
        found.append("in production webhooks.allow_private_targets must be false.")
    if settings.web.public_url is None:
        found.append("in production web.public_url must be set: it is in the links that customers follow.")
    elif not settings.web.public_url.lower().startswith("https://"):
        found.append("in production web.public_url must be https: who is on the way could show another address.")
    database, redis = settings.database, settings.redis
    if database.url is not None and not (database.allow_unverified_tls or knows_database(database.url)):
        found.append(
            "in production database.url of another machine must have sslmode=verify-full; "
            "database.allow_unverified_tls = true does without."
        )
    if redis.url is not None and not (redis.allow_unverified_tls or knows_redis(redis.url)):
        found.append(
            "in production redis.url of another machine must be rediss:// and check the certificate; "
            "redis.allow_unverified_tls = true does without."
        )
    return found if settings.nodes_over_http else found + _nodes_problems(settings)


def _nodes_problems(settings: Settings) -> list[str]:
    """Return which settings of plugins name nodes or price sources that would be asked over plain http."""
    return [
        f"in production {where} must be https where it is not of this machine or a private network; "
        "nodes.allow_http = true does without."
        for where in over_http(settings.plugins, "plugins")
    ]
