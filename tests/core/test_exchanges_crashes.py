"""Workers that die at any moment whatever, two at a time: whoever goes on after them makes each exchange once."""

from __future__ import annotations

import os
from random import Random

import msgspec
import pytest

from cambist.services.exchanges.runner import claim_due, follow_exchange, reopen_orphaned
from tests.support.exchange_env import MEM, USDX, ExchangeEnv
from tests.support.fragile import Fragile, FragileDatabase, KilledError, Life, fragile

pytestmark = pytest.mark.slow

GIVEN = 10 * USDX
SEEDS = 60 if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else 1
FIRST = int(os.environ.get("CAMBIST_TEST_SEED", "0"))


@pytest.fixture
async def env(db, clock, ids, tmp_path):
    async with ExchangeEnv(db, clock, ids, tmp_path / "signer") as env:
        yield env


async def opened(env: ExchangeEnv, *, usdx: int, mem: int = 0) -> None:
    env.mem = mem
    await env.opened(usdx=usdx, mem=mem, collected=False)
    # Whoever dies holds what it was looking at for as long as its claim goes.
    await env.set(exchanges={"validMinutes": 1_440})


async def follows(env: ExchangeEnv, life: Life) -> bool:
    """Follow exchanges with a worker of this life; return whether it outlived that."""
    worker = msgspec.structs.replace(
        env.new_follower(),
        db=FragileDatabase(env.db, life),
        chains={name: Fragile(chain, life) for name, chain in env.routers.items()},
        swaps=[Fragile(env.swaps, life)],
        bridges=[Fragile(env.bridge, life)],
    )
    try:
        await reopen_orphaned(worker)
        for row in await claim_due(worker):
            await follow_exchange(worker, row)
    except KilledError:
        return False
    return True


async def sends(env: ExchangeEnv, name: str, life: Life) -> bool:
    try:
        await fragile(env.engine_of(name), life).tick()
    except KilledError:
        return False
    return True


async def send_all(env: ExchangeEnv) -> None:
    for engine in env.engines.values():
        while (await engine.tick()).more:
            pass


async def fill_all(env: ExchangeEnv, filled: set[str]) -> None:
    """Be the relayer: each deposit that stands is paid out once."""
    for deposit in env.routers["memory"].deposits():
        if deposit.deposit_id not in filled:
            filled.add(deposit.deposit_id)
            env.other.fill(deposit)


async def all_ended(env: ExchangeEnv) -> bool:
    async with env.db.autocommit() as conn:
        found = await conn.exec_driver_sql("SELECT bool_and(step = 'ended') FROM exchanges")
        return bool(found.scalar_one())


async def miscounted(env: ExchangeEnv) -> list[str]:
    """Return which exchanges have counted other approvals than they have asked for.

    The next one, such as that which takes back what is left, would have the name of one before, and never be made.
    """
    async with env.db.autocommit() as conn:
        found = await conn.exec_driver_sql(
            "SELECT txn_id FROM exchanges WHERE approvals <> ("
            "SELECT count(*) FROM outbound_intents WHERE starts_with(reference, 'approval:' || txn_id || ':'))"
        )
        return list(found.scalars())


async def check_ended_once(env: ExchangeEnv, txn_ids: list[str]) -> None:
    """Each succeeded once; or its call was not mined in time, was cancelled in its nonce, and nothing has left."""
    ended = [await env.row(one) for one in txn_ids]
    assert {row.step for row in ended} == {"ended"}, [(row.txn_id, row.step, row.waits_for) for row in ended]
    assert all("did not take it in time" in row.error for row in ended if row.status == "failed")
    rows = [row for row in ended if row.status == "succeeded"]
    assert rows
    assert len({row.tx_id for row in rows}) == len(rows)
    assert len(env.routers["memory"].deposits()) == sum(row.kind == "bridge" for row in rows)
    for chain, symbol, before in (("memory", "MEM", env.mem), ("other", "USDX", 0), ("memory", "DAIX", 0)):
        given = sum(row.units for row in rows if (row.source_chain, row.source_token) == (chain, symbol))
        came = before - given
        came += sum(row.output_units for row in rows if (row.dest_chain, row.dest_token) == (chain, symbol))
        balance = await env.balance_of(chain, symbol)
        assert (balance.available, balance.held, balance.pending) == (came, 0, 0), (chain, symbol)
    assert await env.allowance() == 0
    assert not await miscounted(env)
    await env.check_all_books()


async def test_death_at_each_moment_of_an_exchange_is_survived(env):
    """The engine lives: it is the follower that dies, at the first moment, then at the second, and so on.

    Another one goes on after each death, or an exchange would stand still at the first of them.
    """
    await opened(env, usdx=400 * USDX)
    txn_ids, filled, moment, deaths = [], set(), 0, 1
    while deaths:
        moment, deaths, died = moment + 2, 0, False
        txn_ids.append(await env.ask("memory/USDX", GIVEN, "other/USDX" if len(txn_ids) % 2 else "memory/MEM"))
        for _ in range(120):
            await send_all(env)
            died = not await follows(env, Life(None if died else moment))
            deaths += died
            await send_all(env)
            await fill_all(env, filled)
            if await all_ended(env):
                break
            await env.mine(4, seconds=61)
    assert moment > 12
    await check_ended_once(env, txn_ids)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
async def test_workers_that_die_all_the_time_lose_and_double_nothing(env, seed):
    chance = Random(seed)
    await opened(env, usdx=100 * USDX, mem=5 * MEM)
    txn_ids, filled = [], set()
    for sold, units, bought in (
        ("memory/USDX", GIVEN, "memory/MEM"),
        ("memory/USDX", GIVEN, "other/USDX"),
        ("memory/MEM", MEM, "memory/DAIX"),
        ("memory/USDX", GIVEN, "memory/DAIX"),
    ):
        txn_ids.append(await env.ask(sold, units, bought))
    env.routers["memory"].tells_inner_coin = chance.random() < 0.5
    for _ in range(250):
        who = chance.choice(["follower", "follower", "memory", "other"])
        life = Life(chance.randint(1, 50))
        await (follows(env, life) if who == "follower" else sends(env, who, life))
        if chance.random() < 0.4:
            await env.mine(chance.randint(1, 2), seconds=chance.choice([2, 20, 61]))
            await fill_all(env, filled)
        if chance.random() < 0.02 and env.chain.height > 20:
            waiting = [tx.id for block in env.chain._blocks[-2:] for tx in block.transactions]
            env.chain.reorg(2, mine_again=waiting)
            await env.mine()
        if await all_ended(env):
            break
    for _ in range(80):
        await env.tick()
        await fill_all(env, filled)
        await env.mine(3, seconds=10)
        if await all_ended(env):
            break
    await check_ended_once(env, txn_ids)
