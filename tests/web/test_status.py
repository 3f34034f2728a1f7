"""What a status page is told, and what it costs."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import pytest
from sqlalchemy import make_url

from cambist.db.engine import connect
from cambist.settings import RateLimitSettings
from cambist_web.status_board import CHECK_TIMEOUT_S
from tests.support.statements import statements
from tests.support.web import ADMIN_KEY, memory_gateway, refused, web_client, web_settings

STATUS = "/api/status"
ADMIN = {"X-Admin-Key": ADMIN_KEY}


async def store(gateway, *, height=100, head=100, scope=0, chain="memory", blocks=3, pause_s=12):
    """Have the worker have read a chain up to now, whose blocks come every so many seconds."""
    now = gateway.clock.now()
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO chain_cursors (chain, scope, height, hash, head, updated_at) VALUES ($1, $2, $3, 'h', $4, $5)"
            " ON CONFLICT (chain, scope) DO UPDATE SET height = $3, head = $4, updated_at = $5",
            (chain, scope, height, head, now),
        )
        for number in range(blocks):
            await conn.exec_driver_sql(
                "INSERT INTO chain_blocks (chain, scope, height, hash, parent_hash, mined_at)"
                " VALUES ($1, $2, $3, 'h', 'p', $4) ON CONFLICT DO NOTHING",
                (chain, scope, height - number, now - timedelta(seconds=pause_s * number)),
            )


async def test_a_chain_that_is_read_works_and_its_lag_is_told(client, gateway, clock):
    await store(gateway, head=102)
    await store(gateway, chain="memory", scope=7, height=5)
    clock.advance(9)
    assert (await client.get(STATUS)).json() == {
        "success": True,
        "status": "working",
        "version": "3.0.0",
        "checkedAt": "2026-01-01T12:00:09.000Z",
        "chains": [
            {
                "chain": "memory",
                "name": "Memory (memory)",
                "status": "working",
                "head": 102,
                "height": 100,
                "lagBlocks": 2,
                "lagSeconds": 9,
                "polledAt": "2026-01-01T12:00:00.000Z",
                "sendingPaused": False,
            }
        ],
    }


async def test_a_chain_that_was_never_read_is_down_and_silence_is_noticed_in_time(client, gateway, clock):
    answer = (await client.get(STATUS)).json()
    assert (answer["status"], answer["chains"][0]["status"], answer["chains"][0]["head"]) == ("down", "down", None)
    await store(gateway)
    clock.advance(61)
    answer = (await client.get(STATUS)).json()
    assert (answer["status"], answer["chains"][0]["status"]) == ("degraded", "delayed")
    clock.advance(240)
    answer = (await client.get(STATUS)).json()
    assert (answer["status"], answer["chains"][0]["status"], answer["chains"][0]["lagSeconds"]) == ("down", "down", 301)


async def test_a_node_that_answers_and_stands_still_is_noticed_by_its_last_block(client, gateway, clock):
    await store(gateway)
    clock.advance(130)
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE chain_cursors SET updated_at = $1", (clock.now(),))
    answer = (await client.get(STATUS)).json()
    assert (answer["chains"][0]["status"], answer["chains"][0]["lagBlocks"]) == ("delayed", 0)


async def test_what_an_operator_paused_is_told_and_why_is_not(client, gateway, clock):
    await store(gateway)
    steer = {"reason": "the nodes of a provider lie"}
    paths = "/api/admin/chains/memory"
    for what in ("watching", "sending"):
        answer = await client.post(f"{paths}/pause", json={"what": what, **steer}, headers=ADMIN)
        assert answer.status_code == 200
    answer = await client.get(STATUS)
    (chain,) = answer.json()["chains"]
    assert (answer.json()["status"], chain["status"], chain["sendingPaused"]) == ("down", "paused", True)
    assert "lie" not in answer.text
    await client.post(f"{paths}/resume", json={"what": "watching", **steer}, headers=ADMIN)
    clock.advance(3)
    answer = (await client.get(STATUS)).json()
    assert (answer["status"], answer["chains"][0]["status"]) == ("degraded", "working")


async def test_only_chains_of_live_projects_are_told_and_nothing_about_business(client, gateway, merchant):
    await store(gateway)
    answer = await client.get(STATUS)
    assert [chain["chain"] for chain in answer.json()["chains"]] == ["memory"]
    assert merchant.merchant_id not in answer.text
    assert answer.headers["access-control-allow-origin"] == "*", "a status page elsewhere may ask, too"


async def test_however_many_ask_the_database_is_asked_once_in_three_seconds(client, gateway, clock):
    await store(gateway)
    with statements(gateway.db) as asked:

        def times() -> int:
            # Others ask by the clock, too: what was added to chains, and what streams tell.
            return sum("chain_cursors" in one for one in asked)

        await asyncio.gather(*(client.get(STATUS) for _ in range(50)))
        assert times() == 1
        clock.advance(2.9)
        await client.get(STATUS)
        assert times() == 1
        clock.advance(0.1)
        await client.get(STATUS)
        assert times() == 2


async def test_losing_redis_impairs_and_losing_the_database_is_told_clearly(database_url, clock, ids):
    settings = web_settings(database_url, "redis://127.0.0.1:1", rate_limits=RateLimitSettings())
    async with memory_gateway(settings, clock, ids, stock=0) as gateway, web_client(gateway) as client:
        await store(gateway)
        answer = await client.get(STATUS)
        assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
        clock.advance(3)
        url = make_url(database_url)
        name = url.database
        beside = url.set(database="postgres").render_as_string(hide_password=False)
        away = connect(beside, application_name="test")
        async with away.autocommit() as conn:
            await conn.exec_driver_sql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            await conn.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", (name,)
            )
            answer = await client.get(STATUS)
            assert (answer.status_code, answer.json()) == (
                503,
                {
                    "success": False,
                    "status": "down",
                    "version": "3.0.0",
                    "checkedAt": "2026-01-01T12:00:03.000Z",
                    "chains": [],
                    "error": "The database cannot be asked, so nothing is known of the chains.",
                    "code": "NOT_READY",
                },
            )
            await conn.exec_driver_sql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        await away.close()
        assert (await client.get(STATUS)).status_code == 503, "what was seen is kept for three seconds"
        clock.advance(3)
        assert (await client.get(STATUS)).status_code == 200


@pytest.mark.slow
async def test_a_database_that_does_not_answer_is_not_waited_for(client, gateway, clock):
    await store(gateway)
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("LOCK TABLE chain_cursors IN ACCESS EXCLUSIVE MODE")
        started = time.monotonic()
        answers = await asyncio.gather(*(client.get(STATUS) for _ in range(5)))
        assert {answer.status_code for answer in answers} == {503}
        assert time.monotonic() - started < 2 * CHECK_TIMEOUT_S, "one waits for it, the others for that one"
    clock.advance(3)
    assert (await client.get(STATUS)).status_code == 200


async def test_asking_is_limited_by_address(database_url, redis_url, clock, ids):
    settings = web_settings(database_url, redis_url, rate_limits=RateLimitSettings(per_address=3))
    async with memory_gateway(settings, clock, ids, stock=0) as gateway, web_client(gateway) as client:
        assert [(await client.get(STATUS)).status_code for _ in range(3)] == [200] * 3
        refused(await client.get(STATUS), 429, "RATE_LIMITED")
