"""Sandbox requests at the same time: they may wait for each other, but never in a circle."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from sqlalchemy.exc import DBAPIError

from cambist.domain.money import UNITS_MAX
from cambist.plugin import InconsistentChainError
from cambist.services.errors import InvalidError, UnavailableError
from cambist.services.receiving.deposits import judging
from cambist.services.sandbox import blocks, service
from cambist.services.sandbox.chain import SandboxChain, SandboxView

pytestmark = pytest.mark.slow

CHAIN = "memory"


async def send(payment_env, actor, address, symbol, units):
    """Put money into the chain without anybody looking."""
    info = payment_env.registry.chains[CHAIN]
    async with payment_env.db.transaction() as conn:
        tip = await blocks.lock_tip(conn, actor.project_pk, info, payment_env.clock.now())
        new = blocks.NewTransfer(recipient=address, contract=info.token(symbol).contract, units=units)
        await blocks.transactions(conn, tip, [[new]], ids=payment_env.ids)
        await blocks.mine(conn, tip, 5, payment_env.clock.now())


async def test_two_projects_that_book_each_others_tokens_do_not_deadlock(payment_env, clock, monkeypatch):
    """One project's order ends with USDX while DAIX is confirmed, the other's the other way round; one merchant."""
    actors = [(payment_env.test, "USDX", "DAIX"), (payment_env.test2, "DAIX", "USDX")]
    payments = []
    for actor, token, _ in actors:
        made = (await payment_env.create(actor, token=token)).payment
        await payment_env.deposit(made.payment_id, actor, amount="4", confirmations=5)
        payments.append(made)
    clock.advance(seconds=4000)
    for (actor, _, other), made in zip(actors, payments, strict=True):
        await send(payment_env, actor, made.deposit_address, other, 5)
    together = asyncio.Barrier(2)
    confirm = judging._confirm

    async def confirmed_together(*args):
        confirmed = await confirm(*args)
        async with asyncio.timeout(60):
            await together.wait()
        return confirmed

    monkeypatch.setattr(judging, "_confirm", confirmed_together)
    info = payment_env.registry.chains[CHAIN]
    done = await asyncio.gather(
        *[payment_env.sandbox.follow(actor.project_pk, info) for actor, _, _ in actors], return_exceptions=True
    )
    assert done == [None, None]
    assert await payment_env.balance("USDX") == {"available": 4_000_000, "held": 5}
    assert await payment_env.balance("DAIX") == {"available": 4 * 10**18, "held": 5}


async def test_time_that_passes_waits_for_a_look_that_is_being_stored(payment_env):
    """A poll holds the cursor, then deposits, then payments; passing time changes the same rows."""
    made = (await payment_env.create(payment_env.test)).payment
    await payment_env.deposit(made.payment_id, amount="4", confirmations=0)
    scope = payment_env.test.project_pk
    async with payment_env.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT 1 FROM chain_cursors WHERE scope = $1 FOR UPDATE", (scope,))
        await conn.exec_driver_sql("SELECT 1 FROM deposits WHERE scope = $1 FOR UPDATE", (scope,))
        passing = asyncio.create_task(payment_env.advance(60))
        await asyncio.sleep(0.3)
        try:
            await conn.exec_driver_sql("SELECT 1 FROM payments WHERE scope = $1 FOR NO KEY UPDATE", (scope,))
        except DBAPIError:
            passing.cancel()
            raise
    await passing


async def test_amounts_are_bounded_so_that_their_sums_can_be_counted(payment_env):
    made = (await payment_env.create(payment_env.test, token="MEM")).payment
    most = str(UNITS_MAX // 10**18)
    with pytest.raises(InvalidError, match="amount"):
        await payment_env.deposit(made.payment_id, amount=f"{most}0")
    for _ in range(12):
        await payment_env.deposit(made.payment_id, amount=most, confirmations=5)
    assert sum((await payment_env.balance("MEM")).values()) == 12 * UNITS_MAX


async def count_sent(payment_env, actor):
    """Count what anybody has sent on a project's simulated chain."""
    async with payment_env.db.autocommit() as conn:
        asked = "SELECT count(*) FROM sandbox_transfers WHERE project_pk = $1"
        return (await conn.exec_driver_sql(asked, (actor.project_pk,))).scalar_one()


def looked_at_through(monkeypatch, view_of):
    """Have simulated chains looked at through what ``view_of`` makes of each of them."""

    class Seen(SandboxChain):
        @asynccontextmanager
        async def view(self):
            yield view_of(self)

    monkeypatch.setattr(service, "SandboxChain", Seen)


async def test_whoever_uses_a_chain_first_while_others_go_on_changing_it_is_told_that_it_stands_there(
    payment_env, monkeypatch
):
    """Another process mines a block whenever this one looks, so that it never sees the end of the chain."""
    actor = payment_env.test
    info = payment_env.registry.chains[CHAIN]
    payment = (await payment_env.create(actor)).payment

    class Growing(SandboxView):
        async def head(self):
            async with payment_env.db.transaction() as conn:
                now = payment_env.clock.now()
                await blocks.mine(conn, await blocks.lock_tip(conn, actor.project_pk, info, now), 1, now)
            return await super().head()

        async def scan(self, *_):
            raise InconsistentChainError("it changed while it was read")

    looked_at_through(monkeypatch, Growing)
    with pytest.raises(UnavailableError, match="stands in it already") as told:
        await payment_env.deposit(payment.payment_id, actor, amount="10", confirmations=5)
    assert (told.value.code, await count_sent(payment_env, actor)) == ("SANDBOX_BUSY", 1)

    monkeypatch.undo()
    await payment_env.sandbox.follow(actor.project_pk, info)
    assert (await payment_env.read(payment.payment_id, actor)).status == "paid"


async def test_where_a_chain_could_not_be_begun_nothing_of_what_was_asked_for_is_done(payment_env, monkeypatch):
    actor = payment_env.test
    payment = (await payment_env.create(actor)).payment

    class Torn(SandboxView):
        async def head(self):
            raise InconsistentChainError("it changed while it was read")

    looked_at_through(monkeypatch, Torn)
    with pytest.raises(UnavailableError, match="ask again") as told:
        await payment_env.deposit(payment.payment_id, actor, amount="10", confirmations=5)
    assert (told.value.code, await count_sent(payment_env, actor)) == ("SANDBOX_NOT_BEGUN", 0)

    monkeypatch.undo()
    await payment_env.deposit(payment.payment_id, actor, amount="10", confirmations=5)
    assert (await payment_env.read(payment.payment_id, actor)).status == "paid"
