"""Forks the commands of ours that a process starts, in place of starting Python and importing the program for each."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from multiprocessing import process, resource_tracker
from pathlib import Path
from typing import Any

from cambist.cli import main
from cambist.cli.supervisor import PROGRAM

NAME_BYTES_MAX = 15


def fork_commands() -> None:
    """Have this process fork what it starts of ours, as those do that it forks."""
    subprocess.Popen = _Forking  # type: ignore[misc]  # for this process and its copies alone


def hash_in_no_time() -> None:
    """Have this process hash passwords and seal its keystores in no time, which takes it a fifth of a second by design.

    Whoever opens such a keystore does that in no time, too.
    """
    from cambist.signer import keystore  # noqa: PLC0415  what it imports is large, and few processes make any

    import_module("tests.support.quick_passwords.sitecustomize")
    keystore.KDF = keystore.Kdf(time_cost=1, memory_kib=64, parallelism=1)


def call_process(name: str) -> None:
    """Have this process be called so in the list of processes."""
    Path("/proc/self/comm").write_text(name[:NAME_BYTES_MAX])


class _Forking(subprocess.Popen[bytes]):
    """Any process; one that is given a command of ours to run runs it in a copy of this one."""

    def _execute_child(self, args: Sequence[str], *others: Any) -> None:
        if tuple(args[: len(PROGRAM)]) != PROGRAM:
            super()._execute_child(args, *others)  # type: ignore[misc]
            return
        # After ``executable``, ``preexec_fn`` and ``close_fds``, and behind what only other systems have:
        kept: Collection[int] = others[3]
        environment: Mapping[str, str] = others[5]
        ends: Sequence[int] = others[9:15]
        self.pid = os.fork()
        if self.pid == 0:
            _become(args[len(PROGRAM) :], environment, kept, [ends[0], ends[3], ends[5]])
        self._child_created = True
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]


def _become(
    arguments: Sequence[str], environment: Mapping[str, str], kept: Collection[int], streams: Sequence[int]
) -> None:
    """Do in this copy what ``python -m cambist.cli`` would do, as the leader of a session of its own; never return."""
    code = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.default_int_handler)
        for number, stream in enumerate(streams):
            if stream >= 0:
                os.dup2(stream, number)
        held = sorted({0, 1, 2, *kept, resource_tracker.getfd()})
        for first, last in zip(held, [*held[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
            os.closerange(first + 1, last)
        os.environ.clear()
        os.environ.update(environment)
        process._parent_process = None  # type: ignore[attr-defined]  # which a program has that multiprocessing starts
        asyncio._set_running_loop(None)  # that of whoever forked it
        sys.argv = ["cambist", *arguments]
        call_process(arguments[0])
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
