"""What an operator pauses on a chain stands still, and neither money nor time is lost by it."""

from __future__ import annotations

import pytest

from cambist.services import chain_pauses
from cambist.services.chain_pauses import CACHE_S, ChainPauses, Pausable, Pause
from cambist.services.errors import ConflictError, NotFoundError, UnavailableError
from tests.support.payment_env import PaymentEnv, registry
from tests.support.treasury import Treasury

AMOUNT = 5_000_000
REGISTRY = registry()


def of(what: Pausable, clock, chain: str = "memory") -> Pause:
    return Pause(chain=chain, what=what, reason="its nodes lie", paused_by="op_1", paused_at=clock.now())


async def pause(db, clock, pauses, what: Pausable) -> None:
    async with db.transaction() as conn:
        await chain_pauses.pause(conn, REGISTRY, of(what, clock))
    pauses.forget()


async def resume(db, pauses, what: Pausable) -> None:
    async with db.transaction() as conn:
        await chain_pauses.resume(conn, "memory", what)
    pauses.forget()


@pytest.fixture
async def treasury(funded_treasury):
    yield funded_treasury
    await funded_treasury.check_books()


async def waits_for(treasury: Treasury, payout_id: str) -> tuple[str, str | None]:
    async with treasury.db.autocommit() as conn:
        found = await conn.exec_driver_sql("SELECT status, waits_for FROM payouts WHERE payout_id = $1", (payout_id,))
        return tuple(found.one())


async def signed(treasury: Treasury) -> int:
    async with treasury.db.autocommit() as conn:
        return (await conn.exec_driver_sql("SELECT count(*) FROM outbound_txs")).scalar_one()


async def test_each_is_paused_once_and_resumed_once(db, clock):
    async with db.transaction() as conn:
        await chain_pauses.pause(conn, REGISTRY, of(Pausable.SENDING, clock))
        await chain_pauses.pause(conn, REGISTRY, of(Pausable.WATCHING, clock))
        with pytest.raises(ConflictError):
            await chain_pauses.pause(conn, REGISTRY, of(Pausable.SENDING, clock))
        with pytest.raises(NotFoundError):
            await chain_pauses.pause(conn, REGISTRY, of(Pausable.SENDING, clock, "nowhere"))
        before = await chain_pauses.resume(conn, "memory", Pausable.SENDING)
        assert (before.reason, before.paused_by, before.paused_at) == ("its nodes lie", "op_1", clock.now())
        with pytest.raises(ConflictError):
            await chain_pauses.resume(conn, "memory", Pausable.SENDING)
        assert list(await chain_pauses.load(conn)) == [("memory", "watching")]


async def test_a_process_goes_by_the_newest_that_it_knows_of_a_pause(db, clock):
    """What was told of one chain, or what was read of all of them."""
    pauses, what = ChainPauses(db, clock), Pausable.SENDING
    pauses.tell("memory", what, is_paused=False, asked_at=clock.monotonic())
    async with db.transaction() as conn:
        await chain_pauses.pause(conn, REGISTRY, of(what, clock))
    assert not await pauses.are_in_force("memory", what)
    clock.advance(CACHE_S / 2)
    await pauses.get()
    assert await pauses.are_in_force("memory", what)
    clock.advance(CACHE_S / 4)
    pauses.tell("memory", what, is_paused=False, asked_at=clock.monotonic())
    assert not await pauses.are_in_force("memory", what)
    clock.advance(CACHE_S)
    assert await pauses.are_in_force("memory", what)


@pytest.mark.slow
async def test_what_is_out_is_finished_and_what_waits_is_sent_when_sending_is_resumed(treasury, db, clock):
    engine = treasury.engine()
    out = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    for _ in range(4):
        await engine.tick()
        clock.advance(2)
    while (await waits_for(treasury, out))[0] != "broadcast":
        await treasury.mine()
        await engine.tick()
    await pause(db, clock, treasury.pauses, Pausable.SENDING)
    held = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2))
    before = await signed(treasury)
    result = await engine.tick()
    assert result.paused
    assert await waits_for(treasury, held) == ("processing", "paused")
    # Another worker, which starts later, does as this one does, however long it takes.
    late = treasury.engine()
    for _ in range(5):
        await treasury.mine(2)
        clock.advance(600)
        treasury.pauses.forget()
        assert (await late.tick()).paused
    assert await signed(treasury) == before
    assert (await waits_for(treasury, out))[0] == "completed"
    await resume(db, treasury.pauses, Pausable.SENDING)
    await treasury.work(late)
    assert await waits_for(treasury, held) == ("completed", None)


async def test_a_stuck_transaction_is_not_replaced_while_sending_is_paused(treasury, db, clock):
    engine = treasury.engine()
    payout = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    while (await waits_for(treasury, payout))[0] != "broadcast":
        await treasury.mine()
        await engine.tick()
    await pause(db, clock, treasury.pauses, Pausable.SENDING)
    before = await signed(treasury)
    clock.advance(120)
    treasury.pauses.forget()
    await engine.tick()
    assert await signed(treasury) == before
    await resume(db, treasury.pauses, Pausable.SENDING)
    await engine.tick()
    assert await signed(treasury) == before + 1
    await treasury.work(engine)


async def test_what_waits_for_the_signer_keeps_that_reason(treasury, db, clock):
    await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    async with db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE outbound_intents SET reason = 'signer: ALREADY_SIGNED'")
    await pause(db, clock, treasury.pauses, Pausable.SENDING)
    await treasury.engine().tick()
    async with db.autocommit() as conn:
        reasons = await conn.exec_driver_sql("SELECT reason FROM outbound_intents WHERE state = 'waiting'")
        assert reasons.scalars().all() == ["signer: ALREADY_SIGNED"]
    await resume(db, treasury.pauses, Pausable.SENDING)
    await treasury.work(treasury.engine())


async def test_nobody_is_asked_to_pay_on_a_chain_that_is_not_watched(db, clock, ids):
    env = await PaymentEnv(db, clock, ids).open()
    made = await env.create(idempotencyKey="first")
    await pause(db, clock, env.context.pauses, Pausable.WATCHING)
    with pytest.raises(UnavailableError) as refused:
        await env.create()
    assert refused.value.code == "CHAIN_UNAVAILABLE"
    assert (await env.create(idempotencyKey="first")).payment.payment_id == made.payment.payment_id
    await env.create(env.test)
    await resume(db, env.context.pauses, Pausable.WATCHING)
    await env.create()
