"""Running a server of our own: as whom, with which log, how it is stopped, and what a killed owner left behind."""

from __future__ import annotations

import os
import pwd
import re
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

import psutil
import structlog
from msgspec import Struct

log = structlog.get_logger(__name__)

SOCKET_PATH_BYTES_MAX = 100  # the kernel takes 107, macOS 103
LOG_BYTES_MAX = 10 * 2**20
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._/+-]+", re.ASCII)


class EmbeddedError(Exception):
    """An embedded server cannot run; the message says why, in a sentence for the operator."""


class Account(Struct, frozen=True):
    """The system account that a server runs under when we are root, which PostgreSQL refuses to be."""

    uid: int
    gid: int


# Root under another name: PostgreSQL sees no root, and the kernel still sees the owner of every folder above.
_RENAMED_ROOT = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")


def wheel_folder(package: str) -> Path:
    """Return where a wheel that brings a server is installed, without running any code of it."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        msg = f"The package {package}, which brings an embedded server, is not installed."
        raise EmbeddedError(msg)
    return Path(spec.submodule_search_locations[0])


@cache
def renames_root() -> bool:
    """Whether the kernel lets root run a program in a user namespace; containers often may not."""
    try:
        return subprocess.run([*_RENAMED_ROOT, "true"], capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def server_account(owned: Path) -> Account | None:
    """Return whom to run as: nobody else unless we are root, and then always the same account for one folder."""
    if os.geteuid() != 0:
        return None
    if owned.exists():
        status = owned.stat()
        if status.st_uid != 0:
            return Account(status.st_uid, status.st_gid)
        if not renames_root():
            msg = f"{owned} belongs to root, as whom servers cannot run here: give it to a user of its own (chown -R)."
            raise EmbeddedError(msg)
    if renames_root():
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    msg = "PostgreSQL does not run as root, and this system has neither a user 'postgres' nor a user 'nobody'."
    raise EmbeddedError(msg)


def make_folder(path: Path, account: Account | None) -> None:
    """Make the folder if need be, readable for nobody but the account it belongs to."""
    path.mkdir(mode=0o700, exist_ok=True)
    path.chmod(0o700)
    if account is not None:
        os.chown(path, account.uid, account.gid)


def make_reachable(path: Path, account: Account | None) -> None:
    """Let the account pass through the folders above the path, and say so where that changes anything."""
    if account is None:
        return
    for folder in path.resolve().parents:
        mode = stat.S_IMODE(folder.stat().st_mode)
        if not mode & stat.S_IXOTH:
            folder.chmod(mode | stat.S_IXOTH)
            log.warning("folder_made_passable", folder=str(folder), reason="servers do not run as root")


def spawn(
    argv: Sequence[str | Path], *, account: Account | None, log_file: Path, folder: Path, config: bytes | None = None
) -> subprocess.Popen[bytes]:
    """Start a server in a session of its own, so that Ctrl-C in a terminal reaches its owner first.

    ``config`` is what it reads on its standard input.
    """
    if log_file.exists() and log_file.stat().st_size > LOG_BYTES_MAX:
        log_file.replace(log_file.with_suffix(".log.1"))
    descriptor = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        process = subprocess.Popen(
            [*_named(account), *argv],
            stdin=subprocess.DEVNULL if config is None else subprocess.PIPE,
            stdout=descriptor,
            stderr=descriptor,
            cwd=folder,
            env=server_environment(),
            start_new_session=True,
            **_as_account(account),
        )
    finally:
        os.close(descriptor)
    if process.stdin is not None:
        process.stdin.write(config or b"")
        process.stdin.close()
    return process


def run(argv: Sequence[str | Path], *, account: Account | None, folder: Path, stdin: bytes = b"") -> None:
    """Run a tool to its end. Raises EmbeddedError with its last words when it fails."""
    done = subprocess.run(
        [*_named(account), *argv],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=server_environment(),
        timeout=120,
        check=False,
        **_as_account(account),
    )
    if done.returncode != 0:
        words = done.stdout.decode(errors="replace").strip()[-1000:]
        msg = f"{Path(argv[0]).name} failed with exit code {done.returncode}: {words}"
        raise EmbeddedError(msg)


def server_environment() -> dict[str, str]:
    """Return the little that a server inherits: nothing of ours, so no secrets."""
    kept = ("PATH", "TMPDIR", "LD_LIBRARY_PATH")
    return {"LC_ALL": "C", "TZ": "UTC"} | {name: os.environ[name] for name in kept if name in os.environ}


def wait_until(  # noqa: PLR0913  each by name
    ready: Callable[[], bool],
    process: subprocess.Popen[bytes],
    *,
    log_file: Path,
    timeout_s: float,
    starting: Callable[[], bool] = lambda: False,
    stopping: Callable[[], bool] = lambda: False,
) -> None:
    """Wait for a server to be ready. Raises EmbeddedError with the end of its log when it is not in time.

    For as long as it says that it is ``starting`` it is waited for, which is told each time that the timeout is over:
    after a crash it may have much to recover. When we are ``stopping`` ourselves, nobody waits for it any more.
    """
    began = time.monotonic()  # a server's start is real time, whatever clock the gateway runs on
    deadline = began + timeout_s
    while not ready():
        now = time.monotonic()
        if process.poll() is None and now > deadline and starting():
            deadline = now + timeout_s
            log.warning("server_still_starting", server=log_file.stem, waited_s=round(now - began), log=str(log_file))
        if process.poll() is not None or now > deadline:
            reason = "did not become ready" if process.returncode is None else f"ended with {process.returncode}"
            stop(process, (signal.SIGKILL,), timeout_s=5)
            words = log_file.read_text(errors="replace")[-1000:].strip()
            msg = f"{log_file.stem} {reason}. The end of {log_file}: {words}"
            raise EmbeddedError(msg)
        if stopping():
            return
        time.sleep(0.01)


def stop(process: subprocess.Popen[bytes], signals: Sequence[signal.Signals], *, timeout_s: float) -> None:
    """Stop a server, more rudely with each signal."""
    for number in signals:
        if process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            continue


def stop_orphan(pid: int, name: str, folder: Path, signals: Sequence[signal.Signals], *, timeout_s: float) -> None:
    """Stop the server that an owner left behind when it was killed, if the process is really that server."""
    try:
        process = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return
    _end([process], name, folder, signals, timeout_s)


def end_children(name: str, folder: Path, signals: Sequence[signal.Signals], *, timeout_s: float) -> None:
    """End what a server in this folder left behind when it was killed: children that finish first what they are at.

    Until then they hold the memory that they share, without which no other server begins. The server itself must be
    gone.
    """
    _end(list(psutil.process_iter()), name, folder, signals, timeout_s)


def _end(
    processes: Sequence[psutil.Process], name: str, folder: Path, signals: Sequence[signal.Signals], timeout_s: float
) -> None:
    """End those of the processes that are really that server's, more rudely with each signal."""
    left = [process for process in processes if _is_in(folder, name, process)]
    for process in left:
        log.warning("orphan_stopped", server=name, pid=process.pid)
    for number in signals:
        for process in left:
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                process.send_signal(number)
        deadline = time.monotonic() + timeout_s
        while left := [process for process in left if _is_in(folder, name, process)]:
            if time.monotonic() > deadline:
                break
            time.sleep(0.01)


def _is_in(folder: Path, name: str, process: psutil.Process) -> bool:
    """Say whether a process of this name works in this folder; one that has ended and waits to be noticed does not."""
    try:
        return process.name() == name and Path(process.cwd()) == folder.resolve()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def socket_fits(path: Path) -> bool:
    """Whether a Unix socket can have this path, and a URL can carry it as it is."""
    text = str(path)
    return len(os.fsencode(text)) <= SOCKET_PATH_BYTES_MAX and _PLAIN_PATH.fullmatch(text) is not None


def free_port() -> int:
    """Return a loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _named(account: Account | None) -> Sequence[str]:
    return _RENAMED_ROOT if account is None and os.geteuid() == 0 else ()


class _Identity(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def _as_account(account: Account | None) -> _Identity:
    return {} if account is None else {"user": account.uid, "group": account.gid, "extra_groups": []}
