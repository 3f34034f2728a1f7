"""A worker of the web process, and the server that started it."""

from __future__ import annotations

import asyncio
import gc
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from structlog.testing import capture_logs

from cambist_web.start import worker as started_worker
from tests.support.checkout import serving
from tests.support.web import lent_app

pytestmark = pytest.mark.slow

PROGRAM = """
import multiprocessing, os, signal

heard = []

def serve(deaf):
    from cambist_web.stop_signals import stop_with_the_server

    def hear(*_):
        heard.append(1)
        if len(heard) > deaf:
            os._exit(0)

    signal.signal(signal.SIGTERM, hear)
    stop_with_the_server()
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


STOPPING = """
import multiprocessing, sys, threading, time

from cambist_web import stop_signals

stop_signals.STOP_TIMEOUT_S = 0.1

def serve(waits):
    if waits:
        threading.Thread(target=time.sleep, args=[600]).start()  # what does not end
    stop_signals.stop_in_time()
    if not waits:
        time.sleep(1)
        sys.exit(3)

if __name__ == "__main__":
    if sys.argv[1] == "alone":
        serve(True)
    else:
        worker = multiprocessing.get_context("spawn").Process(target=serve, args=[False])
        worker.start()
        worker.join()
        sys.exit(worker.exitcode)
"""


@pytest.mark.parametrize("which, code", [("alone", 0), ("one of several", 3)])
def test_what_does_not_end_is_cut_off_by_the_process_itself_where_no_server_does_so(tmp_path, which, code):
    program = tmp_path / "program.py"
    program.write_text(STOPPING)
    done = subprocess.run([sys.executable, program, which], check=False, timeout=60)
    assert done.returncode == code


ASKED = b"POST /api/auth/logout HTTP/1.1\r\nHost: gateway.example\r\nContent-Type: application/json\r\n"
NEXT = b"GET /health/live HTTP/1.1\r\nHost: gateway.example\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "lengths, body, statuses",
    [
        # The chunks decide and not the length, which is never reached; what follows them is not even looked at.
        (b"Content-Length: 100\r\nTransfer-Encoding: chunked\r\n\r\n", b"0\r\n\r\n" + NEXT, [b"200"]),
        # What is inside the body is no request.
        (
            b"Transfer-Encoding: chunked\r\n\r\n",
            b"%x\r\n" % len(NEXT) + NEXT + b"\r\n0\r\n\r\n" + NEXT,
            [b"200", b"200"],
        ),
        (b"Content-Length: %d\r\n\r\n" % len(NEXT), NEXT + NEXT, [b"200", b"200"]),
        # Whatever two readers could read differently is refused, and the connection ends.
        (b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n", NEXT, [b"400"]),
        (b"Content-Length: +0\r\n\r\n", NEXT, [b"400"]),
        (b"Transfer-Encoding: chunked, identity\r\n\r\n", b"0\r\n\r\n" + NEXT, [b"400"]),
        (b"Content-Length : 0\r\n\r\n", NEXT, [b"400"]),
    ],
)
async def test_a_message_ends_where_the_standard_says(gateway, lengths, body, statuses):
    """What a proxy takes for a body, nobody behind it may take for a request."""
    async with lent_app(gateway) as app, serving(app) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(ASKED + lengths + body)
        answer = await asyncio.wait_for(reader.read(), 20)
        writer.close()
    assert re.findall(rb"HTTP/1\.1 (\d{3})", answer) == statuses


def test_a_worker_collects_garbage_once_it_is_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gc.disable()
    try:
        started_worker()
        assert gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "lengths, body, goes_away",
    [
        (b"Content-Length: 80\r\n\r\n", b'{"email', True),
        (b"Content-Length: 80\r\n\r\n", b"", True),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"50\r\n{", True),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"2\r\n{}XX0\r\n\r\n", False),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"FFFFFFFFFFFFFFFFF\r\n{}", False),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"-2\r\n{}\r\n0\r\n\r\n", False),
    ],
)
async def test_a_body_that_is_cut_is_no_mistake_of_ours(gateway, lengths, body, goes_away):
    """It was answered with 500 and logged with a traceback: anybody could fill the log, and page who is on duty."""
    with capture_logs() as lines:
        async with lent_app(gateway) as app, serving(app) as url:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            writer.write(ASKED.replace(b"logout", b"login") + lengths + body)
            if goes_away:
                writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 20)
            writer.close()
    if not goes_away:
        assert re.findall(rb"HTTP/1\.1 (\d{3})", answer) == [b"400"]
        assert b'"code":"BAD_REQUEST"' in answer
    assert [line["event"] for line in lines if line["log_level"] == "error"] == []
