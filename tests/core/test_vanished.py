"""A server whose machine vanishes without a word: who waits for an answer, or for news, hears that none will come."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest
from redis.asyncio import Redis
from sqlalchemy.exc import DBAPIError

from cambist.bootstrap import open_listening
from cambist.db import vanished
from cambist.db.engine import connect
from cambist.hints import Hints
from tests.support.machine import Machine

HEARD_WITHIN_S = 45
"""Far less than the quarter of an hour, or the eternity, that a system would wait by itself."""


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
