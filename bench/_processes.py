"""Servers for a benchmark, and sides that need a process of their own: for a core, or for a memory of their own."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import isawaitable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

import uvloop

from cambist.db.migrations import migrate
from cambist.embedded import EmbeddedServers, own_data_dir

STOP_TIMEOUT_S = 20.0


@contextmanager
def servers() -> Iterator[EmbeddedServers]:
    """Run PostgreSQL and Valkey as the gateway embeds them: every commit reaches the disk."""
    with tempfile.TemporaryDirectory(prefix="cambist-bench-", ignore_cleanup_errors=True) as folder:
        # As root the servers run under another account, which must get through.
        Path(folder).chmod(0o711)
        with own_data_dir(Path(folder) / "data") as data_dir, EmbeddedServers(data_dir, os.urandom) as running:
            yield running


@contextmanager
def migrated_servers() -> Iterator[tuple[str, str]]:
    """Run both with the gateway's tables in place; yield their addresses."""
    with servers() as running:
        if running.database_url is None or running.redis_url is None:
            raise AssertionError("both were started")
        migrate(running.database_url)
        yield running.database_url, running.redis_url


class Child:
    """A process that holds one object, made there from ``module:name``, and calls its methods when asked.

    The object is an async context manager, and lives on a loop of its own.
    """

    def __init__(self, target: str, *args: object) -> None:
        """Start it, and wait until the object is there."""
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_hold, args=(theirs, target, args), daemon=False)
        self._process.start()
        theirs.close()
        self._receive()

    def call(self, method: str, *args: object) -> Any:
        """Return what the method returns over there; an error over there is an error here."""
        self.start(method, *args)
        return self._receive()

    def start(self, method: str, *args: object) -> None:
        """Ask without waiting; ``finish`` gives the answer."""
        self._connection.send((method, args))

    def finish(self) -> Any:
        """Return the answer to what was started."""
        return self._receive()

    def _receive(self) -> Any:
        failed, answer = self._connection.recv()
        if failed:
            raise RuntimeError(answer)
        return answer

    def __enter__(self) -> Self:
        """Go on with the process that was started."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let the object close, and the process end."""
        self._connection.close()
        self._process.join(STOP_TIMEOUT_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _hold(connection: Connection, target: str, args: tuple[object, ...]) -> None:
    uvloop.run(_serve(connection, target, args))


async def _serve(connection: Connection, target: str, args: tuple[object, ...]) -> None:
    module, _, name = target.partition(":")
    loop = asyncio.get_running_loop()
    try:
        async with getattr(import_module(module), name)(*args) as held:
            connection.send((False, None))
            while True:
                method, arguments = await loop.run_in_executor(None, connection.recv)
                answer = getattr(held, method)(*arguments)
                connection.send((False, await answer if isawaitable(answer) else answer))
    except EOFError:
        return
    except Exception:  # noqa: BLE001  told to the parent, who raises it
        connection.send((True, traceback.format_exc()))
