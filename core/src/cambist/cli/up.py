"""``cambist up``: web and worker as two child processes, with embedded servers where none are configured."""

from __future__ import annotations

import http.client
import os
import signal
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

import click
import structlog

from cambist.embedded import EmbeddedError, EmbeddedServers, own_data_dir
from cambist.ports import system_ids
from cambist.registry import RegistryError, check_names
from cambist.settings import Settings, SettingsError
from cambist.settings_file import DATA_DIR_VARIABLE, secret_variables

from .apart import apart
from .options import Invocation, settings_options
from .supervisor import PROGRAM, Child, GivenUpError, Supervisor
from .terminal import echo
from .web import export_listener, listened_on, port_trouble

HEALTH_TIMEOUT_S = 2
KEYS_TIMEOUT_S = 120
"""A signer that cannot derive, a locked one say, keeps nobody from what needs no new keys."""
KEYS_PAUSE_S = 0.25
ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  what is listened on, and where it can be asked

log = structlog.get_logger(__name__)


@click.command()
@settings_options
@click.option("--host", help="The address to listen on, over web.host.")
@click.option("--port", type=click.IntRange(1, 65535), help="The port to listen on, over web.port.")
def up(invocation: Invocation, host: str | None, port: int | None) -> None:
    """Run everything on this machine, and print "ready" with the address when it serves."""
    export_listener(host, port)
    try:
        with running_gateway(invocation) as supervisor:
            signal.signal(signal.SIGTERM, supervisor.stop)
            signal.signal(signal.SIGINT, supervisor.stop)
            supervisor.run()
    except (EmbeddedError, GivenUpError, ChildProcessError) as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def running_gateway(invocation: Invocation) -> Iterator[Supervisor]:
    """Start what the gateway stands on, and yield what runs its processes."""
    secret = secret_variables(invocation.config, os.environ)
    with running_servers(invocation) as (settings, servers):
        yield _supervisor(settings, secret, servers)
    log.info("stopped")


@contextmanager
def running_servers(
    invocation: Invocation, *, postgres_settings: Mapping[str, str] | None = None
) -> Iterator[tuple[Settings, EmbeddedServers]]:
    """Own the data directory, start and migrate what the gateway stands on, and yield the settings with all of it."""
    # Until the supervisor takes over, a signal ends this as Ctrl-C does, so that what was started is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = invocation.settings()
    # Only their names: to import them for their tables takes long, and web and worker, which do so, refuse them anyway.
    try:
        check_names(settings.plugins)
    except RegistryError as error:
        raise SettingsError(str(error)) from error
    with own_data_dir(settings.data_dir) as data_dir:
        for host, port in listened_on(settings.web):
            if (trouble := port_trouble(host, port)) is not None:
                raise GivenUpError(f"Nothing can listen on {host}:{port}: {trouble}.")
        os.environ[DATA_DIR_VARIABLE] = str(data_dir)
        ids = system_ids()
        servers = EmbeddedServers(
            data_dir,
            ids.random_bytes,
            postgres=settings.database.url is None,
            valkey=settings.redis.url is None,
            postgres_settings=postgres_settings,
        )
        with servers:
            # A signer that somebody else runs has its own keystore.
            ours = settings.signer.separate or settings.signer_socket is None
            made = apart(lambda: _provision(settings, keystore=ours)) | _addresses(servers)
            os.environ.update(made)
            settings = invocation.settings()
            apart(lambda: _migrate(settings))
            yield settings, servers


def _addresses(servers: EmbeddedServers) -> dict[str, str]:
    found = {"CAMBIST_DATABASE__URL": servers.database_url, "CAMBIST_REDIS__URL": servers.redis_url}
    return {name: url for name, url in found.items() if url is not None}


# Each of the three runs apart from this process, and imports there what it needs: this one lives as long as the
# gateway, does next to nothing, and would hold four times the memory.


def _provision(settings: Settings, *, keystore: bool) -> dict[str, str]:
    from cambist.provision import provision  # noqa: PLC0415

    return provision(settings, system_ids(), keystore=keystore)


def _migrate(settings: Settings) -> None:
    import asyncpg  # noqa: PLC0415

    from cambist.db.migrations import UnknownRevisionError, migrate  # noqa: PLC0415

    if settings.database.url is None:
        raise SettingsError("database.url must be set.")
    try:
        migrate(settings.database.url)
    except (OSError, asyncpg.PostgresError) as error:
        raise GivenUpError(f"The database cannot be brought up to date: {error}.") from None
    except UnknownRevisionError as error:
        raise GivenUpError(str(error)) from None


def _supervisor(settings: Settings, secret: Collection[str], servers: EmbeddedServers) -> Supervisor:
    without_passphrase = {name: value for name, value in os.environ.items() if name not in secret}
    signs = dict(os.environ)
    children = [Child("signer", [*PROGRAM, "signer", "run"], signs)] if settings.signer.separate else []
    children += [
        Child("web", [*PROGRAM, "web"], without_passphrase),
        Child("worker", [*PROGRAM, "worker"], without_passphrase if settings.signer_socket is not None else signs),
    ]
    host, port = settings.web.host, settings.web.port
    readiness = _Readiness(ANYWHERE.get(host, host), port, settings.database.url or "")
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def keep_up() -> None:
        if not servers.running:
            log.error("embedded_server_ended", again="now")
            servers.start(lambda: supervisor.stopping)

    supervisor = Supervisor(children, is_ready=readiness.check, on_ready=lambda: echo(f"ready {url}"), keep_up=keep_up)
    return supervisor


def _has_keys(database_url: str) -> bool:
    import asyncio  # noqa: PLC0415

    import asyncpg  # noqa: PLC0415

    from cambist.db.direct import connect_once  # noqa: PLC0415

    async def ask() -> bool:
        try:
            connection = await connect_once(database_url, timeout_s=HEALTH_TIMEOUT_S)
        except (OSError, asyncpg.PostgresError):
            return False
        try:
            # Gas stations come last, once all keys are there.
            found: bool = await connection.fetchval(
                "SELECT EXISTS (SELECT FROM account_keys WHERE account_index > 0)"
                " AND EXISTS (SELECT FROM addresses WHERE purpose = 'gas')"
            )
        finally:
            await connection.close()
        return found

    return asyncio.run(ask())


class _Readiness:
    """Asks whether customers could be served: web answers, and the worker has derived keys and gas stations."""

    def __init__(self, host: str, port: int, database_url: str) -> None:
        self._host = host
        self._port = port
        self._database_url = database_url
        self._give_up_at: float | None = None
        self._ask_at = 0.0

    def check(self) -> bool:
        if not self._web_is_ready():
            return False
        now = time.monotonic()
        self._give_up_at = self._give_up_at or now + KEYS_TIMEOUT_S
        if now < self._ask_at:
            return False
        # Each time it is a process, which takes from those that everybody waits for.
        self._ask_at = now + KEYS_PAUSE_S
        if self._has_keys():
            return True
        if now > self._give_up_at:
            log.warning("ready_without_account_keys", waited_s=KEYS_TIMEOUT_S)
            return True
        return False

    def _has_keys(self) -> bool:
        try:
            return apart(lambda: _has_keys(self._database_url))
        except OSError as error:
            log.warning("not_asked_for_keys", error=repr(error))
            return False

    def _web_is_ready(self) -> bool:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=HEALTH_TIMEOUT_S)
        try:
            connection.request("GET", "/health/ready")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
