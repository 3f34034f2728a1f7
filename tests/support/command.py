"""Runs ``cambist`` commands, each in a process of its own that need not import the program anew.

The processes are forked from one that has imported it, as ``multiprocessing`` does with its fork server. Those that
go on until they are stopped are forked in ``forked.py``.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from cambist.cli import COMMANDS, main
from cambist.settings_file import CONFIG_VARIABLE

TIMEOUT_S = 180
PLUGINS = ("cambist_evm.plugin", "cambist_prices", "cambist_tron.plugin")
PRELOADED = [__name__, *(f"cambist.cli.{name}" for name in COMMANDS), *PLUGINS]

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(PRELOADED)


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
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("stdin", "stdout", "stderr")]
        streams[0].write_text(stdin)
        process = context.Process(target=pretend, args=(arguments, cwd, dict(environment or os.environ), streams))
        process.start()
        process.join(TIMEOUT_S)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutError(f"cambist {' '.join(arguments)}: {streams[2].read_text()[-4000:]}")
        code = process.exitcode
        process.close()
        return subprocess.CompletedProcess(arguments, code, streams[1].read_text(), streams[2].read_text())


def pretend(arguments: tuple[str, ...], cwd: Path, environment: dict[str, str], streams: list[Path]) -> None:
    """Be ``cambist`` with these arguments, in this folder and environment, with these files as its three streams."""
    os.setsid()  # without a terminal, a passphrase is read from the standard input
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(streams):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - multiprocessing put /dev/null in its place
    sys.argv = ["cambist", *arguments]
    main()
