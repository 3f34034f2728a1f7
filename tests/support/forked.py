"""Starts the gateway's processes by forking one that has imported the program: to import it takes half of a start.

What they do is the commands' own code; only ``exec`` is left out, of ``cambist`` and of those of its own commands that
it starts itself, and nothing is hashed that takes long by design (see ``forking.py``). So a forked one has another
command line and the environment of whoever forked it in ``/proc``, and in its memory what that one's held.
Tests that look at these, or at how commands start each other, run the program itself.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.support.command import PRELOADED_FOR_GATEWAYS, context, pretend
from tests.support.forking import call_process, fork_commands


class ForkedProcess:
    """A ``cambist`` command that runs until it is stopped, with what ``asyncio.subprocess.Process`` has of use here."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], out: Path, log: Path, *, cwd: Path | None = None
    ) -> None:
        """Start it in a folder, this process' own by default; it adds what it prints to these two files."""
        # A fork server that runs already goes on without, and what is missing is imported by each process.
        context.set_forkserver_preload(PRELOADED_FOR_GATEWAYS)
        folder, streams = cwd or Path.cwd(), [Path(os.devnull), out, log]
        self._process = context.Process(target=_run, args=(tuple(arguments), folder, dict(environment), streams))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it ended meanwhile
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        while (code := self.returncode) is None:  # noqa: ASYNC110  another process ends
            await asyncio.sleep(0.05)
        return code


def _run(arguments: tuple[str, ...], cwd: Path, environment: dict[str, str], streams: list[Path]) -> None:
    fork_commands()
    call_process(arguments[0])
    pretend(("cambist", *arguments), cwd, environment, streams)
