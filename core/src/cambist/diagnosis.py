"""What ``cambist doctor`` finds out: each part asked in turn, each answer a sentence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg
from msgspec import Struct
from redis.exceptions import RedisError
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from .bootstrap import open_database, open_redis, plugin_context, secrets_box, write_to
from .db.migrations import current_revision, newest_revision
from .db.room import is_full
from .db.structs import AnyRow
from .logs import redact_text
from .plugin import Chain
from .ports import SystemClock, system_ids, system_random
from .registry import ConnectProblem, Registry, RegistryError
from .secrets import SecretsBox, SecretsError
from .services.addresses.account_keys import check_origin
from .services.recovery.reencryption import COLUMNS
from .services.recovery.unfinished import is_unfinished
from .services.stored_settings import list_stored
from .settings import Settings, SettingsError
from .signer import SignerUnavailableError, XpubSource
from .signer.files import KeystoreError, why_not_written
from .signer.keystore import MODES, open_keystore
from .signer.local import KeystoreXpubs
from .signer.remote import RemoteSigner
from .signer.rules import load_rules, said_unlimited, unlimited
from .signer.startup import signer_problems

CHAIN_TIMEOUT_S = 30
SIGNER_TIMEOUT_S = 10
CLOCKS_APART_S_MAX = 60
POSTGRES_VERSION_MIN = 15

_NOT_LIVE = {
    "simulated": "simulated, for sandbox projects; no node is asked",
    "unconfigured": "no endpoints are configured; it is listed, and live payments on it are refused",
}


class Finding(Struct, frozen=True):
    """One thing that was looked at, and what was seen."""

    subject: str
    text: str
    problem: bool = False


async def diagnose(settings: Settings) -> AsyncIterator[Finding]:
    """Look at everything that the settings name; what hangs is given up after a while."""
    database = await _database(settings)
    yield database
    yield await _redis(settings)
    xpubs: XpubSource | None = None
    if settings.signer_socket is None:
        keystore, xpubs = await asyncio.to_thread(_keystore, settings)
        yield keystore
    for finding in await asyncio.to_thread(_files, settings):
        yield finding
    try:
        registry = Registry(settings.plugins)
    except RegistryError as error:
        yield Finding("plugins", str(error), problem=True)
        return
    yield Finding("plugins", f"enabled: {', '.join(registry.plugins) or 'none'}")
    if settings.signer_socket is not None:
        yield await _signer(settings.signer_socket, settings.signer.socket_group, registry)
    for finding in _rules(settings, registry):
        yield finding
    if settings.database.url is not None and not database.problem:
        for finding in await _stored(settings, registry, xpubs):
            yield finding
    async for finding in _chains(registry):
        yield finding


async def _database(settings: Settings) -> Finding:
    if settings.database.url is None:
        return Finding("database", "no address is configured; 'cambist up' starts an embedded one")
    try:
        version, revision = await _versions(settings)
    except (OSError, TimeoutError, SQLAlchemyError, asyncpg.PostgresError) as error:
        return Finding("database", f"it cannot be reached: {_words(error)}", problem=True)
    except Exception as error:  # noqa: BLE001  drivers raise anything for an address that means nothing
        return _unusable("database", error)
    major = version // 10_000
    if major < POSTGRES_VERSION_MIN:
        text = f"PostgreSQL {major} is too old; {POSTGRES_VERSION_MIN} is the oldest that is supported"
        return Finding("database", text, problem=True)
    if revision != newest_revision():
        text = f"it is at revision {revision or 'none'}, not {newest_revision()}: run 'cambist migrate'"
        return Finding("database", text, problem=True)
    return Finding("database", f"PostgreSQL {major}, at revision {revision}")


async def _versions(settings: Settings) -> tuple[int, str | None]:
    """Return the server's version and the revision of what is stored there."""
    database = open_database(settings, "doctor")
    try:
        async with asyncio.timeout(settings.database.pool_timeout_s), database.transaction() as connection:
            version = (await connection.exec_driver_sql("SHOW server_version_num")).scalar_one()
            return int(version), await current_revision(connection)
    finally:
        await database.close()


def _unusable(server: str, error: Exception) -> Finding:
    """Say that an address means nothing. In what words is not told: they repeat what may be part of a password."""
    return Finding(server, f"{server}.url is no address that can be used: {type(error).__name__}", problem=True)


async def _redis(settings: Settings) -> Finding:
    if settings.redis.url is None:
        return Finding("redis", "no address is configured; 'cambist up' starts an embedded one")
    try:
        info, refusal = await _server_info(settings.redis.url)
    except (RedisError, OSError) as error:
        return Finding("redis", f"it cannot be reached: {_words(error)}", problem=True)
    except Exception as error:  # noqa: BLE001  likewise
        return _unusable("redis", error)
    name, version = ("Valkey", "valkey_version") if "valkey_version" in info else ("Redis", "redis_version")
    if info.get("role") == "slave":
        return Finding("redis", f"this {name} is a replica, which takes no writes: name the primary", problem=True)
    if refusal is not None:
        return Finding("redis", f"this {name} takes no writes, so that no job runs: {_words(refusal)}", problem=True)
    return Finding("redis", f"{name} {info[version]}")


async def _server_info(url: str) -> tuple[Mapping[str, Any], RedisError | None]:
    """Return what it says of itself, and why it takes no writes: it is full, or cannot save, say."""
    client, refusal = open_redis(url), None
    try:
        info: Mapping[str, Any] = await client.info()
        try:
            await write_to(client)
        except RedisError as error:
            refusal = error
    finally:
        await client.aclose()
    return info, refusal


async def _stored(settings: Settings, registry: Registry, xpubs: XpubSource | None) -> list[Finding]:
    """Look at what is stored: whether it can be written, read with these keys, and is of this keystore."""
    database = open_database(settings, "doctor")
    try:
        async with database.autocommit() as conn:
            server = (await conn.exec_driver_sql(_SERVER)).one()
            found = _of_server(server, SystemClock().now())
            if not server.is_read_only and await is_full(database):
                text = "its disk is full: nothing is written to it until there is room"
                found.append(Finding("database", text, problem=True))
            if await is_unfinished(conn):
                text = "a restore of it has not come to its end, and workers wait for that: run 'cambist restore' again"
                found.append(Finding("database", text, problem=True))
            unread = [one for one in await list_stored(conn) if one.problem is not None]
            if unread:
                names = ", ".join(one.name for one in unread)
                text = f"this version does not read {names}: 'cambist settings' says why"
                found.append(Finding("platform settings", text, problem=True))
            if settings.keys.application_key is not None:
                found += await _of_keys(conn, secrets_box(settings, system_ids()), registry, xpubs)
    except (OSError, SQLAlchemyError, asyncpg.PostgresError) as error:
        return [Finding("database", f"what is stored cannot be read: {_words(error)}", problem=True)]
    finally:
        await database.close()
    return found


_SERVER = """
SELECT pg_is_in_recovery() AS is_standby, clock_timestamp() AS at, current_user AS account,
    current_setting('transaction_read_only')::bool AS is_read_only,
    (SELECT string_agg(c.relname, ', ' ORDER BY c.relname) FROM pg_class c
        WHERE c.relnamespace = to_regnamespace(current_schema()) AND c.relkind IN ('r', 'p')
            AND NOT (has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT'))
            AND c.relname <> 'schema_version') AS closed
"""


def _of_server(row: AnyRow, now: datetime) -> list[Finding]:
    found = []
    if row.is_standby:
        found.append(Finding("database", "it is a standby, which takes no writes: name the primary", problem=True))
    elif row.is_read_only:  # as hosts make it whose disk is nearly full
        found.append(Finding("database", "it takes no writes: it is read-only", problem=True))
    apart_s = round((now - row.at).total_seconds())
    if abs(apart_s) > CLOCKS_APART_S_MAX:
        side = "ahead of" if apart_s > 0 else "behind"
        text = f"this machine's clock is {abs(apart_s)} s {side} the database's; set both right"
        found.append(Finding("clock", text, problem=True))
    if row.closed is not None:
        text = f"the account {row.account} may not read and write {row.closed[:200]}: see 'Accounts of the database'"
        found.append(Finding("database", text, problem=True))
    return found


async def _of_keys(
    conn: AsyncConnection, box: SecretsBox, registry: Registry, xpubs: XpubSource | None
) -> list[Finding]:
    strange = []
    for sealed in COLUMNS:
        begins = func.substr(sealed.column, 1, len(box.prefix))
        kinds = await conn.execute(select(begins).where(sealed.column.is_not(None)).distinct())
        if not all(box.has_key_of(kind) for kind in kinds.scalars()):
            strange.append(sealed.name)
    if strange:
        text = f"none that is configured opens all of {', '.join(strange)}: put what is missing into keys.previous_keys"
        return [Finding("application key", text, problem=True)]
    if xpubs is None:
        return []
    coin_types = {family.coin_type for family in registry.families.values()}
    try:
        await check_origin(conn, xpubs, box, {(mode, coin_type) for mode in MODES for coin_type in coin_types})
    except (KeystoreError, SecretsError) as error:
        return [Finding("keystore", str(error), problem=True)]
    return []


def _keystore(settings: Settings) -> tuple[Finding, XpubSource | None]:
    keys = settings.keys
    if keys.keystore is None:
        made = settings.data_dir / "keystore.json"
        return Finding("keystore", f"none is configured; development makes one at {made}"), None
    if keys.passphrase is None:
        return Finding("keystore", "keys.passphrase is not set, so the worker cannot open it", problem=True), None
    try:
        keystore = open_keystore(keys.keystore, keys.passphrase)
    except KeystoreError as error:
        return Finding("keystore", str(error), problem=True), None
    return Finding("keystore", f"{keys.keystore} opens"), KeystoreXpubs(keystore)


def _files(settings: Settings) -> list[Finding]:
    """Say which files cannot be used that nobody opens before the gateway runs."""
    in_worker = settings.signer_socket is None
    found = [Finding("signer", problem, problem=True) for problem in (signer_problems(settings) if in_worker else ())]
    wanted = [("data_dir", settings.data_dir, "the recovery manifest")]
    if in_worker:
        wanted.append(("signer.store", settings.signer_store, "what was signed"))
    if settings.audit.seals_file is not None:
        wanted.append(("audit.seals_file", settings.audit.seals_file, "seals of the audit log"))
    for setting, path, what in wanted:
        there = next(one for one in (path, *path.parents) if one.exists())
        is_right = there.is_file() if there == settings.audit.seals_file else there.is_dir()
        reason = why_not_written(there) if is_right else "is not what it has to be"
        if reason is not None:
            found.append(Finding(setting, f"{what} cannot be written to {path}: {there} {reason}", problem=True))
    return found


async def _signer(path: Path, group: str | None, registry: Registry) -> Finding:
    try:
        signer = RemoteSigner(path, group=group, timeout_s=SIGNER_TIMEOUT_S)
    except SettingsError as error:
        return Finding("signer", str(error), problem=True)
    try:
        for coin_type in {family.coin_type for family in registry.families.values()}:
            await signer.account_xpub("live", coin_type, 0)
        await signer.report()  # for which its store has to be read and written
    except SignerUnavailableError as error:
        return Finding("signer", str(error), problem=True)
    finally:
        await signer.aclose()
    return Finding("signer", f"it answers at {path}")


def _rules(settings: Settings, registry: Registry) -> list[Finding]:
    """Say what could be stolen without limit. A signer elsewhere has its rules in a file of its own."""
    if settings.keys.keystore is None and settings.production:
        return []
    try:
        rules = load_rules(settings, registry.chains, registry.families)
    except SettingsError as error:
        return [Finding("signer", str(error), problem=True)]
    if not settings.production:
        return []
    return [
        *(Finding("signer", sentence, problem=True) for sentence in unlimited(rules, registry.chains)),
        *(Finding("signer", sentence) for sentence in said_unlimited(rules, registry.chains)),
    ]


async def _chains(registry: Registry) -> AsyncIterator[Finding]:
    problems: list[ConnectProblem] = []
    context = plugin_context(SystemClock(), system_random())
    async with registry.connect_chains(context, report=problems.append) as chains:
        for problem in problems:
            yield Finding(f"plugin {problem.plugin}", redact_text(problem.message), problem=True)
        for chain_id, info in registry.chains.items():
            if info.availability != "live":
                yield Finding(f"chain {chain_id}", _NOT_LIVE[info.availability])
            elif chain_id in chains:
                for finding in await _chain(chains[chain_id]):
                    yield finding
    problems.clear()
    async with registry.connect_prices(context, report=problems.append) as sources:
        for problem in problems:
            yield Finding(f"plugin {problem.plugin}", redact_text(problem.message), problem=True)
        names = ", ".join(source.name for source in sources)
        yield Finding("prices", names or "no source; payments can only be priced in tokens")
    problems.clear()
    async with (
        registry.connect_swaps(context, report=problems.append) as swaps,
        registry.connect_bridges(context, report=problems.append) as bridges,
    ):
        for problem in problems:
            yield Finding(f"plugin {problem.plugin}", redact_text(problem.message), problem=True)
        names = ", ".join(one.name for one in (*swaps, *bridges))
        yield Finding("swaps and bridges", names or "no provider")
    try:
        registry.call_readers()
    except RegistryError as error:
        yield Finding("swaps and bridges", redact_text(str(error)), problem=True)


async def _chain(chain: Chain) -> list[Finding]:
    subject = f"chain {chain.info.id}"
    try:
        async with asyncio.timeout(CHAIN_TIMEOUT_S):
            problems = await chain.problems()
            async with chain.view() as view:
                head = await view.head()
            sick = [endpoint for endpoint in chain.endpoints() if not endpoint.healthy]
    except Exception as error:  # noqa: BLE001  a plugin may raise anything, and the other chains want their turn
        return [Finding(subject, f"it cannot be read: {_words(error)}", problem=True)]
    return [
        Finding(subject, f"the head is at height {head.height}"),
        *(Finding(subject, redact_text(problem), problem=True) for problem in problems),
        *(Finding(subject, f"{end.name} is set aside: {end.last_error or 'no reason'}", problem=True) for end in sick),
    ]


def _words(error: BaseException) -> str:
    text = " ".join(redact_text(str(error)).split())
    return text[:300] or type(error).__name__
