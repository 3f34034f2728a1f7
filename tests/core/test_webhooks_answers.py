"""What a receiver's answer counts as, whatever bytes come with its status."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import pytest

from cambist.ports import SystemClock
from cambist.services.webhooks.sender import AttemptResult, Message, Sender, open_sender
from cambist.settings import WebhookTargets
from tests.support.webhooks import SECRET

MESSAGE = Message(id="evt_1", event="payment.paid", body=b"{}", secret=SECRET)


@asynccontextmanager
async def talking(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Whoever sends may be gone before the next request.
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await talk(reader, writer)
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


async def request(reader: asyncio.StreamReader) -> None:
    await reader.readuntil(b"\r\n\r\n" + MESSAGE.body)


async def arrive(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write and have the other side, which runs in the same loop, read it before anything else is written."""
    writer.write(data)
    for _ in range(5):
        await asyncio.sleep(0)


@asynccontextmanager
async def answering(answer: Callable[[asyncio.StreamWriter], None]) -> AsyncIterator[str]:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        answer(writer)

    async with talking(talk) as url:
        yield url


def opened() -> AbstractAsyncContextManager[Sender]:
    targets = WebhookTargets(allow_private=True, allow_http=True)
    return open_sender(clock=SystemClock(), timeout_ms=5_000, targets=targets)


async def sent_to(url: str, times: int = 1) -> list[AttemptResult]:
    async with opened() as sender:
        return [await sender.send_once(url, MESSAGE) for _ in range(times)]


@pytest.mark.parametrize(
    "head, body, preview",
    [
        (b"204 No Content\r\nContent-Length: 5", b"hello", None),
        (b"204 No Content\r\nConnection: close", b"hello", None),
        (b"204 No Content\r\nTransfer-Encoding: chunked", b"2\r\nok\r\n0\r\n\r\n", None),
        # Counted in characters and sent in UTF-8, as programs often do by mistake.
        (b"200 OK\r\nContent-Length: 2", "né".encode(), "n\N{REPLACEMENT CHARACTER}"),
        (b"200 OK\r\nContent-Length: 2", b"ok\r\n\r\n\r\n\r\nand so on", "ok"),
        (b"200 OK\r\nTransfer-Encoding: chunked", b"no chunk\r\n", None),
    ],
)
async def test_a_receiver_that_says_2xx_has_taken_it_whatever_follows(head, body, preview):
    """It was failed, sent five times more and dropped, or not: as the bytes happened to come in one piece or two."""
    whole = b"HTTP/1.1 " + head + b"\r\n\r\n" + body
    async with answering(lambda writer: writer.write(whole)) as url:
        results = await sent_to(url, times=2)
    assert [(one.delivered, one.status_code, one.response_preview) for one in results] == [
        (True, int(head[:3]), preview)
    ] * 2


@pytest.mark.parametrize("newline", [b"\r\n", b"\n"])
async def test_a_receiver_that_says_2xx_has_taken_it_wherever_its_head_is_cut(newline):
    """As by a program that writes it line by line, and the empty line together with the body."""
    head = newline.join([b"HTTP/1.1 204 No Content", b"Content-Length: 5", b"", b""])
    for cut in range(1, len(head) + 1):

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: int = cut) -> None:
            await request(reader)
            await arrive(writer, head[:cut])
            writer.write(head[cut:] + b"hello")

        async with talking(talk) as url:
            (result,) = await sent_to(url)
        assert (result.delivered, result.status_code) == (True, 204), head[:cut]


async def test_a_second_answer_is_not_taken_for_the_next_ones():
    """The receiver refused the second event, which counted as delivered, and was never sent again."""
    connections = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        if connections == 1:
            await request(reader)
            for _ in range(2):
                await arrive(writer, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            told.set()
        while True:
            await request(reader)
            writer.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")

    told = asyncio.Event()
    async with talking(talk) as url, opened() as sender:
        first = await sender.send_once(url, MESSAGE)
        await told.wait()
        second = await sender.send_once(url, MESSAGE)
    assert (first.status_code, second.status_code) == (200, 503)


async def test_a_body_that_comes_late_behind_204_is_no_part_of_the_next_answer():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n")
        await request(reader)
        writer.write(b"helloHTTP/1.1 204 No Content\r\n\r\n")

    async with talking(talk) as url:
        results = await sent_to(url, times=2)
    assert [one.status_code for one in results] == [204, 204]


async def test_a_status_that_refuses_is_told_whatever_follows():
    whole = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nnot now"
    async with answering(lambda writer: writer.write(whole)) as url:
        (result,) = await sent_to(url)
    assert (result.status_code, result.error) == (503, "HTTP 503")


async def test_a_connection_that_breaks_off_is_called_so():
    def reset(writer: asyncio.StreamWriter) -> None:
        # Closing then sends a reset in place of an end.
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async with answering(reset) as url:
        (result,) = await sent_to(url)
    assert (result.status_code, result.error) == (None, "the connection broke off before an answer")
