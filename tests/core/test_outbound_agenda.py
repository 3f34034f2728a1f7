"""A tick does what there is to do, whichever step that is, and asks one question where there is nothing."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
from msgspec import structs

from cambist.services.chain_pauses import ChainPauses
from cambist.services.sending import defer_store, finality_store, store
from cambist.services.sending.agenda import read_agenda
from cambist.services.sending.engine import Engine
from cambist.services.sending.gas import funding
from tests.support.anvil_treasury import anvil_treasury
from tests.support.dated_treasury import dated_treasury
from tests.support.forgetful import Forgetful
from tests.support.pausing import paused
from tests.support.payment_env import registry
from tests.support.plays import play
from tests.support.statements import statements
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

AMOUNT = 5_000_000


@pytest.fixture
async def treasury(funded_treasury):
    yield funded_treasury
    await funded_treasury.check_books()


@pytest.fixture
async def lending(db, clock, ids, tmp_path):
    """Give a merchant on a chain where the gas station lends what a transfer needs, and finality is asked for."""
    async with dated_treasury(db, clock, ids, tmp_path) as treasury:
        treasury.chain.endow(treasury.station, 10**12)
        await play(treasury, Treasury.open_paid, ("USDX", 100 * AMOUNT))
        yield treasury


async def due(treasury: Treasury, *, collects_all: bool = False) -> set[str]:
    """Return the steps that have something to do now."""
    async with treasury.db.autocommit() as conn:
        agenda = await read_agenda(conn, treasury.engine().context, treasury.clock.now(), collects_all=collects_all)
    return {step for step, is_due in structs.asdict(agenda).items() if is_due}


async def states(treasury: Treasury, kind: str) -> list[tuple[str, str | None]]:
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT state, reason FROM outbound_intents WHERE kind = $1 ORDER BY id", (kind,)
        )
        return [tuple(row) for row in rows]


async def tx_states(treasury: Treasury) -> list[str]:
    async with treasury.db.autocommit() as conn:
        return list((await conn.exec_driver_sql("SELECT state FROM outbound_txs ORDER BY id")).scalars())


async def sent(treasury: Treasury, engine: Engine, *, rounds: int = 1) -> str:
    """Have a payout be on its way; return its identifier."""
    payout_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    assert await due(treasury) == {"send"}
    await engine.tick()
    for _ in range(rounds - 1):
        if (await treasury.payout(payout_id)).status != "broadcast":
            await treasury.mine()
            await engine.tick()
    assert (await treasury.payout(payout_id)).status == "broadcast"
    return payout_id


async def test_a_tick_with_nothing_to_do_asks_one_question(treasury):
    engine = await treasury.ready()
    assert await due(treasury, collects_all=True) == set()
    for seconds in (0, 0.5, 60):
        treasury.clock.advance(seconds)
        with statements(treasury.db) as executed:
            done = await engine.tick()
        assert (done.more, done.told, done.collected, done.paused) == (False, False, 0, False)
        assert len(executed) == 1


async def test_a_tick_that_waits_for_blocks_asks_what_there_is_to_do_and_what_is_open(treasury):
    engine = await treasury.ready()
    await sent(treasury, engine)
    await treasury.mine()
    await engine.tick()
    with statements(treasury.db) as executed:
        await engine.tick()
    assert len(executed) == 2
    await treasury.work(engine)


async def test_a_tick_that_sees_what_is_mined_and_not_deep_asks_once_what_there_is_to_do(treasury):
    engine = await treasury.ready()
    await sent(treasury, engine)
    await treasury.mine()
    with statements(treasury.db) as executed:
        done = await engine.tick()
    assert len(executed) == 3
    assert done.follows
    assert "mined" in await tx_states(treasury)
    await treasury.work(engine)


async def test_what_waits_again_for_gas_that_is_on_its_way_costs_two_statements(treasury):
    engine = await treasury.ready()
    await treasury.receive("USDX", AMOUNT)
    treasury.chain.faults.mining_paused = True
    while ("sending", None) not in await states(treasury, "top_up"):
        await engine.tick()
    assert ("waiting", "gas") in await states(treasury, "collection")
    treasury.clock.advance(1)
    with statements(treasury.db) as executed:
        await engine.tick()
    assert executed[-3:] == [store._WAITING_AND_HELD, funding._DEPOSIT_LEFT, defer_store._DEFER_AGAIN]
    treasury.chain.faults.mining_paused = False
    await treasury.work(engine)


async def test_a_tick_that_has_finished_all_asks_for_no_other_one(treasury):
    engine = await treasury.ready()
    await sent(treasury, engine)
    await treasury.mine(1 + treasury.info.confirmations)
    done = await engine.tick()
    assert (done.more, done.told) == (False, True)


async def test_a_tick_that_leaves_some_of_what_is_deep_asks_for_another_at_once(treasury, monkeypatch):
    engine = await treasury.ready()
    to_addresses = [await treasury.stranger(number) for number in range(2)]
    await treasury.pay_out_many("USDX", [(to_address, AMOUNT) for to_address in to_addresses])
    await engine.tick()
    await treasury.mine(1 + treasury.info.confirmations)
    monkeypatch.setattr(finality_store, "FINISHED_MAX", 1)
    assert (await engine.tick()).more
    assert not (await engine.tick()).more
    assert await treasury.is_idle()


async def test_what_following_asks_for_is_sent_by_the_same_tick(treasury):
    engine = await treasury.ready()
    treasury.chain.faults.sequences_ahead = 2
    await sent(treasury, engine)
    treasury.chain.faults.sequences_ahead = 0
    treasury.clock.advance(treasury.settings.rebroadcast_s + 1)
    assert await due(treasury) == {"follow"}
    await engine.tick()
    assert await states(treasury, "repair") == [("sending", None)] * 2
    await treasury.work(engine)


@pytest.mark.parametrize("is_wished", [False, True])
async def test_gas_that_a_higher_fee_takes_is_sent_by_the_same_tick(treasury, is_wished):
    engine = await treasury.ready()
    payout_id, before = await sent(treasury, engine), len(await states(treasury, "top_up"))
    treasury.chain.faults.mining_paused = True
    treasury.chain.fees.base_price *= 200
    async with treasury.db.autocommit() as conn:
        if is_wished:
            await conn.exec_driver_sql(
                "UPDATE outbound_slots SET raise_asked_at = $1 WHERE state = 'open'", (treasury.clock.now(),)
            )
    treasury.clock.advance(1 if is_wished else treasury.settings.stuck_after_s + 1)
    await engine.tick()
    assert (await states(treasury, "top_up"))[before:] == [("sending", None)]
    treasury.chain.faults.mining_paused = False
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"


async def test_what_is_to_be_cancelled_is_cancelled(treasury):
    engine = await treasury.ready()
    payout_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    await treasury.cancel(payout_id)
    assert await due(treasury) == {"cancel", "send"}  # it waits, and send_waiting() leaves it out
    await engine.tick()
    assert (await treasury.payout(payout_id)).status == "cancelled"
    assert await due(treasury) == set()


async def test_what_waits_is_sent_and_what_is_sent_is_followed(treasury):
    engine = await treasury.ready()
    before = len(await tx_states(treasury))
    await sent(treasury, engine)
    assert await due(treasury) == {"follow"}
    assert (await tx_states(treasury))[before:] == ["sent"]
    await treasury.mine()
    assert await due(treasury) == {"follow"}
    await engine.tick()
    assert (await tx_states(treasury))[before:] == ["mined"]
    await treasury.work(engine)


async def test_what_is_found_mined_and_deep_is_finished_by_the_same_tick(treasury):
    engine = await treasury.ready()
    payout_id = await sent(treasury, engine)
    await treasury.mine(1 + treasury.info.confirmations)
    assert await due(treasury) == {"follow"}
    await engine.tick()
    assert (await treasury.payout(payout_id)).status == "completed"
    assert await due(treasury) == set()


async def test_what_was_mined_is_finished_at_the_very_block_that_makes_it_deep(treasury):
    engine = await treasury.ready()
    payout_id = await sent(treasury, engine)
    await treasury.mine()
    for _ in range(treasury.info.confirmations):
        await engine.tick()
        assert await due(treasury) == {"follow"}
        await treasury.mine()
    assert await due(treasury) == {"follow", "finalize"}
    await engine.tick()
    assert (await treasury.payout(payout_id)).status == "completed"


async def test_what_was_final_and_has_left_the_chain_is_taken_back(treasury):
    engine = await treasury.ready()
    before, payout_id = treasury.chain.height, await sent(treasury, engine)
    await treasury.mine(1 + treasury.info.confirmations)
    await engine.tick()
    assert (await treasury.payout(payout_id)).status == "completed"
    # The shorter branch is not believed, and one that is as long is.
    treasury.chain.reorg(treasury.chain.height - before)
    await treasury.poll()
    assert await due(treasury) == {"undo"}
    assert (await engine.tick()).more
    assert (await treasury.payout(payout_id)).status == "broadcast"
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"


async def test_what_a_reorg_takes_whose_block_was_not_read_yet_is_found_out_and_sent_again(treasury):
    engine = await treasury.ready()
    payout_id = await sent(treasury, engine)
    treasury.chain.mine()
    await engine.tick()
    assert (await tx_states(treasury))[-1] == "mined"
    treasury.chain.reorg(1)
    await engine.tick()
    assert (await tx_states(treasury))[-1] == "sent"
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"


async def test_where_finality_is_asked_for_nothing_is_finished_before_it(lending):
    engine = await lending.ready()
    payout_id = await lending.pay_out("USDX", AMOUNT, await lending.stranger(1))
    rounds = 0
    while (await lending.payout(payout_id)).status != "completed":
        async with lending.db.autocommit() as conn:
            deep = await conn.exec_driver_sql(
                "SELECT count(*) FROM outbound_txs t JOIN chain_cursors c USING (chain, scope)"
                " WHERE t.state = 'mined' AND t.height <= least(c.finalized, c.height - $1::bigint)",
                (lending.info.confirmations,),
            )
        assert ("finalize" in await due(lending)) is (deep.scalar_one() > 0)
        await engine.tick()
        await lending.mine()
        rounds += 1
    assert rounds > lending.info.confirmations


async def test_behind_the_lock_too_no_more_of_a_chain_is_deep_than_is_final_where_that_is_asked_for(lending):
    chain_scope = lending.engine().context.chain_scope
    async with lending.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE chain_cursors SET finalized = 1")
        locked = await finality_store.lock_depth(conn, chain_scope)
        assert locked is not None
        assert locked == await finality_store.depth(conn, chain_scope)
        assert locked.deep == 1 < locked.height - lending.info.confirmations


async def test_deposits_are_collected_when_it_is_time_to_look_at_them(treasury):
    engine = await treasury.ready()
    assert await due(treasury, collects_all=True) == set()
    await treasury.receive("USDX", 50_000_000)
    assert await due(treasury) == set()
    assert await due(treasury, collects_all=True) == {"collect"}
    assert (await engine.tick()).collected == 1
    # Asked for and sent by the same tick, as far as it can be.
    assert (await states(treasury, "collection"))[-1] != ("waiting", None)


async def test_deposits_are_collected_at_once_when_a_payout_waits_for_them(treasury):
    engine = await treasury.ready()
    units = (await treasury.balance("USDX")).available
    await treasury.receive("USDX", 3)  # not worth its fee
    assert (await engine.tick()).collected == 0
    payout_id = await treasury.pay_out("USDX", units + 3, await treasury.stranger(1))
    assert await due(treasury) == {"send"}
    await engine.tick()
    assert (await treasury.payout(payout_id)).waits_for == "collection"
    assert await due(treasury) == {"collect"}
    assert (await engine.tick()).collected == 1


async def test_who_wishes_for_a_collection_is_found_among_however_many_that_nobody_wishes_for(treasury):
    engine, now = await treasury.ready(), treasury.clock.now()
    await treasury.receive("USDX", 3)
    await engine.tick()
    async with treasury.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO uncollected_funds (uncollected_id, chain, scope, address_pk, merchant_pk, token, contract,"
            " decimals, units, reason, judged_at, created_at)"
            " SELECT 'unc_' || n, chain, scope, address_pk, merchant_pk, token, 'mem1' || n, decimals, units, reason,"
            " judged_at, created_at FROM uncollected_funds, generate_series(1, 5000) n"
        )
        await conn.exec_driver_sql("ANALYZE uncollected_funds")
    assert await rows_read(treasury) < 20
    assert await due(treasury) == set()
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql(
            "UPDATE uncollected_funds SET asked_at = $1 WHERE uncollected_id = 'unc_2500'", (now,)
        )
    assert await due(treasury) == {"asked_at"}
    assert await rows_read(treasury) < 20


async def rows_read(treasury: Treasury) -> int:
    """Count the rows of what is not collected that are read to know what there is to do, each time anew."""
    count = (
        "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables"
        " WHERE relname = 'uncollected_funds'"
    )
    context, now = treasury.engine().context, treasury.clock.now()
    async with treasury.db.transaction() as conn:
        before = (await conn.exec_driver_sql(count)).scalar_one()
        for _ in range(7):  # from the sixth time on, PostgreSQL may plan without looking at the values
            await read_agenda(conn, context, now, collects_all=False)
            await read_agenda(conn, context, now, collects_all=True)
        return (await conn.exec_driver_sql(count)).scalar_one() - before


async def test_what_is_lent_is_asked_back_when_nothing_else_is_to_be_done(lending):
    engine = await lending.ready()
    returns = len(await states(lending, "loan_return"))
    await sent(lending, engine, rounds=10)
    # A tick that finishes the payout would ask back what it needed.
    async with paused(lending):
        await lending.mine(20)
        await engine.tick()
    assert await due(lending) == {"ask_back"}
    await engine.tick()
    assert (await states(lending, "loan_return"))[returns:] == [("sending", None)]
    await lending.work(engine)
    with statements(lending.db) as executed:
        await engine.tick()
    assert len(executed) == 1


async def test_collections_that_wait_are_swept(db, clock, ids, tmp_path):
    async with anvil_treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open(station=0)
        await treasury.batch()
        await treasury.receive_many("USDT", [20_000_000, 30_000_000])
        engine = treasury.engine()
        await engine.tick()
        assert await states(treasury, "collection") == [("waiting", "gas_station_empty")] * 2
        assert await due(treasury) == set()
        await treasury.node.send_native(treasury.station, 10**19)
        await treasury.mine(seconds=15)
        assert await due(treasury) == {"send"}
        await engine.tick()
        assert await states(treasury, "sweep") == [("sending", None)]


async def test_what_becomes_due_is_held_back_while_sending_is_paused_and_sent_afterwards(treasury):
    engine = await treasury.ready()
    async with paused(treasury):
        assert (await engine.tick()).paused
        payout_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
        assert await due(treasury) == {"send", "paused"}
        await engine.tick()
        assert (await treasury.payout(payout_id)).waits_for == "paused"
    await engine.tick()
    assert (await treasury.payout(payout_id)).status == "broadcast"


async def test_a_pause_that_comes_while_a_tick_follows_holds_back_what_it_had_found_to_send(treasury, monkeypatch):
    engine = await treasury.ready()
    await sent(treasury, engine)
    payout_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2))
    assert await due(treasury) == {"follow", "send"}
    counts = treasury.chain.next_sequence
    async with AsyncExitStack() as pauses:

        async def pauses_first(address):
            if not await treasury.engine().context.is_paused():
                await pauses.enter_async_context(paused(treasury))
            return await counts(address)

        with monkeypatch.context() as patch:
            patch.setattr(treasury.chain, "next_sequence", pauses_first)
            assert (await engine.tick()).paused
        assert (await treasury.payout(payout_id)).waits_for == "paused"
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"


async def test_nothing_is_sent_before_it_is_known_what_the_gas_station_held(db, clock, ids, tmp_path):
    chain = Forgetful(registry().chains["memory"], finality_lag_blocks=15)
    async with Treasury(db, clock, ids, tmp_path, chain=chain) as treasury:
        await treasury.open()
        await treasury.receive("USDX", AMOUNT)
        payout_id, engine = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1)), treasury.engine()
        for _ in range(3):
            await engine.tick()
            await treasury.mine()
        assert await tx_states(treasury) == []
        await treasury.work(engine)
        assert (await treasury.payout(payout_id)).status == "completed"
        await treasury.check_books()


async def test_what_else_is_paused_keeps_nobody_from_sending(treasury):
    engine = await treasury.ready()
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO chain_pauses (chain, what, reason, paused_by, paused_at) VALUES"
            " ($1, 'watching', 'it lies', 'op_1', $2), ('another', 'sending', 'it lies', 'op_1', $2)",
            (treasury.info.id, treasury.clock.now()),
        )
    treasury.pauses.forget()
    assert await due(treasury) == set()
    await sent(treasury, engine)
    await treasury.work(engine)


async def test_a_process_learns_with_what_there_is_to_do_that_sending_is_resumed_or_paused(treasury):
    """Where following has taken longer than it may rely on that, it asks once more before it signs."""
    context = (await treasury.ready()).context
    # What this one knows of pauses nobody tells it to forget.
    engine = Engine(structs.replace(context, pauses=ChainPauses(treasury.db, treasury.clock)), treasury.keys)
    payouts = []
    for number in range(3):
        async with paused(treasury):
            payouts.append(await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(number)))
            await engine.tick()
            assert await engine.context.is_paused()
        if number < 2:
            assert (await engine.tick()).paused is False
            assert (await treasury.payout(payouts[number])).status == "broadcast"
    async with AsyncExitStack() as stack:

        async def pause(call):
            if not met:
                met.append(call)
                await stack.enter_async_context(paused(treasury))
                treasury.clock.advance(1)

        met = []
        treasury.chain.faults.before = pause
        done = await engine.tick()
        assert (done.paused, done.more) == (True, False)
        treasury.chain.faults.before = None
    await engine.tick()
    assert (await treasury.payout(payouts[2])).status == "broadcast"


async def test_what_a_cancelled_payout_gives_back_is_sent_by_the_same_tick_as_what_else_waits(treasury):
    engine = await treasury.ready()
    cancelled = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    other = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2))
    await treasury.cancel(cancelled)
    await engine.tick()
    assert [(await treasury.payout(one)).status for one in (cancelled, other)] == ["cancelled", "broadcast"]
