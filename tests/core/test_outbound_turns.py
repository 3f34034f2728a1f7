"""Engines that take turns: whoever has waited for another one's lock sees what that one has stored meanwhile."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.sending import finality_store, store
from cambist.services.sending.context import EngineContext
from cambist.services.sending.engine import Engine
from cambist.services.sending.finalizing import finalize
from cambist.services.sending.rows import TX, IntentRow, tx_row
from tests.core.test_outbound_order import waiting_of
from tests.support.treasury import Treasury
from tests.support.waiting import waits_for_a_lock

pytestmark = pytest.mark.slow

AMOUNT = 5_000_000


@pytest.fixture
async def treasury(ready_treasury):
    return ready_treasury


async def waiting_payout(treasury: Treasury, context: EngineContext) -> IntentRow:
    await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    (intent,) = await waiting_of(treasury, context)
    return intent


async def is_deep(treasury: Treasury, engine: Engine) -> None:
    """Have what was sent be mined, be known to be, and be deep by now."""
    await treasury.mine()
    await engine._follower.follow()
    await treasury.mine(treasury.info.confirmations + 1)


DIE = """
WITH slot AS (
    INSERT INTO outbound_slots (intent_pk, address_pk, chain, scope, sequence, state, created_at)
    VALUES ($1, $2, $3, $4, $5, 'dead', now()) RETURNING id
)
INSERT INTO outbound_txs (slot_pk, chain, scope, tx_id, raw, fee_limit, fee_price, fee_extra, state, created_at)
SELECT id, $3, $4, $6, '', 0, 0, 0, 'gone', now() FROM slot
"""


async def dies(conn: AsyncConnection, context: EngineContext, intent: IntentRow, sequence: int) -> None:
    """Have an intent have had this nonce, which something else has used."""
    where = intent.id, intent.source.pk, *context.chain_scope.key, sequence
    await conn.exec_driver_sql(DIE, (*where, f"dead-{sequence}"))


async def test_who_has_waited_for_a_sender_sees_what_died_meanwhile(treasury):
    context = treasury.engine().context
    intent = await waiting_payout(treasury, context)
    async with treasury.db.transaction() as conn:
        for sequence in (70, 60):
            await dies(conn, context, intent, sequence)

    async def locks() -> object:
        async with treasury.db.transaction() as conn:
            await store.lock_sender(conn, context.chain_scope, intent.source.pk, 0)
            return await store.lock_with_dead_slots(conn, [intent], treasury.clock.now())

    assert await locks() == {intent.id: [70, 60]}, "in the order in which they were had"
    async with treasury.db.transaction() as conn:
        await store.lock_sender(conn, context.chain_scope, intent.source.pk, 0)
        act = asyncio.create_task(locks())
        await waits_for_a_lock(conn, act)
        assert not act.done(), "it waits for the one who has the sender"
        await conn.exec_driver_sql("UPDATE outbound_slots SET sequence = NULL WHERE sequence = 70")
        await dies(conn, context, intent, 69)
    assert await act == {intent.id: [60, 69]}
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql("UPDATE outbound_slots SET sequence = NULL WHERE sequence IN (60, 69)")
    assert await locks() == {intent.id: []}, "it has had some"


async def test_what_is_added_to_a_slot_while_another_one_waits_to_close_it_is_gone_with_that(treasury):
    engine = treasury.engine()
    context = engine.context
    await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    await engine.tick()
    async with treasury.db.autocommit() as conn:
        tx_pk, slot_pk = (await conn.exec_driver_sql("SELECT id, slot_pk FROM outbound_txs ORDER BY id DESC")).first()
    await is_deep(treasury, engine)
    async with treasury.db.transaction() as conn:
        assert [tx.id for tx in await store.lock_slot(conn, slot_pk)] == [tx_pk]
        act = asyncio.create_task(finalize(context, undoes=False))
        await waits_for_a_lock(conn, act)
        assert not act.done(), "it waits for the one who has the slot"
        await conn.exec_driver_sql(
            "INSERT INTO outbound_txs (slot_pk, chain, scope, tx_id, raw, fee_limit, fee_price, fee_extra, created_at)"
            " SELECT slot_pk, chain, scope, 'outbids', raw, fee_limit, fee_price, fee_extra, created_at"
            " FROM outbound_txs WHERE id = $1",
            (tx_pk,),
        )
    assert await act
    async with treasury.db.autocommit() as conn:
        found = await conn.exec_driver_sql(
            "SELECT state, incarnation FROM outbound_txs WHERE slot_pk = $1 ORDER BY id", (slot_pk,)
        )
        assert [tuple(row) for row in found] == [("final", 1), ("gone", 0)]
    await treasury.work(engine)
    await treasury.check_books()


async def test_what_another_one_has_closed_meanwhile_is_not_closed_again(treasury):
    engine = treasury.engine()
    await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    await engine.tick()
    await is_deep(treasury, engine)
    async with treasury.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT FROM outbound_slots WHERE state = 'open' FOR UPDATE")
        act = asyncio.create_task(finalize(engine.context, undoes=False))
        await waits_for_a_lock(conn, act)
        assert not act.done(), "it waits for the one who has the slot"
        await conn.exec_driver_sql("UPDATE outbound_slots SET state = 'dead' WHERE state = 'open'")
    assert not await act


async def test_what_becomes_final_together_is_locked_in_everybodys_order(treasury):
    """An engine that has read two as waiting, and lets them wait, locks them in the order of their ids."""
    engine = treasury.engine()
    for number in (1, 2):
        await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(number))
    first, second = sorted(one.id for one in await waiting_of(treasury, engine.context))
    async with treasury.db.autocommit() as conn:
        # It is sent before the other.
        await conn.exec_driver_sql("UPDATE outbound_intents SET priority = priority - 1 WHERE id = $1", (second,))
    await engine.tick()
    await is_deep(treasury, engine)
    locked = "SELECT state FROM outbound_intents WHERE id = $1 FOR UPDATE"
    async with treasury.db.transaction() as conn:
        await conn.exec_driver_sql(locked, (first,))
        act = asyncio.create_task(finalize(engine.context, undoes=False))
        await waits_for_a_lock(conn, act)
        found = await conn.exec_driver_sql(f"{locked} NOWAIT", (second,))
        assert found.scalar_one() == "sending", "nobody has it who waits for the other"
    assert await act
    async with treasury.db.autocommit() as conn:
        states = await conn.exec_driver_sql(
            "SELECT state FROM outbound_intents WHERE id = ANY($1::bigint[])", ([first, second],)
        )
        assert list(states.scalars()) == ["done", "done"]
    await treasury.check_books()


async def test_what_becomes_final_is_told_as_it_is_by_then(treasury):
    engine = treasury.engine()
    context = engine.context
    payout_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    await engine.tick()
    for incarnation in (1, 2):
        await is_deep(treasury, engine)
        async with treasury.db.engine.opened(transaction=True) as conn:
            depth = await finality_store.lock_depth(conn, context.chain_scope)
            # As what had failed, and was mined after all once a reorg had undone that.
            await conn.exec_driver_sql("UPDATE outbound_intents SET reason = 'Refused.' WHERE state = 'sending'")
            (tx,) = await finality_store.close_final(conn, context.chain_scope, depth, treasury.clock.now())
            rows = await conn.exec_driver_sql(f"{TX} WHERE t.id = $1", (tx.id,))
            assert tx == tx_row(rows.one())
            ended = await conn.exec_driver_sql(
                "SELECT state, reason, finished_at FROM outbound_intents WHERE id = $1", (tx.intent.id,)
            )
            assert ended.one() == ("done", None, treasury.clock.now())
            assert (tx.state, tx.incarnation, tx.intent.update.incarnation) == ("final", incarnation, incarnation)
            await conn.rollback()
        await treasury.work(engine)
        assert (await treasury.payout(payout_id)).status == "completed"
        if incarnation == 1:
            treasury.chain.reorg(treasury.info.confirmations + 2, new_blocks=treasury.info.confirmations + 3)
            await treasury.poll()
            await engine.tick()
            assert (await treasury.payout(payout_id)).status == "broadcast"
            await engine.tick()  # which broadcasts it again
    await treasury.check_books()
