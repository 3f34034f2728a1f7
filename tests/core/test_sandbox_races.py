"""Sandbox requests at the same time: they may wait for each other, but never in a circle."""

import asyncio

import pytest
from sqlalchemy.exc import DBAPIError

from cambist.domain.money import UNITS_MAX
from cambist.services.deposits import judging
from cambist.services.errors import InvalidError
from cambist.services.sandbox import blocks
from tests.support.till import Till

CHAIN = "memory"


@pytest.fixture
async def till(db, clock, ids):
    return await Till(db, clock, ids).open()


async def send(till, actor, address, symbol, units):
    """Put money into the chain without anybody looking."""
    info = till.registry.chains[CHAIN]
    async with till.db.transaction() as conn:
        tip = await blocks.lock_tip(conn, actor.project_row, info, till.clock.now())
        await blocks.transfer(conn, tip, info.token(symbol), address, units, ids=till.ids)
        await blocks.mine(conn, tip, 5, till.clock.now())


async def test_two_projects_that_book_each_others_tokens_do_not_deadlock(till, clock, monkeypatch):
    """One project's order ends with USDX while DAIX settles, the other's the other way round; one merchant."""
    actors = [(till.test, "USDX", "DAIX"), (till.test2, "DAIX", "USDX")]
    payments = []
    for actor, token, _ in actors:
        made = (await till.create(actor, token=token)).payment
        await till.deposit(made.payment_id, actor, amount="4", confirmations=5)
        payments.append(made)
    clock.advance(seconds=4000)
    for (actor, _, other), made in zip(actors, payments, strict=True):
        await send(till, actor, made.deposit_address, other, 5)
    together = asyncio.Barrier(2)
    due = judging._due

    async def due_together(*args):
        async with asyncio.timeout(5):
            await together.wait()
        return await due(*args)

    monkeypatch.setattr(judging, "_due", due_together)
    info = till.registry.chains[CHAIN]
    done = await asyncio.gather(
        *[till.sandbox.follow(actor.project_row, info) for actor, _, _ in actors], return_exceptions=True
    )
    assert done == [None, None]
    assert await till.balance("USDX") == {"available": 4_000_000, "held": 5}
    assert await till.balance("DAIX") == {"available": 4 * 10**18, "held": 5}


async def test_time_that_passes_waits_for_a_look_that_is_being_stored(till):
    """A look holds the cursor, then deposits, then payments; passing time changes the same rows."""
    made = (await till.create(till.test)).payment
    await till.deposit(made.payment_id, amount="4", confirmations=0)
    scope = till.test.project_row
    async with till.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT 1 FROM chain_cursors WHERE scope = $1 FOR UPDATE", (scope,))
        await conn.exec_driver_sql("SELECT 1 FROM deposits WHERE scope = $1 FOR UPDATE", (scope,))
        passing = asyncio.create_task(till.advance(60))
        await asyncio.sleep(0.3)
        try:
            await conn.exec_driver_sql("SELECT 1 FROM payments WHERE scope = $1 FOR NO KEY UPDATE", (scope,))
        except DBAPIError:
            passing.cancel()
            raise
    await passing


async def test_amounts_are_bounded_so_that_their_sums_can_be_counted(till):
    made = (await till.create(till.test, token="MEM")).payment
    most = str(UNITS_MAX // 10**18)
    with pytest.raises(InvalidError, match="amount"):
        await till.deposit(made.payment_id, amount=f"{most}0")
    for _ in range(12):
        await till.deposit(made.payment_id, amount=most, confirmations=5)
    assert sum((await till.balance("MEM")).values()) == 12 * UNITS_MAX
