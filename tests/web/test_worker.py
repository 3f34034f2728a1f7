"""A worker of the web process, and the server that started it."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

PROGRAM = """
import multiprocessing, os, signal, threading
from cambist_web.worker import _stop_with_the_server

heard = []

def serve(deaf):
    def hear(*_):
        heard.append(1)
        if len(heard) > deaf:
            os._exit(0)

    signal.signal(signal.SIGTERM, hear)
    _stop_with_the_server()
    print(os.getpid(), flush=True)
    while True:
        signal.pause()

if __name__ == "__main__":
    worker = multiprocessing.get_context("spawn").Process(target=serve, args=[{deaf}])
    worker.start()
    worker.join()
"""


@pytest.mark.parametrize("deaf", [0, 1])
async def test_a_worker_whose_server_was_killed_ends_though_it_missed_a_signal(tmp_path: Path, deaf: int) -> None:
    """While Granian starts a worker, it loses signals; the worker would go on taking requests from the port."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("{deaf}", str(deaf)))
    server = await asyncio.create_subprocess_exec(sys.executable, program, stdout=asyncio.subprocess.PIPE)
    assert server.stdout is not None
    worker = psutil.Process(int(await server.stdout.readline()))
    server.kill()
    try:
        await asyncio.to_thread(worker.wait, 20)
    finally:
        with suppress(psutil.NoSuchProcess):
            worker.kill()
