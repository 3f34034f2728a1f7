"""Sides of a benchmark that need a process of their own: for a core, or for a memory of their own.

``python _child.py DESCRIPTOR`` is that process. It imports what its object needs and not what its parent has imported,
which takes longer than a tiny benchmark.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import traceback
from importlib import import_module
from inspect import isawaitable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Self

import uvloop

STOP_TIMEOUT_S = 20.0


class Child:
    """A process that holds one object, made there from ``module:name``, and calls its methods when asked.

    The object is an async context manager, and lives on a loop of its own.
    """

    def __init__(self, target: str, *args: object) -> None:
        """Start it, and wait until the object is there."""
        self._connection, theirs = Pipe()
        descriptor = theirs.fileno()
        self._process = subprocess.Popen([sys.executable, __file__, str(descriptor)], pass_fds=[descriptor])
        theirs.close()
        self._connection.send((target, args))
        self._receive()

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
        self._connection.close()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


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
