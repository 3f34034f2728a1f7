"""The cheapest HTTP there is, so that a benchmark measures what it is about: a server and a load of clients."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Self, cast

from msgspec import Struct


class Run(Struct, frozen=True):
    """What a load came to."""

    per_second: float
    latencies_s: list[float]


Answer = Callable[[bytes, bytes], Sequence[bytes] | None]
"""Takes a request's path and body, and returns the pieces of the answer; None leaves the client waiting."""

OK = (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",)


def json_answer(*pieces: bytes) -> Sequence[bytes]:
    """Return an answer whose body are these pieces."""
    length = sum(map(len, pieces))
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % length, *pieces


class ServerConnection(asyncio.Protocol):
    """Reads requests that carry a Content-Length, one after the other, and answers each, or after a while."""

    def __init__(self, answer: Answer, delay_s: float = 0.0) -> None:
        self._answer = answer
        self._delay_s = delay_s
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            body_at = end + 4
            whole = body_at + content_length(self._received[:end])
            if len(self._received) < whole:
                return
            pieces = self._answer(self._received[:end].split(b" ", 2)[1], self._received[body_at:whole])
            self._received = self._received[whole:]
            if pieces is None:
                continue
            if self._delay_s:
                asyncio.get_running_loop().call_later(self._delay_s, self._write, pieces)
            else:
                self._write(pieces)

    def _write(self, pieces: Sequence[bytes]) -> None:
        if self._transport.is_closing():
            return
        with suppress(ConnectionError):
            self._transport.writelines(pieces)


def content_length(head: bytes) -> int:
    """Return what the header says, 0 without one."""
    return int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or b"0")


async def listen(answer: Answer, delay_s: float = 0.0) -> tuple[asyncio.Server, str]:
    """Serve on a free loopback port, each answer after so long; return the server and its address."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: ServerConnection(answer, delay_s), "127.0.0.1", 0, backlog=1024)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


class Replay(ABC):
    """A server in a process of its own whose answers are all prepared. ``url`` is where it listens."""

    url = ""

    async def __aenter__(self) -> Self:
        self._server, self.url = await listen(self.reply)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    def address(self) -> str:
        """Return the URL."""
        return self.url

    @abstractmethod
    def reply(self, path: bytes, body: bytes) -> Sequence[bytes]:
        """Answer with encoded pieces as they are: to copy megabytes would cost what is measured beside it."""


class LoadConnection(asyncio.Protocol):
    """One client: asks, waits for the answer, and asks again until the time is over."""

    def __init__(self, make_request: Callable[[], bytes], status: int, until: float) -> None:
        """Take requests from here; every answer must have this status."""
        self._make_request = make_request
        self._status = b"HTTP/1.1 %d " % status
        self._until = until
        self._received = b""
        self.latencies_s: list[float] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._ask()

    def _ask(self) -> None:
        request = self._make_request()
        self._asked_at = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0 or len(self._received) < end + 4 + content_length(self._received[:end]):
            return
        now = time.perf_counter()
        self.latencies_s.append(now - self._asked_at)
        if not self._received.startswith(self._status):
            self.done.set_exception(AssertionError(self._received.decode(errors="replace")))
        elif now >= self._until:
            self.done.set_result(None)
        else:
            self._received = b""
            self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server hung up"))


class Load:
    """Clients in a process of their own."""

    async def __aenter__(self) -> Self:
        """Nothing is open between the runs."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is to be closed."""

    async def run(self, port: int, requests: str, args: tuple[object, ...], clients: int, seconds: float) -> Run:
        """Let so many clients ask for so long. ``requests`` is ``module:name`` of what makes their requests.

        It takes ``args`` and returns the status that is expected and a function that makes the next request.
        """
        module, _, name = requests.partition(":")
        status, make_request = getattr(import_module(module), name)(*args)
        loop = asyncio.get_running_loop()
        started = time.perf_counter()
        connections = [
            (
                await loop.create_connection(
                    lambda: LoadConnection(make_request, status, started + seconds), "127.0.0.1", port
                )
            )
            for _ in range(clients)
        ]
        await asyncio.gather(*(client.done for _, client in connections))
        elapsed = time.perf_counter() - started
        for transport, _ in connections:
            transport.close()
        latencies = [latency for _, client in connections for latency in client.latencies_s]
        return Run(len(latencies) / elapsed, latencies)
