"""A server whose machine vanishes without a word: who waits for an answer, or for news, hears that none will come."""

from __future__ import annotations

import asyncio
import ctypes
import socket
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest
from redis.asyncio import Redis
from sqlalchemy.exc import DBAPIError

from cambist.bootstrap import open_listening
from cambist.db import vanished
from cambist.db.engine import connect
from cambist.hints import Hints

SO_ATTACH_FILTER = 26
HEARD_WITHIN_S = 45
"""Far less than the quarter of an hour, or the eternity, that a system would wait by itself."""


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


@pytest.fixture
async def machine(database_url):
    machine = Machine(database_url)
    yield machine
    await machine.close()


@pytest.fixture
def soon(monkeypatch):
    """Have the times be shorter, and all else as it is."""
    monkeypatch.setattr(vanished, "IDLE_S", 1)
    monkeypatch.setattr(vanished, "INTERVAL_S", 1)
    monkeypatch.setattr(vanished, "UNACKNOWLEDGED_MS", 2_000)


@pytest.fixture
async def far(machine, soon):
    """Reach the database over TCP."""
    database = connect(await machine.start(), application_name="far", pool_size=1, pool_overflow=0)
    yield database
    await database.close()


async def ask(database) -> None:
    async with database.transaction() as conn:
        await conn.exec_driver_sql("SELECT 1")


async def ask_directly(database) -> None:
    await database.fetch_row("SELECT 1")


async def fails(waiting: asyncio.Task[None]) -> None:
    done, _ = await asyncio.wait([waiting], timeout=HEARD_WITHIN_S)
    assert done, "it waits for ever"
    with pytest.raises((DBAPIError, OSError, asyncpg.PostgresError)):
        await waiting


@pytest.mark.parametrize("asking", [ask, ask_directly])
async def test_an_answer_that_will_never_come_is_not_waited_for_when_the_question_has_arrived(far, machine, asking):
    await asking(far)
    machine.swallow()
    waiting = asyncio.create_task(asking(far))
    await machine.asked.wait()
    machine.vanish()
    await fails(waiting)


@pytest.mark.parametrize("asking", [ask, ask_directly])
async def test_nor_when_the_question_has_not(far, machine, asking):
    await asking(far)
    machine.vanish()
    await fails(asyncio.create_task(asking(far)))


@pytest.fixture
async def valkey(redis_url):
    machine = Machine(redis_url)
    yield machine
    await machine.close()


async def test_who_waits_for_hints_listens_anew_once_valkey_has_vanished(valkey, redis_url, soon):
    async with Redis.from_url(redis_url) as there, open_listening(await valkey.start()) as listening:
        ours = Hints(listening)
        async with ours.subscribe("a") as waiter:
            assert await waiter.wait(10)  # connected
            valkey.vanish()
            assert await waiter.wait(HEARD_WITHIN_S), "it listens for ever where nobody speaks"
            await Hints(there).publish("a")
            assert await waiter.wait(10)
        await ours.aclose()
