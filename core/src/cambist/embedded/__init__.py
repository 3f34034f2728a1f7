"""Starts a real PostgreSQL and a real Valkey from their wheels, for one machine without servers of its own."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from cambist.ports import RandomBytes

from .postgres import EmbeddedPostgres
from .processes import EmbeddedError, renames_root
from .valkey import EmbeddedValkey

__all__ = ["EmbeddedError", "EmbeddedServers", "InUseError", "own_data_dir", "reached_database"]


class InUseError(EmbeddedError):
    """Another process of ours owns the data directory."""


@contextmanager
def own_data_dir(data_dir: Path) -> Iterator[Path]:
    """Make the data directory if need be, and keep every other process from owning it at the same time.

    The lock goes with the process, however it ends. Yields the absolute path. Raises EmbeddedError.
    """
    data_dir = data_dir.expanduser().resolve()
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        # Where the servers run under another account, it must pass through to folders of its own.
        data_dir.chmod(0o711 if os.geteuid() == 0 and not renames_root() else 0o700)
        descriptor = os.open(data_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        msg = f"The data directory {data_dir} cannot be used: {error.strerror}."
        raise EmbeddedError(msg) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
            msg = f"The data directory {data_dir} is in use by another cambist process (pid {owner})."
            raise InUseError(msg) from error
        with _told(data_dir):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield data_dir
    finally:
        os.close(descriptor)


@contextmanager
def reached_database(data_dir: Path, random_bytes: RandomBytes) -> Iterator[str | None]:
    """Yield the address of the data directory's database, or None where it has none.

    One that runs is used as it runs; else it is started for as long as the context lasts. Raises EmbeddedError.
    """
    database = EmbeddedPostgres(data_dir.expanduser().resolve(), random_bytes)
    if not database.exists:
        yield None
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(own_data_dir(data_dir))
        except InUseError:
            if not database.find():
                raise
        else:
            with _told(data_dir):
                database.start()
            stack.callback(database.stop)
        with _told(data_dir):
            url = database.url
        yield url


@contextmanager
def _told(data_dir: Path) -> Iterator[None]:
    """Say which file stands in the way of a server: a disk is full, say, or a part of what it has was removed."""
    try:
        yield
    except OSError as error:
        where = error.filename or data_dir
        msg = f"The embedded servers cannot be started: {where}: {error.strerror or error}."
        raise EmbeddedError(msg) from error


class EmbeddedServers:
    """The servers that a process runs because the operator named none. Needs the data directory's ownership."""

    def __init__(  # noqa: PLR0913  two servers, and what tests set differently
        self,
        data_dir: Path,
        random_bytes: RandomBytes,
        *,
        postgres: bool = True,
        valkey: bool = True,
        postgres_settings: Mapping[str, str] | None = None,
        valkey_databases: int = 16,
    ) -> None:
        self._data_dir = data_dir
        self._postgres = EmbeddedPostgres(data_dir, random_bytes, postgres_settings) if postgres else None
        self._valkey = EmbeddedValkey(data_dir, random_bytes, databases=valkey_databases) if valkey else None

    @property
    def database_url(self) -> str | None:
        """The address of the embedded PostgreSQL, or None where none was wanted."""
        return self._postgres.url if self._postgres else None

    @property
    def redis_url(self) -> str | None:
        """The address of the embedded Valkey, or None where none was wanted."""
        return self._valkey.url if self._valkey else None

    def start(self, stopping: Callable[[], bool] = lambda: False) -> None:
        """Start what is wanted and not running, on the same addresses as before. Raises EmbeddedError.

        When ``stopping`` says so, a database that is still recovering from a crash is not waited for.
        """
        try:
            for server in (self._valkey, self._postgres):
                if server is not None and not server.running:
                    with _told(self._data_dir):
                        if server is self._postgres:
                            server.start(stopping)
                        else:
                            server.start()
                        _ = server.url  # which is asked for later, and has the password's file read
        except BaseException:
            self.stop()
            raise

    @property
    def running(self) -> bool:
        return all(server.running for server in (self._postgres, self._valkey) if server is not None)

    def stop(self) -> None:
        """Stop everything, the database last."""
        for server in (self._valkey, self._postgres):
            if server is not None:
                server.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
