"""Runs ``cambist`` commands, and scripts, each in a process of its own that need not import the program anew.

The processes are forked from one that has imported it, as ``multiprocessing`` does with its fork server, and hash in no
time (see ``forking.py``). Those that go on until they are stopped are forked in ``forked.py``. The workers of a run
share one fork server.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

from cambist.cli import COMMANDS, main
from cambist.settings_file import CONFIG_VARIABLE
from tests.support.forking import fork_commands, hash_in_no_time

TIMEOUT_S = 180
PLUGINS = ("cambist_evm.plugin", "cambist_prices", "cambist_tron.plugin")
PRELOADED = [__name__, *(f"cambist.cli.{name}" for name in COMMANDS), *PLUGINS]
PRELOADED_FOR_GATEWAYS = [*PRELOADED, "tests.support.preloaded"]
ADDRESS = "CAMBIST_TEST_FORK_SERVER"

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(PRELOADED)


def share_fork_server() -> None:
    """Start the fork server, also for the pytest processes that this one starts.

    To import the program for it keeps a core busy for seconds.
    """
    context.set_forkserver_preload(PRELOADED_FOR_GATEWAYS)
    _server.ensure_running()
    os.environ[ADDRESS] = _server._forkserver_address


def _use_shared(address: str) -> None:
    _server._forkserver_address = address
    # In place of the pipe by which a fork server sees that the process that started it has ended: it is not this one.
    _server._forkserver_alive_fd = os.open(os.devnull, os.O_RDONLY)
    _server.ensure_running = lambda: None


_server: Any = forkserver._forkserver  # type: ignore[attr-defined]
if ADDRESS in os.environ:
    _use_shared(os.environ[ADDRESS])


def leave_no_config(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a command that runs in this process leave no ``--config`` to the tests that follow.

    It leaves it to the processes that it starts. To delete what is not there would bring nothing back.
    """
    monkeypatch.setenv(CONFIG_VARIABLE, "")
    monkeypatch.delenv(CONFIG_VARIABLE)


def run_command(
    *arguments: str, cwd: Path, stdin: str = "", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``cambist`` with these arguments to its end, at no terminal, in the environment of this process by default.

    Raises TimeoutError after three minutes.
    """
    return _run(pretend, ("cambist", *arguments), cwd, stdin, environment or os.environ)


def run_script(
    script: Path, environment: Mapping[str, str], *arguments: str, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a Python script to its end, as ``python SCRIPT ARGUMENTS`` would, in this process' folder by default.

    Commands of ours that it starts are forked as well. Raises TimeoutError after three minutes.
    """
    return _run(_script, (str(script), *arguments), cwd or Path.cwd(), "", environment)


def _run(
    target: Callable[..., None], argv: tuple[str, ...], cwd: Path, stdin: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("stdin", "stdout", "stderr")]
        streams[0].write_text(stdin)
        process = context.Process(target=target, args=(argv, cwd, dict(environment), streams))
        process.start()
        process.join(TIMEOUT_S)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutError(f"{' '.join(argv)}: {streams[2].read_text()[-4000:]}")
        code = process.exitcode
        process.close()
        return subprocess.CompletedProcess(argv, code, streams[1].read_text(), streams[2].read_text())


def pretend(argv: tuple[str, ...], cwd: Path, environment: dict[str, str], streams: list[Path]) -> None:
    """Be ``cambist`` with these arguments, in this folder and environment, with these files as its three streams."""
    _become(argv, cwd, environment, streams)
    main()


def _script(argv: tuple[str, ...], *where: Any) -> None:
    fork_commands()
    _become(argv, *where)
    sys.path.insert(0, str(Path(argv[0]).parent))
    runpy.run_path(argv[0], run_name="__main__")


def _become(argv: tuple[str, ...], cwd: Path, environment: dict[str, str], streams: list[Path]) -> None:
    hash_in_no_time()
    os.setsid()  # without a terminal, a passphrase is read from the standard input
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(streams):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - multiprocessing put /dev/null in its place
    sys.argv = list(argv)
