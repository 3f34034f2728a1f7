"""An engine that is killed at any moment whatever: whoever goes on after it sends each payout exactly once."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from cambist.domain.intents import IntentKind
from tests.support.fragile import Deeds, KilledError, Life, fragile
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

AMOUNT = 5_000_000


@pytest.fixture
async def treasury(funded_treasury):
    yield funded_treasury
    await funded_treasury.check_books()


async def lives(treasury: Treasury, life: Life) -> bool:
    """Take one turn with an engine of this life; return whether it outlived it."""
    try:
        await fragile(treasury.engine(), life).tick()
    except KilledError:
        return False
    return True


async def events(treasury: Treasury) -> list[tuple[str, str]]:
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql("SELECT event, resource_id FROM webhook_events ORDER BY id")
        return [tuple(row) for row in rows]


async def test_death_at_each_moment_of_a_turn_that_sends_is_survived(treasury):
    engine = await treasury.ready()
    sent, moment = 1, 0
    outlived = False
    while not outlived:
        moment += 1
        to_address = await treasury.stranger(moment)
        payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
        outlived = await lives(treasury, Deeds(moment))
        await treasury.work(engine)
        sent += 1
        assert await treasury.on_chain(to_address, "USDX") == AMOUNT, moment
        assert (await treasury.payout(payout_id)).status == "completed"
    assert moment > 4
    assert treasury.chain.accounts.sequence(treasury.wallet.address) == sent


async def test_death_at_each_moment_of_a_turn_that_finishes_is_survived(treasury):
    engine = treasury.engine()
    outlived, moment = False, 0
    while not outlived:
        moment += 1
        to_address = await treasury.stranger(moment)
        payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
        while (await treasury.payout(payout_id)).status != "broadcast":
            await engine.tick()
            await treasury.mine()
        await treasury.mine(treasury.info.confirmations + 1)
        outlived = await lives(treasury, Deeds(moment))
        await treasury.work(engine)
        assert await treasury.on_chain(to_address, "USDX") == AMOUNT, moment
        told = [event for event, resource in await events(treasury) if resource == payout_id]
        assert told == ["payout.completed"], moment
    assert moment > 2


@pytest.mark.parametrize("seed", range(3))
async def test_engines_that_die_all_the_time_lose_and_double_nothing(treasury, seed):
    chance = Random(seed)
    await treasury.receive("MEM", 10**18)
    native = await treasury.stranger(100)
    await treasury.pay_out("MEM", 10**18, native)
    to_addresses = [await treasury.stranger(n) for n in range(8)]
    refusing = to_addresses[3]
    for number, to_address in enumerate(to_addresses):
        await treasury.pay_out(
            "USDX", AMOUNT + number, to_address, kind=chance.choice([IntentKind.PAYOUT, IntentKind.WITHDRAWAL])
        )
    for round_ in range(400):
        await lives(treasury, Life(chance.randint(1, 60)))
        if round_ == 60:
            treasury.chain.faults.refusing.add((treasury.token("USDX").contract, refusing))
        if chance.random() < 0.2:
            await treasury.mine(chance.randint(1, 3))
        if await treasury.is_idle():
            break
    await treasury.work(treasury.engine())
    got = [await treasury.on_chain(to_address, "USDX") for to_address in to_addresses]
    assert [units for n, units in enumerate(got) if n != 3] == [AMOUNT + n for n in range(8) if n != 3]
    assert got[3] in {0, AMOUNT + 3}
    assert await treasury.on_chain(native, "MEM") == 10**18
    left = 100 * AMOUNT - sum(got)
    balance = await treasury.balance("USDX")
    assert (balance.available, balance.pending, balance.held) == (left, 0, 0)


async def test_requests_looks_and_engines_side_by_side_never_wait_in_a_circle(treasury):
    """A circle would end as an error of one of them: the database finds it after a second."""
    chance, sent = Random(1), []
    refusing = await treasury.stranger(1000)
    treasury.chain.faults.refusing.add((treasury.token("USDX").contract, refusing))
    engines = [treasury.engine(), treasury.engine()]

    async def asks() -> None:
        for _ in range(4):
            to_address = refusing if chance.random() < 0.2 else await treasury.stranger(len(sent))
            kind = chance.choice([IntentKind.PAYOUT, IntentKind.WITHDRAWAL])
            sent.append((to_address, await treasury.pay_out("USDX", 1000 + len(sent), to_address, kind=kind)))

    for _ in range(12):
        address = await treasury.deposit_address()
        treasury.chain.transfer(treasury.token("USDX"), address, AMOUNT)
        treasury.chain.transfer(treasury.info.native, treasury.station, 10**9)
        treasury.chain.mine()
        treasury.clock.advance(2)
        await asyncio.gather(asks(), asks(), treasury.poll(), *(engine.tick() for engine in engines))
    await treasury.work(engines[0])
    statuses = {to_address: (await treasury.payout(payout_id)).status for to_address, payout_id in sent}
    assert {status for to_address, status in statuses.items() if to_address != refusing} == {"completed"}
    assert statuses[refusing] == "failed"
    await treasury.mine(5)
