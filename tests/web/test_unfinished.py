"""Requests that never end, against the real server and over raw sockets: none holds a connection for long."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from contextlib import asynccontextmanager

import pytest

from cambist.embedded.processes import free_port
from tests.support.forked import ForkedProcess

TIMEOUT_S = 2
LIMIT = 4
HOST = "Host: gateway\r\n"
JSON = "Content-Type: application/json\r\n"
LOGIN = f"POST /api/auth/login HTTP/1.1\r\n{HOST}{JSON}"


@pytest.fixture(scope="module")
def port(databases, tmp_path_factory):
    """Run `cambist web`, with short deadlines; give its port."""
    port, folder = free_port(), tmp_path_factory.mktemp("web")
    with databases.fresh() as database_url:
        settings = {
            "DATABASE__URL": database_url,
            "REDIS__URL": databases.redis_url,
            "DATA_DIR": str(folder),
            "WEB__PORT": str(port),
            "WEB__HEADER_TIMEOUT_S": str(TIMEOUT_S),
            "WEB__BODY_TIMEOUT_S": str(TIMEOUT_S),
            "WEB__UNFINISHED_PER_ADDRESS": str(LIMIT),
        }
        environment = os.environ | {f"CAMBIST_{name}": value for name, value in settings.items()}
        server = ForkedProcess(("web",), environment, folder / "out", folder / "log", cwd=folder)
        try:
            until = time.monotonic() + 60
            while not listens(port):
                assert time.monotonic() < until, (folder / "log").read_text()
                time.sleep(0.1)
            yield port
        finally:
            server.terminate()
            asyncio.run(server.wait())


def listens(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as one:
            one.sendall(f"GET /health/live HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n".encode())
            return one.recv(100).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


@asynccontextmanager
async def connected(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def answer(port, *parts, pause_s=0.0, until_s=20.0):
    """Send the parts with a pause after each; return what comes until the server closes, and how long that took."""
    began = time.monotonic()
    async with connected(port) as (reader, writer):
        reading = asyncio.create_task(reader.read())
        try:
            for part in parts:
                writer.write(part.encode())
                await writer.drain()
                await asyncio.sleep(pause_s)
        except OSError:
            pass
        async with asyncio.timeout(until_s):
            try:
                text = (await reading).decode()
            except ConnectionError:
                text = ""
    return text, time.monotonic() - began


async def ok(port):
    text, _ = await answer(port, f"GET /health/live HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n")
    return text.startswith("HTTP/1.1 200")


async def test_a_body_that_does_not_arrive_is_answered_with_408_and_the_connection_closed(port):
    text, took = await answer(port, LOGIN + 'Content-Length: 100\r\n\r\n{"email"')
    assert text.startswith("HTTP/1.1 408"), text
    assert '"code":"REQUEST_TIMEOUT"' in text
    assert "content-security-policy" in text.lower()
    assert TIMEOUT_S <= took < TIMEOUT_S + 3


async def test_a_body_that_trickles_gets_no_more_time(port):
    text, took = await answer(port, LOGIN + "Content-Length: 1000\r\n\r\n", *["{"] * 30, pause_s=0.2)
    assert text.startswith("HTTP/1.1 408"), text
    chunks = ["1\r\n{\r\n"] * 30
    text, took = await answer(port, LOGIN + "Transfer-Encoding: chunked\r\n\r\n", *chunks, pause_s=0.2)
    assert text.startswith("HTTP/1.1 408"), text
    assert took < 30 * 0.2 + 3


async def test_headers_that_do_not_end_and_silence_are_cut_off(port):
    for parts in ([], [LOGIN], [LOGIN, *["X-More: 1\r\n"] * 20]):
        _, took = await answer(port, *parts, pause_s=0.1)
        assert took < TIMEOUT_S + 5


async def test_a_connection_that_asks_nothing_more_is_closed(port):
    text, took = await answer(port, f"GET /health/live HTTP/1.1\r\n{HOST}\r\n")
    assert text.startswith("HTTP/1.1 200")
    assert took < TIMEOUT_S + 5


async def test_a_body_that_nobody_reads_holds_no_connection(port):
    request = f"POST /api/merchant/wallet/payout HTTP/1.1\r\n{HOST}{JSON}X-Api-Key: none\r\nContent-Length: 100\r\n\r\n"
    for path_and_more in (request, f"POST /nowhere HTTP/1.1\r\n{HOST}{JSON}Content-Length: 100\r\n\r\n"):
        text, took = await answer(port, path_and_more)
        assert text.startswith(("HTTP/1.1 401", "HTTP/1.1 404"))
        assert took < TIMEOUT_S + 5


async def test_few_requests_of_an_address_may_wait_for_their_bodies_and_others_are_served_meanwhile(port):
    late = [asyncio.create_task(answer(port, LOGIN + "Content-Length: 100\r\n\r\n{")) for _ in range(3 * LIMIT)]
    await asyncio.sleep(0.5)
    assert await ok(port)
    body = '{"email": "ada@shop.example", "password": "wrong"}'
    prompt = LOGIN + f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
    assert (await answer(port, prompt))[0].startswith("HTTP/1.1 401")
    texts = [text for text, _ in await asyncio.gather(*late)]
    statuses = sorted(text[9:12] for text in texts)
    assert statuses == ["408"] * LIMIT + ["429"] * 2 * LIMIT
    assert sum("TOO_MANY_UNFINISHED" in text for text in texts) == 2 * LIMIT
    # Nothing of them is left: as many may come again.
    again = await asyncio.gather(*(answer(port, LOGIN + "Content-Length: 100\r\n\r\n{") for _ in range(LIMIT)))
    assert {text[9:12] for text, _ in again} == {"408"}


async def test_headers_beyond_their_limit_are_refused(port):
    text, _ = await answer(
        port, f"GET /health/live HTTP/1.1\r\n{HOST}X-Forwarded-For: " + "1.1.1.1," * 20_000 + "\r\n\r\n"
    )
    assert text.startswith(("HTTP/1.1 431", "HTTP/1.1 400")) or not text
    assert await ok(port)
