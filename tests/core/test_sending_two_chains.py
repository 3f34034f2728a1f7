"""An address has its own affairs on each of two chains: what is under way on one counts for nothing on the other."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cambist.services.sending.engine import Engine
from cambist.services.sending.finality_store import Depth, close_final, reopen_undone
from cambist.services.sending.gas.funding import BROUGHT_AT_ONCE_MAX, ask_for_gas, what_is_left
from cambist.services.sending.open_store import read_open
from cambist.services.sending.rows import OwnPath
from cambist.services.sending.store import due_for_reason, held_back
from tests.core.test_auto_payout import suspend
from tests.support.exchange_env import MEM, USDX, ExchangeEnv

pytestmark = pytest.mark.slow

STATES = "SELECT state FROM outbound_intents UNION SELECT state FROM outbound_txs"


@pytest.fixture
async def env(db, clock, ids, tmp_path):
    async with ExchangeEnv(db, clock, ids, tmp_path / "signer") as env:
        env.used.add("other")
        yield await env.opened(usdx=100 * USDX, mem=50 * MEM, collected=False)


@pytest.fixture
async def wallet(env) -> OwnPath:
    query = "SELECT account_index, change, address_index FROM addresses WHERE id = $1"
    async with env.db.autocommit() as conn:
        path = (await conn.exec_driver_sql(query, (env.wallet.pk,))).one()
    return OwnPath(env.wallet.pk, env.wallet.address, "wallet", env.merchant, *path)


async def asked(env: ExchangeEnv, engine: Engine, wallet: OwnPath) -> bool:
    async with env.db.transaction() as conn:
        return await ask_for_gas(conn, engine.context, wallet, 1000, env.clock.now())


async def top_ups(env: ExchangeEnv) -> list[str]:
    """Return on which chains gas is on its way."""
    query = "SELECT chain FROM outbound_intents WHERE kind = 'top_up' AND state <> 'done' ORDER BY chain"
    async with env.db.autocommit() as conn:
        return list((await conn.exec_driver_sql(query)).scalars())


async def test_what_waits_to_be_sent_on_one_chain_is_no_matter_of_another_ones_engine(env, wallet):
    """That one has something to send as well, or it would not even look."""
    engine, other = env.engines["memory"], env.engines["other"]
    payout = await env.pay_out("USDX", USDX, await env.stranger(1))
    assert await asked(env, other, wallet)
    for _ in range(10):
        await other.tick()
        if not await top_ups(env):
            break
        await env.mine()
    assert await env.open_intents() == [("payout", "waiting", None)]
    await env.work(engine)
    assert (await env.payout(payout)).status == "completed"


async def test_what_is_on_its_way_on_one_chain_is_neither_missing_nor_there_on_another(env, wallet):
    """From the first top-up on, until all is posted: what leaves, its fee, and gas that is mined alone."""
    engine, other = env.engines["memory"], env.engines["other"]
    async with env.db.autocommit() as conn:
        nothing = await what_is_left(conn, other.context, wallet, env.clock.now())
        before = await what_is_left(conn, engine.context, wallet, env.clock.now())
    assert (nothing.outflow.slots, nothing.gas.units, nothing.is_gas_coming) == (0, 0, False)
    await env.pay_out("MEM", MEM, await env.stranger(1))
    seen = set()
    for _ in range(40):
        await engine.tick()
        async with env.db.autocommit() as conn:
            assert await what_is_left(conn, other.context, wallet, env.clock.now()) == nothing
            left = await what_is_left(conn, engine.context, wallet, env.clock.now())
        seen |= {"sent"} if left.outflow.units[None] >= MEM else set()
        seen |= {"brought"} if left.gas.units > before.gas.units else set()
        if await env.is_idle():
            break
        await env.mine()
    assert seen == {"sent", "brought"}


async def test_gas_that_was_brought_on_one_chain_keeps_none_from_being_brought_on_another(env, wallet):
    engine, other = env.engines["memory"], env.engines["other"]
    for _ in range(BROUGHT_AT_ONCE_MAX):
        assert await asked(env, engine, wallet)
        await env.work(engine)
    assert not await asked(env, engine, wallet)
    assert await asked(env, other, wallet)
    assert await top_ups(env) == ["other"]
    env.clock.advance(3600)
    assert await asked(env, engine, wallet)
    assert await top_ups(env) == ["memory", "other"]


async def test_what_is_sent_on_one_chain_is_not_deferred_followed_finished_or_undone_by_another_ones_engine(env):
    engine, other, seen = env.engines["memory"], env.engines["other"].context.chain_scope, set[str]()
    await env.pay_out("USDX", USDX, await env.stranger(1))
    for _ in range(40):
        async with env.db.autocommit() as conn:
            seen |= set((await conn.exec_driver_sql(STATES)).scalars())
            later = env.clock.now() + timedelta(hours=1)
            assert await due_for_reason(conn, other, later, "paused", is_deferred=False, limit=9) == []
            assert await read_open(conn, other) is None
            assert await close_final(conn, other, Depth(10**9, 10**9), later) == []
            assert await reopen_undone(conn, other, Depth(0, 0)) == []
        if await env.is_idle():
            break
        await engine.tick()
        await env.mine()
    assert seen == {"waiting", "sending", "done", "sent", "mined", "final"}


async def test_what_a_suspended_merchant_sends_on_one_chain_is_not_held_back_by_another_ones_engine(env):
    await env.pay_out("USDX", USDX, await env.stranger(1))
    await suspend(env)
    found = {}
    for name, engine in env.engines.items():
        async with env.db.transaction() as conn:
            found[name] = len(await held_back(conn, engine.context.chain_scope, env.clock.now(), 9))
    assert found == {"memory": 1, "other": 0}
