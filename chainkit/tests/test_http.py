"""Asking over HTTP: limits that are kept, secrets that are, too, and what each status means."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from cambist.plugin import (
    ChainError,
    ChainUnavailableError,
    InconsistentChainError,
    RateLimitedError,
)
from cambist.testing.clock import ManualClock
from cambist_chainkit.answers import (
    NestedTooDeeplyError,
    NoAnswerError,
    TooLongError,
    decode_deep,
    from_status,
    unreadable,
)
from cambist_chainkit.gathering import gather_all
from cambist_chainkit.http import HttpClient, endpoint_names, open_session

from .scripted import context

SECRET = "sEcReT+key/0123"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Node:
    """A server that does as it is told."""

    def __init__(self) -> None:
        """Answer with nothing."""
        self.handler: Handler | None = None
        self.url = ""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Do it."""
        assert self.handler is not None
        return await self.handler(request)


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    node = Node()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", node.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    node.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield node
    await runner.cleanup()


@pytest.fixture
async def session(clock: ManualClock) -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session(context(clock)) as session:
        yield session


def client(session: aiohttp.ClientSession, url: str) -> HttpClient:
    return HttpClient(
        session, url, "node", now=lambda: datetime(2026, 1, 1, tzinfo=UTC), timeout_s=0.3, response_bytes_max=1000,
        secret_headers={"X-Key": SECRET},
    )  # fmt: skip


async def test_the_key_goes_along_and_the_body_comes_back(node: Node, session: aiohttp.ClientSession) -> None:
    """To the path that is asked for, without following anybody elsewhere."""
    seen = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.path, request.headers["X-Key"], request.headers["User-Agent"], await request.text()))
        return (
            web.Response(text="[1]") if request.path == "/a" else web.Response(status=302, headers={"Location": "/a"})
        )

    node.handler = handler
    http = client(session, node.url)
    answered = await http.post(b"{}", "a question", "/a")
    assert (answered.ok, answered.body) == (True, b"[1]")
    assert seen == [("/a", SECRET, "cambist-tests", "{}")]
    answered = await http.post(b"{}", "a question", "/b")
    assert (answered.ok, answered.status, len(seen)) == (False, 302, 2)


async def test_too_long_an_answer_is_not_read_to_its_end(node: Node, session: aiohttp.ClientSession) -> None:
    """An answer is refused, an error's text only left out."""

    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=int(request.path[1:]), text="x" * 100_000)

    node.handler = handler
    http = client(session, node.url)
    with pytest.raises(TooLongError, match="more than 1000 bytes"):
        await http.post(b"{}", "a question", "/200")
    assert (await http.post(b"{}", "a question", "/500")).body == b""


async def test_silence_and_a_lost_connection_are_outages(node: Node, session: aiohttp.ClientSession) -> None:
    """Told apart, because one need not be asked again so soon."""

    async def silent(_: web.Request) -> web.Response:
        await asyncio.sleep(5)
        return web.Response()

    async def gone(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    http = client(session, f"{node.url}/{SECRET}")
    node.handler = silent
    with pytest.raises(NoAnswerError, match=r"node did not answer a question in 0\.3 s"):
        await http.post(b"{}", "a question")
    node.handler = gone
    with pytest.raises(ChainUnavailableError, match="could not be reached for a question") as caught:
        await http.post(b"{}", "a question")
    assert SECRET not in str(caught.value)


def test_secrets_are_taken_out_of_what_is_repeated(session: aiohttp.ClientSession) -> None:
    """Those of the address, as they stand there and as they are meant, and those of headers."""
    http = client(session, "https://user:passw%2Frd@node.example/v3/abcdefgh?token=tok%20enXY")
    told = http.redacted(f"user passw/rd passw%2Frd abcdefgh 'tok enXY' {SECRET} v3")
    assert told == "user *** *** *** '***' *** v3"


@pytest.mark.parametrize(
    "status, retry_after, error, said",
    [
        (429, None, RateLimitedError, "fewer requests"),
        (503, "3", RateLimitedError, "busy"),
        (503, None, ChainUnavailableError, "HTTP 503"),
        (413, None, TooLongError, "so large"),
        (401, None, ChainUnavailableError, "our key may be wrong or used up"),
        (403, None, ChainUnavailableError, "our key may be wrong or used up"),
        (500, None, ChainUnavailableError, "HTTP 500"),
    ],
)
def test_a_status_is_the_error_it_means(
    status: int, retry_after: str | None, error: type[ChainError], said: str
) -> None:
    """And nothing worse."""
    found = from_status("node", status, retry_after, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    assert type(found) is error
    assert said in str(found)


@pytest.mark.parametrize(
    "header, seconds",
    [(None, 0), ("7", 7), ("Thu, 01 Jan 2026 00:00:30 GMT", 30), ("soon", 0), ("-5", 0), ("9" * 40, 300)],
)
def test_retry_after_is_read_as_seconds_or_date(header: str | None, seconds: float) -> None:
    """And is bounded."""
    error = from_status("node", 429, header, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    assert isinstance(error, RateLimitedError)
    assert error.retry_after == seconds


@pytest.mark.parametrize(
    "body, error",
    [
        (b"<html>", ChainUnavailableError),
        (b'[{"a": 1', ChainUnavailableError),
        (b"\xff\xfe", ChainUnavailableError),
        (b'{"a": 1}', InconsistentChainError),
        (b"[" * 100_000, NestedTooDeeplyError),
    ],
)
def test_what_cannot_be_decoded_is_an_error_of_its_kind(body: bytes, error: type[ChainError]) -> None:
    """A page, half an answer, another answer, or one that would fill the stack."""
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError, RecursionError)) as caught:
        decode_deep(msgspec.json.Decoder(list[Any]), body)
    assert type(unreadable("node", "a question", body, caught.value)) is error


def test_names_of_endpoints_hold_no_secrets() -> None:
    """Host and port, numbered where they are the same."""
    urls = ["https://user:pass@a.example/v3/key", "https://a.example/other", "http://[::1]:8545/?key=1"]
    assert endpoint_names(urls) == ["a.example", "a.example (2)", "[::1]:8545"]


async def test_the_first_error_ends_the_others_and_is_raised_itself() -> None:
    """Not a group of one."""
    ended = []

    async def slow() -> None:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            ended.append("slow")
            raise

    async def broken() -> None:
        await asyncio.sleep(0)
        message = "broken"
        raise ChainUnavailableError(message)

    with pytest.raises(ChainUnavailableError, match="broken"):
        await gather_all(slow(), broken())
    assert ended == ["slow"]
    assert await gather_all(asyncio.sleep(0, 1), asyncio.sleep(0, 2)) == [1, 2]


@pytest.mark.parametrize("interim, said", [(8, b"yes"), (None, None)])
async def test_interim_answers_are_passed_over_and_not_without_end(
    clock: ManualClock, session: aiohttp.ClientSession, interim: int | None, said: bytes | None
) -> None:
    """They would take the event loop, and with it every other chain."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if interim is not None:
            writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * interim)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes")
        with suppress(OSError):
            while interim is None:
                writer.write(b"HTTP/1.1 103 \r\n\r\n" * 1_000)
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = HttpClient(session, url, "node", now=clock.now, timeout_s=5, response_bytes_max=1_000)
        if said is not None:
            assert (await client.post(b"{}", "it")).body == said
            return
        with pytest.raises(ChainUnavailableError, match="ClientResponseError"):
            await client.post(b"{}", "it")
