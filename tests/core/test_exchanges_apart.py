"""One chain's or provider's trouble keeps no exchange of others waiting."""

from __future__ import annotations

import asyncio

import pytest

from cambist.hints import Hints
from cambist.services.exchanges.runner import PERMITS
from cambist_tasks.exchanges import ExchangeFollower
from tests.support.exchange_env import MEM, ExchangeEnv

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
    for task in follower._following:
        task.cancel()
    await asyncio.gather(*follower._following, return_exceptions=True)
