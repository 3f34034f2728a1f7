"""One chain's or provider's trouble keeps no exchange of others waiting."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from msgspec import structs

from cambist.hints import Hints
from cambist.services.exchanges import filling
from cambist.services.exchanges.calls import NotNow, build
from cambist.services.exchanges.filling import find_fill
from cambist.services.exchanges.runner import PERMITS
from cambist_tasks.exchanges import ExchangeFollower
from tests.support.exchange_env import MEM, ExchangeEnv
from tests.support.stubborn import stay

pytestmark = pytest.mark.slow


@pytest.fixture
async def env(db, clock, ids, tmp_path):
    async with ExchangeEnv(db, clock, ids, tmp_path / "signer") as env:
        yield env


async def test_a_chain_that_hangs_keeps_no_exchange_of_others_waiting(env, monkeypatch):
    await env.opened(mem=50 * MEM)
    bridged = [await env.ask("memory/MEM", MEM, "other/MEM") for _ in range(PERMITS + 1)]
    for txn_id in bridged:
        await env.go_on(txn_id, until="filling")

    async def hang(*_):
        await asyncio.Event().wait()

    monkeypatch.setattr(env.other, "logs", hang)
    swap = await env.ask("memory/MEM", MEM, "memory/USDX")
    follower = ExchangeFollower(env.follower, Hints(None))
    for _ in range(60):
        for engine in env.engines.values():
            await engine.tick()
        await follower.tick()
        await asyncio.sleep(0.02)
        if (await env.row(swap)).step == "ended":
            break
        await env.mine()
    assert (await env.row(swap)).status == "succeeded"
    assert {(await env.row(txn_id)).step for txn_id in bridged} == {"filling"}
    assert Counter(follower._following.values())["other<memory"] == PERMITS
    for task in follower._following:
        task.cancel()
    await asyncio.gather(*follower._following, return_exceptions=True)


@pytest.mark.parametrize("step", ["queued", "filling"])
async def test_a_provider_that_catches_its_cancellation_is_waited_for_as_long_as_others(env, monkeypatch, step):
    """Who waits holds a permit, of which there are few, until the worker ends."""
    await env.opened(mem=50 * MEM)
    txn_id, freed = await env.ask("memory/MEM", MEM, "other/MEM"), asyncio.Event()
    monkeypatch.setattr(filling, "EAGER", timedelta(0))
    row = await (env.row(txn_id) if step == "queued" else env.go_on(txn_id, until=step))

    async def stubborn(*_):
        await stay(freed)

    monkeypatch.setattr(env.bridge, "build" if step == "queued" else "status", stubborn)
    worker = structs.replace(env.follower, build_timeout_s=0.05)
    asking = asyncio.create_task(build(worker, row, None) if step == "queued" else find_fill(worker, row))
    await asyncio.wait([asking], timeout=10)
    assert asking.done()
    freed.set()
    assert isinstance(asking.exception(), NotNow if step == "queued" else type(None))
