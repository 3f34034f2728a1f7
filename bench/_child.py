"""Sides of a benchmark that need a process of their own: for a core, or for a memory of their own.

``python _child.py DESCRIPTOR`` is that process. It imports what its object needs and not what its parent has imported.
To import takes longer than a tiny benchmark: at the tiny size the process is a copy of its parent.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import subprocess
import sys
import traceback
from collections.abc import Collection
from importlib import import_module
from inspect import isawaitable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, ClassVar, Self

import uvloop
from _harness import sized

STOP_TIMEOUT_S = 20.0
IS_COPY = sized(full=False, tiny=True)


class Child:
    """A process that holds one object, made there from ``module:name``, and calls its methods when asked.

    The object is an async context manager, and lives on a loop of its own.
    """

    _open: ClassVar[set[Connection]] = set()
    """This process's ends of the connections to its children, which a copy of it has, too."""

    def __init__(self, target: str, *args: object) -> None:
        """Start it, and wait until the object is there."""
        self._connection, theirs = Pipe()
        self._open.add(self._connection)
        self._process: _Copy | _Program = _Copy(theirs, self._open) if IS_COPY else _Program(theirs)
        theirs.close()
        try:
            self._connection.send((target, args))
            self._receive()
        except BaseException:
            self.end()
            raise

    def call(self, method: str, *args: object) -> Any:
        """Return what the method returns over there; an error over there is an error here."""
        self._connection.send((method, args))
        return self._receive()

    def _receive(self) -> Any:
        failed, answer = self._connection.recv()
        if failed:
            raise RuntimeError(answer)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> int | None:
        """Ask nothing more, wait until it has ended of that, and return its exit code."""
        self._connection.close()
        self._open.discard(self._connection)
        return self._process.end()


class _Program:
    """A process that has imported nothing yet."""

    def __init__(self, connection: Connection) -> None:
        descriptor = connection.fileno()
        self._process = subprocess.Popen([sys.executable, __file__, str(descriptor)], pass_fds=[descriptor])

    def end(self) -> int | None:
        """Wait until it has ended, or kill it; return its exit code."""
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


class _Copy:
    """A process that has imported all that this one has."""

    def __init__(self, connection: Connection, parents: Collection[Connection]) -> None:
        forking = multiprocessing.get_context("fork")
        self._process = forking.Process(target=_be_a_copy, args=(connection, parents), daemon=True)
        self._process.start()

    def end(self) -> int | None:
        """Wait until it has ended, or kill it; return its exit code."""
        self._process.join(STOP_TIMEOUT_S)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        return self._process.exitcode


def _be_a_copy(connection: Connection, parents: Collection[Connection]) -> None:
    # A child ends when nobody can ask it any more, and this one's elder brothers could be asked by it.
    for one in parents:
        one.close()
    uvloop.run(_serve(connection))


async def _serve(connection: Connection) -> None:
    loop = asyncio.get_running_loop()
    try:
        target, args = connection.recv()
        module, _, name = target.partition(":")
        async with getattr(import_module(module), name)(*args) as instance:
            connection.send((False, None))
            while True:
                method, arguments = await loop.run_in_executor(None, connection.recv)
                answer = getattr(instance, method)(*arguments)
                connection.send((False, await answer if isawaitable(answer) else answer))
    except EOFError:
        return
    except Exception:  # noqa: BLE001  sent to the parent, which raises it
        connection.send((True, traceback.format_exc()))


if __name__ == "__main__":
    uvloop.run(_serve(Connection(int(sys.argv[1]))))
