"""Starts the gateway's processes by forking one that has imported the program: to import it takes half of a start.

What they do is the commands' own code; only ``exec`` is left out, of ``cambist`` and of the processes that it starts
itself, and passwords are hashed in no time (see ``quick_passwords``). So a forked process has another command line and
the environment of whoever forked it in ``/proc``, and in its memory what that one's held. Tests that look at these, or
at how commands start each other, run the program itself.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing import process, resource_tracker
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cambist.cli import main, supervisor
from tests.support.command import PRELOADED_FOR_GATEWAYS, context, pretend

NAME_BYTES_MAX = 15


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
    # What the supervisor starts is forked, too, and nothing else.
    forking: Any = SimpleNamespace(Popen=_Forked, TimeoutExpired=subprocess.TimeoutExpired)
    supervisor.subprocess = forking
    import_module("tests.support.quick_passwords.sitecustomize")
    _call(arguments[0])
    pretend(("cambist", *arguments), cwd, environment, streams)


def _call(name: str) -> None:
    """Have this process be called so in the list of processes."""
    Path("/proc/self/comm").write_text(name[:NAME_BYTES_MAX])


class _Forked(subprocess.Popen[bytes]):
    """A process that is given a command of ours to run, and runs it in a copy of this one."""

    def _execute_child(self, args: Sequence[str], *others: Any) -> None:
        # executable, preexec_fn, close_fds, pass_fds, cwd, env: what follows is as the supervisor asks for
        kept: Collection[int] = others[3]
        environment: Mapping[str, str] = others[5]
        self.pid = os.fork()
        if self.pid == 0:
            _become(args, environment, kept)
        self._child_created = True


def _become(args: Sequence[str], environment: Mapping[str, str], kept: Collection[int]) -> None:
    """Do in this copy what ``python -m cambist.cli`` would do, as the leader of a session of its own; never return."""
    code = 1
    try:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.default_int_handler)
        held = sorted({0, 1, 2, *kept, resource_tracker.getfd()})
        for first, last in zip(held, [*held[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
            os.closerange(first + 1, last)
        os.environ.clear()
        os.environ.update(environment)
        process._parent_process = None  # type: ignore[attr-defined]  # which a program has that multiprocessing starts
        sys.argv = ["cambist", *args[3:]]  # after: python -m cambist.cli
        _call(args[3])
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except BaseException:  # noqa: BLE001  as the interpreter does: it is told, and the process ends with 1
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter does when it ends
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
