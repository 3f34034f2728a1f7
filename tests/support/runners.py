"""A fork server for the processes that run tests: it has imported what they test.

Each of them would import it for itself otherwise, which takes three seconds of a core, and then build the web side's
routes and their description, which takes two more. What pytest rewrites, tests and its plugins, is left to them.
"""

from __future__ import annotations

import atexit
import gc
import os
import pkgutil
import select
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing.util import spawnv_passfds
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from _pytest.config import apply_warning_filters

STUB = Path(__file__).with_name("runner_stub.py")
PACKAGES = ("cambist.cli", "cambist_web.api")
"""Of these each module is imported."""
MODULES = (
    "aiohttp.web",
    "alembic.context",
    "bip_utils",
    "cambist.db.migrations",
    "cambist.testing.conformance",
    "cambist.testing.databases",
    "cambist_across_node",
    "cambist_bridge_across.plugin",
    "cambist_evm.plugin",
    "cambist_evm.testing",
    "cambist_oneinch_node",
    "cambist_prices.plugin",
    "cambist_swap_1inch.plugin",
    "cambist_tasks.worker",
    "cambist_tron.plugin",
    "cambist_tron_node",
    "cambist_web.server",
    "cambist_web.worker",
    "litestar.testing",
    "PIL.Image",
    "playwright.async_api",
    "stripe",
    "tests.support.gateway",
    "tests.support.web",
    "tronpy.keys",
    "unittest.mock",
    "web3",
    "zxcvbn",
)


def serve_runners(filters: Sequence[str]) -> str:
    """Start it for as long as this process runs; return the command that xdist is to start in place of Python.

    What it imports is held to these filters of warnings.
    """
    path = Path(tempfile.mkdtemp(prefix="cambist-runners-"), "socket")
    atexit.register(shutil.rmtree, path.parent, ignore_errors=True)
    ended, _ = os.pipe()  # whose other end is closed when this process ends
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        numbers = [ended, listening.fileno()]
        command = [sys.executable, "-m", __name__, *map(str, numbers), *filters]
        spawnv_passfds(os.fsencode(sys.executable), command, numbers)
    os.close(ended)
    return shlex.join([sys.executable, "-I", "-S", str(STUB), str(path)])


def main(ended: int, number: int, filters: Sequence[str]) -> None:
    """Import what is tested, and fork a process for each stub, until whoever started this one has ended."""
    from cambist_chainkit.imports import limit_kept  # noqa: PLC0415  whoever starts this one need not

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # nothing of it is garbage
    with limit_kept(), warnings.catch_warnings():
        apply_warning_filters(filters, [])
        for module in MODULES:
            import_module(module)
        for package in PACKAGES:
            for found in pkgutil.iter_modules(import_module(package).__path__):
                if not found.name.startswith("__"):
                    import_module(f"{package}.{found.name}")
        from tests.support.web import described_codes, shown_app  # noqa: PLC0415  they are imported by now

        with suppress(Exception):  # what keeps them from being built is told by the tests that need them
            described_codes(shown_app())
    gc.freeze()
    with socket.socket(fileno=number) as listening:
        while ended not in select.select([ended, listening], [], [])[0]:
            stub, _ = listening.accept()
            with stub:
                _, streams, _, _ = socket.recv_fds(stub, 1, 3)
                if streams and os.fork() == 0:  # a stub that was killed before it sent any has nobody to wait for it
                    os.close(ended)
                    listening.close()
                    _be_python(streams)
                for stream in streams:
                    os.close(stream)
        # Also where whoever started this one was killed.
        shutil.rmtree(Path(listening.getsockname()).parent, ignore_errors=True)


def _be_python(streams: list[int]) -> NoReturn:
    """Do what ``python -c`` would do with the line that xdist gives it. Its stub ends with it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.argv = ["-c"]
    sys.modules["__main__"] = program = ModuleType("__main__")  # processes that this one starts would import ours
    with suppress(SystemExit):
        exec(eval(sys.stdin.readline()), vars(program))  # noqa: S307, S102  as xdist has it
    threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter does when it ends, and so is the next
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
