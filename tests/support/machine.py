"""The machine of a server, which can vanish without a word."""

from __future__ import annotations

import asyncio
import ctypes
import socket
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

SO_ATTACH_FILTER = 26


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction)))


def vanish(sock: socket.socket) -> None:
    """Have the system drop every packet that comes for this socket, so that none is acknowledged."""
    nothing = _Instruction(0x06, 0, 0, 0)  # return 0: keep no byte of it
    program = _Program(1, ctypes.pointer(nothing))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, bytes(program))


class Machine:
    """The machine of a database, or of Valkey, as it is reached over TCP."""

    def __init__(self, url: str) -> None:
        self._to = urlsplit(url)
        self._vanishing = asyncio.Event()
        self._sockets: list[socket.socket] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.asked = asyncio.Event()

    async def start(self) -> str:
        """Return the address of the server there."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        who = "" if self._to.password is None else f"{self._to.username or ''}:{self._to.password}@"
        if self._to.scheme == "unix":
            return f"redis://{who}127.0.0.1:{port}?{self._to.query}"
        return self._to._replace(netloc=f"{who}127.0.0.1:{port}", query="").geturl()

    async def close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def swallow(self) -> None:
        """Take what comes from now on, and never answer it."""
        self._vanishing.set()

    def vanish(self) -> None:
        for sock in self._sockets:
            vanish(sock)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raw = writer.get_extra_info("socket")
        self._sockets.append(raw)
        folder = parse_qs(self._to.query).get("host", [""])[0]
        if self._to.scheme == "unix":
            onwards = await asyncio.open_unix_connection(self._to.path)
        elif folder.startswith("/"):
            onwards = await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{self._to.port or 5432}")
        else:
            onwards = await asyncio.open_connection(self._to.hostname, self._to.port or 5432)
        self._writers += [writer, onwards[1]]
        self._tasks += [
            asyncio.create_task(self._pass_on(reader, onwards[1])),
            asyncio.create_task(self._pass_on(onwards[0], writer)),
        ]

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                if self._vanishing.is_set():
                    self.asked.set()
                    continue
                writer.write(data)
