"""What may have been sent ends by the transaction that used its nonce: an operator names it, the chain proves it."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from cambist.services.errors import ConflictError
from cambist.services.sending import settling
from cambist.services.sending.engine import Engine
from tests.support.forgotten import (
    AMOUNT,
    NUMBERED,
    OPENED,
    another_took_its_nonce,
    cancelling,
    events,
    found_by_audit,
    money,
    opened,
    row_of,
    sent_and_forgotten,
    settle,
    status,
    txs_of,
)
from tests.support.fragile import Deeds, KilledError, fragile

pytestmark = pytest.mark.slow


@pytest.fixture(params=["memory"])
async def treasury(request, db, clock, ids, tmp_path):
    async with opened(request.param, db, clock, ids, tmp_path) as treasury:
        yield treasury


@pytest.mark.parametrize("treasury", OPENED, indirect=True)
async def test_a_transfer_that_was_sent_and_forgotten_completes_by_its_own_transaction(treasury):
    before, to_address = await money(treasury), await treasury.stranger(1)
    payout_id, tx_id = await sent_and_forgotten(treasury, to_address)
    row = await row_of(treasury, payout_id)
    assert (row.signed_sequence is None) == (row.signed_tx_id is not None)
    assert row.signed_tx_id in {None, tx_id}
    # However its id is written.
    named = f"0x{tx_id.removeprefix('0x').upper()}" if treasury.info.id != "memory" else tx_id
    assert await settle(treasury, payout_id, named)
    assert not await settle(treasury, payout_id, named)
    await asyncio.gather(treasury.engine().tick(), treasury.engine().tick())
    await treasury.work(treasury.engine(), rounds=3, until="enough")
    payout = await treasury.payout(payout_id)
    assert (payout.status, payout.tx_id) == ("completed", tx_id)
    assert await treasury.on_chain(to_address, treasury.symbol) == AMOUNT
    assert await money(treasury) == (before[0] - AMOUNT, 0)
    assert await events(treasury, payout_id) == ["payout.completed"]
    assert await treasury.is_idle()
    assert not await settle(treasury, payout_id, named)
    with pytest.raises(ConflictError) as refused:
        await settle(treasury, payout_id, "another")
    assert refused.value.code == "ALREADY_ENDED"
    # What it sends next has a nonce of its own.
    await treasury.pay_out(treasury.symbol, AMOUNT, to_address)
    await treasury.work(treasury.engine())
    assert await treasury.on_chain(to_address, treasury.symbol) == 2 * AMOUNT


@pytest.mark.parametrize("treasury", NUMBERED, indirect=True)
async def test_a_transfer_whose_nonce_something_else_has_used_gives_its_money_back_once(treasury):
    before = await money(treasury)
    to_address, other_address = await treasury.stranger(1), await treasury.stranger(2)
    lost, other, tx_id = await another_took_its_nonce(treasury, to_address, other_address)
    assert await money(treasury) == (before[0] - 2 * AMOUNT, 2 * AMOUNT)
    assert await settle(treasury, lost, tx_id)
    await asyncio.gather(treasury.engine().tick(), treasury.engine().tick())
    payout = await treasury.payout(lost)
    assert (payout.status, payout.tx_id, payout.error) == ("cancelled", None, "It was cancelled by the merchant.")
    assert await money(treasury) == (before[0] - AMOUNT, AMOUNT)
    assert await events(treasury, lost) == ["payout.failed"]
    # The same transaction is the other's own.
    assert await settle(treasury, other, tx_id)
    await treasury.work(treasury.engine(), rounds=3, until="enough")
    ids = [(await row_of(treasury, one)).intent_id for one in (lost, other)]
    assert await found_by_audit(treasury) == [
        (ids[0], "gateway", "other", tx_id), (ids[1], "gateway", "own", tx_id),
    ]  # fmt: skip
    assert await status(treasury, other) == "completed"
    assert await money(treasury) == (before[0] - AMOUNT, 0)
    assert await treasury.on_chain(to_address, treasury.symbol) == 0
    assert await treasury.on_chain(other_address, treasury.symbol) == AMOUNT


@pytest.mark.parametrize("first", [0, 1])
async def test_of_two_that_are_alike_one_transaction_ends_one_as_sent_and_the_other_as_not_sent(treasury, first):
    before, to_address = await money(treasury), await treasury.stranger(1)
    *both, tx_id = await another_took_its_nonce(treasury, to_address, to_address)
    assert await settle(treasury, both[first], tx_id)
    assert await settle(treasury, both[1 - first], tx_id)
    for _ in range(4):
        await asyncio.gather(treasury.engine().tick(), treasury.engine().tick())
        await treasury.mine(seconds=40)
    assert sorted([await status(treasury, one) for one in both]) == ["cancelled", "completed"]
    assert await money(treasury) == (before[0] - AMOUNT, 0)
    assert await treasury.on_chain(to_address, treasury.symbol) == AMOUNT


@pytest.mark.parametrize("treasury", NUMBERED, indirect=True)
async def test_what_says_nothing_of_it_is_refused_and_changes_nothing(treasury):
    earlier = await treasury.pay_out(treasury.symbol, AMOUNT, await treasury.stranger(3))
    await treasury.work(treasury.engine())
    payout_id, tx_id = await sent_and_forgotten(treasury, await treasury.stranger(1))
    before, (wrong_nonce,) = await money(treasury), await txs_of(treasury, earlier)
    async with treasury.db.autocommit() as conn:
        top_up = await conn.exec_driver_sql(
            "SELECT t.tx_id FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
            " JOIN outbound_intents i ON i.id = s.intent_pk WHERE i.kind = 'top_up' LIMIT 1"
        )
        wrong_sender = top_up.scalar_one()
    for named, why in (
        ("nothing that is an id", settling.UNKNOWN),
        ("0x" + "ab" * 32, settling.UNKNOWN),
        (wrong_sender, "It was sent by"),
        (wrong_nonce, "It has the nonce"),
    ):
        assert await settle(treasury, payout_id, named)
        await treasury.engine().tick()
        row = await row_of(treasury, payout_id)
        assert (row.settle_asked_at, row.settle_tx_id) == (None, named)
        assert row.settle_refusal.startswith(why), row.settle_refusal
        assert (await status(treasury, payout_id), await money(treasury)) == ("cancelling", before)
    assert await settle(treasury, payout_id, tx_id)
    assert (await row_of(treasury, payout_id)).settle_refusal is None
    await treasury.work(treasury.engine(), rounds=3, until="enough")
    assert await status(treasury, payout_id) == "completed"


@pytest.mark.parametrize("treasury", ["dated", "tron"], indirect=True)
async def test_where_transactions_expire_only_what_was_signed_itself_says_anything(treasury):
    earlier = await treasury.pay_out(treasury.symbol, AMOUNT, await treasury.stranger(3))
    await treasury.work(treasury.engine())
    payout_id, tx_id = await sent_and_forgotten(treasury, await treasury.stranger(1))
    (other,) = await txs_of(treasury, earlier)
    assert await settle(treasury, payout_id, other)
    await treasury.engine().tick()
    row = await row_of(treasury, payout_id)
    assert tx_id in row.settle_refusal
    assert await status(treasury, payout_id) == "cancelling"
    assert await settle(treasury, payout_id, tx_id)
    await treasury.work(treasury.engine(), rounds=3, until="enough")
    assert await status(treasury, payout_id) == "completed"


@pytest.mark.parametrize("treasury", NUMBERED, indirect=True)
async def test_a_transaction_that_is_not_final_is_waited_for(treasury):
    payout_id, tx_id = await sent_and_forgotten(treasury, await treasury.stranger(1), mined=False)
    await settle(treasury, payout_id, tx_id)
    await treasury.engine().tick()
    row = await row_of(treasury, payout_id)
    assert (row.state, row.settle_asked_at is None, row.settle_refusal) == ("waiting", False, None), "in no block yet"
    await treasury.mine(1, seconds=40)
    await treasury.engine().tick()
    assert (await row_of(treasury, payout_id)).state == "waiting", "its block is not deep enough"
    await treasury.mine(treasury.info.confirmations + 1, seconds=40)
    await treasury.work(treasury.engine(), rounds=2, until="enough")
    assert await status(treasury, payout_id) == "completed"
    # While nothing had used the nonce, a transfer of nothing was to: it finds another one.
    await treasury.work(treasury.engine(), rounds=80)
    assert await status(treasury, payout_id) == "completed"


async def test_a_reorg_deeper_than_finality_has_it_followed_as_any_other(treasury):
    to_address = await treasury.stranger(1)
    payout_id, tx_id = await sent_and_forgotten(treasury, to_address)
    await settle(treasury, payout_id, tx_id)
    engine = treasury.engine()
    await treasury.work(engine, rounds=2, until="enough")
    assert await status(treasury, payout_id) == "completed"
    depth = treasury.chain.height - (await treasury.chain.transaction(tx_id)).block.height + 1
    treasury.chain.reorg(depth, mine_again=[], new_blocks=depth + 1)
    await treasury.poll()
    await engine.tick()
    assert await status(treasury, payout_id) == "broadcast"
    await treasury.work(engine)
    assert (await status(treasury, payout_id), await treasury.on_chain(to_address, "USDX")) == ("completed", AMOUNT)


async def test_a_transfer_that_was_mined_and_failed_gives_its_money_back(treasury):
    before, to_address = await money(treasury), await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    await treasury.engine().tick()
    (tx_id,) = await txs_of(treasury, payout_id)
    treasury.chain.faults.refusing = {(treasury.token("USDX").contract, to_address)}
    await treasury.mine(treasury.info.confirmations + 2)
    await treasury.forget_sending(payout_id)
    await cancelling(treasury, payout_id)
    await settle(treasury, payout_id, tx_id)
    await treasury.work(treasury.engine(), rounds=2, until="enough")
    payout = await treasury.payout(payout_id)
    assert (payout.status, payout.tx_id, payout.error) == ("failed", tx_id, "The transaction was mined, and failed.")
    assert (await money(treasury), await treasury.on_chain(to_address, "USDX")) == (before, 0)


async def test_a_token_that_is_registered_no_more_leaves_it_open_what_was_sent(treasury):
    payout_id, tx_id = await sent_and_forgotten(treasury, await treasury.stranger(1))
    before, context = await money(treasury), treasury.engine().context
    less = structs.replace(treasury.info, tokens=tuple(one for one in treasury.info.tokens if one.symbol != "USDX"))
    scope = structs.replace(context.chain_scope, info=less)
    await settle(treasury, payout_id, tx_id)
    await Engine(structs.replace(context, chain_scope=scope), treasury.keys).tick()
    assert (await row_of(treasury, payout_id)).settle_refusal == settling.UNCLEAR
    assert (await status(treasury, payout_id), await money(treasury)) == ("cancelling", before)
    await settle(treasury, payout_id, tx_id)
    await treasury.work(treasury.engine(), rounds=2, until="enough")
    assert await status(treasury, payout_id) == "completed"


@pytest.mark.parametrize("nature", ["own", "other"])
async def test_death_at_each_moment_ends_it_once(treasury, nature):
    before, outlived, moment = await money(treasury), False, 0
    spent = 0
    while not outlived:
        moment += 1
        to_address, other_address = await treasury.stranger(2 * moment), await treasury.stranger(2 * moment + 1)
        if nature == "own":
            payout_id, tx_id = await sent_and_forgotten(treasury, to_address)
            spent += AMOUNT
        else:
            payout_id, other, tx_id = await another_took_its_nonce(treasury, to_address, other_address)
            spent += AMOUNT
        await settle(treasury, payout_id, tx_id)
        try:
            await fragile(treasury.engine(), Deeds(moment)).tick()
            outlived = True
        except KilledError:
            pass
        treasury.clock.advance(40)
        await asyncio.gather(treasury.engine().tick(), treasury.engine().tick())
        await treasury.engine().tick()
        assert await status(treasury, payout_id) == ("completed" if nature == "own" else "cancelled"), moment
        assert len(await events(treasury, payout_id)) == 1, moment
        if nature == "other":
            await settle(treasury, other, tx_id)
            await treasury.work(treasury.engine(), rounds=2, until="enough")
        assert await money(treasury) == (before[0] - spent, 0), moment
    assert moment > (3 if nature == "own" else 2)


async def test_only_what_may_have_been_sent_is_ended_so(treasury):
    waits = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    for _ in range(2):
        with pytest.raises(ConflictError) as refused:
            await settle(treasury, waits, "any")
        assert refused.value.code == "NOTHING_TO_SETTLE"
        await treasury.engine().tick()
    await treasury.work(treasury.engine())
    with pytest.raises(ConflictError) as refused:
        await settle(treasury, waits, "any")
    assert refused.value.code == "ALREADY_ENDED"


async def test_a_transaction_that_is_named_while_another_is_looked_at_is_looked_at_next(treasury):
    payout_id, tx_id = await sent_and_forgotten(treasury, await treasury.stranger(1))
    await settle(treasury, payout_id, "ab" * 32)
    real = treasury.chain.find_tx

    async def slow(asked):
        treasury.chain.find_tx = real
        await settle(treasury, payout_id, tx_id)
        return await real(asked)

    treasury.chain.find_tx = slow
    await treasury.engine().tick()
    row = await row_of(treasury, payout_id)
    assert (row.settle_tx_id, row.settle_asked_at is None, row.settle_refusal) == (tx_id, False, None)
    treasury.clock.advance(40)
    await treasury.work(treasury.engine(), rounds=2, until="enough")
    assert await status(treasury, payout_id) == "completed"
