"""Batches: every row that can be paid or none, rows that are refused alone, and keys that never pay twice."""

import asyncio

import msgspec
import pytest
from sqlalchemy import event

from cambist.services.errors import ConflictError, ForbiddenError, ServiceError
from cambist.services.listing import Part
from cambist.services.payouts import read
from cambist.services.payouts.batch_rows import BatchRejectedError
from tests.support.payout_env import person

USDX = 10**6


def row(amount="10", name="ann", key=None):
    fields = {"toAddress": person(name), "amount": amount}
    return fields if key is None else {**fields, "idempotencyKey": key}


def codes(batch):
    return [(one.row, one.code) for one in batch.rejected]


async def test_every_row_becomes_a_payout_of_its_own(payout_env):
    await payout_env.fund(100 * USDX)
    batch = await payout_env.pay_all([row(str(number), f"person {number}") for number in range(1, 6)])
    assert (batch.total, batch.accepted, batch.replayed_rows, batch.rejected) == (15 * USDX, 5, 0, [])
    assert [(one.units, one.to_address) for one in batch.payouts] == [
        (number * USDX, person(f"person {number}")) for number in range(1, 6)
    ]
    assert {one.batch_id for one in batch.payouts} == {batch.batch_id}
    assert await payout_env.balances() == {"available": 85 * USDX, "pending": 15 * USDX, "custody_wallet": 100 * USDX}
    await payout_env.happens("final", *batch.payouts)
    ((told, data),) = await payout_env.events(batch.payouts[0].payout_id)
    assert (told, data["batchId"]) == ("payout.completed", batch.batch_id)
    async with payout_env.db.autocommit() as conn:
        page = await read.list_payouts(conn, payout_env.live.project_pk, Part(), batch_id=batch.batch_id)
    assert page.total == 5


async def test_where_the_balance_does_not_cover_all_rows_nothing_moves(payout_env):
    await payout_env.fund(30 * USDX - 1)
    with pytest.raises(ForbiddenError) as error:
        await payout_env.pay_all([row(key="a"), row(), row()], header_key="k")
    assert error.value.code == "INSUFFICIENT_BALANCE"
    assert await payout_env.balances() == {"available": 30 * USDX - 1, "custody_wallet": 30 * USDX - 1}
    for table in ("payouts", "payout_batches", "outbound_intents", "idempotency_keys"):
        assert await payout_env.payment_env.count(table) == 0
    await payout_env.fund(1)
    assert (await payout_env.pay_all([row(key="a"), row(), row()], header_key="k")).accepted == 3


async def test_a_bad_row_is_refused_alone_and_is_no_part_of_the_total(payout_env):
    await payout_env.fund(20 * USDX)
    await payout_env.settings(limits={"memory/USDX": {"perTransaction": "10"}})
    contract = payout_env.payment_env.registry.chains["memory"].token("USDX").contract
    rows = [
        row(),
        row("0"),
        {"toAddress": "nobody", "amount": "1"},
        row("1e3"),
        {"toAddress": contract, "amount": "1"},
        row("10.000001"),
        row("1000000000"),
        row(key=""),
        row(),
    ]
    batch = await payout_env.pay_all(rows, header_key="k")
    assert (batch.total, batch.accepted, len(batch.payouts)) == (20 * USDX, 2, 2)
    assert codes(batch) == [
        (1, "INVALID_AMOUNT"),
        (2, "INVALID_ADDRESS"),
        (3, "INVALID_AMOUNT"),
        (4, "TARGET_IS_CONTRACT"),
        (5, "PAYOUT_LIMIT_EXCEEDED"),
        (6, "PAYOUT_LIMIT_EXCEEDED"),
        (7, "VALIDATION_ERROR"),
    ]
    assert [one.field for one in batch.rejected] == [
        "amount", "toAddress", "amount", "toAddress", "amount", "amount", "idempotencyKey",
    ]  # fmt: skip
    again = await payout_env.pay_all(rows, header_key="k")
    assert again.replayed
    assert msgspec.structs.replace(again, replayed=False) == batch


async def test_a_batch_of_which_every_row_is_bad_is_refused_and_stores_nothing(payout_env):
    await payout_env.fund(10 * USDX)
    with pytest.raises(BatchRejectedError) as error:
        await payout_env.pay_all([row("0", key="a"), row("x")], header_key="k")
    assert (error.value.code, codes(error.value)) == ("BATCH_REJECTED", [(0, "INVALID_AMOUNT"), (1, "INVALID_AMOUNT")])
    assert [problem.field for problem in error.value.details] == ["destinations[0]", "destinations[1]"]
    for table in ("payouts", "payout_batches", "outbound_intents", "idempotency_keys"):
        assert await payout_env.payment_env.count(table) == 0
    assert (await payout_env.pay_all([row(key="a")], header_key="k")).accepted == 1


async def test_rows_beyond_the_days_limit_can_be_all_there_are(payout_env):
    await payout_env.fund(100 * USDX)
    await payout_env.settings(limits={"memory/USDX": {"perDay": "5"}})
    with pytest.raises(BatchRejectedError) as error:
        await payout_env.pay_all([row("6", key="a"), row("7")])
    assert codes(error.value) == [(0, "PAYOUT_LIMIT_EXCEEDED"), (1, "PAYOUT_LIMIT_EXCEEDED")]
    await payout_env.settings(limits={})
    assert (await payout_env.pay_all([row("6", key="a"), row("7")])).accepted == 2


async def test_a_batch_that_is_repeated_with_its_rows_keys_is_the_first_one(payout_env):
    await payout_env.fund(100 * USDX)
    rows = [row("10", key="a"), row("0", key="b"), row("5", key="c")]
    first = await payout_env.pay_all(rows)
    assert (first.accepted, first.replayed, codes(first)) == (2, False, [(1, "INVALID_AMOUNT")])
    respelled = [row("10.00", key="a"), row("0.0", key="b"), row("5", key="c")]
    for again in (await payout_env.pay_all(rows), await payout_env.pay_all(respelled, header_key="k")):
        assert again.replayed
        assert msgspec.structs.replace(again, replayed=False) == first
    assert (await payout_env.pay_all(rows, header_key="k")).batch_id == first.batch_id
    assert await payout_env.payment_env.count("payout_batches") == 1
    assert (await payout_env.balances())["pending"] == 15 * USDX


async def test_a_repeated_batch_pays_its_rows_without_keys_no_second_time(payout_env):
    await payout_env.fund(100 * USDX)
    rows = [row("10", key="a"), row("5"), row("7", "bob")]
    first = await payout_env.pay_all(rows)
    again = await payout_env.pay_all(rows)
    assert (again.replayed, again.batch_id, again.accepted) == (True, first.batch_id, 3)
    assert (await payout_env.balances())["pending"] == 22 * USDX
    without = [row("5"), row("7", "bob")]
    batches = [await payout_env.pay_all(without) for _ in range(2)]
    assert len({one.batch_id for one in batches}) == 2, "nothing says that the second is a repetition"


@pytest.mark.parametrize("refused", [row("8", key="z"), row("0", key="z"), row("8", key="")])
async def test_a_batch_is_repeated_whatever_became_of_the_row_with_the_key(payout_env, refused):
    """Its key was given back, or never taken, so that it says nothing of the batch."""
    await payout_env.fund(100 * USDX)
    await payout_env.settings(limits={"memory/USDX": {"perDay": "12"}})
    rows = [row("5"), refused]
    first = await payout_env.pay_all(rows)
    assert (first.accepted, len(first.rejected)) == (1, 1)
    await payout_env.settings(limits={})
    for again in await asyncio.gather(*[payout_env.pay_all(rows) for _ in range(5)]):
        assert (again.batch_id, again.replayed, again.rejected) == (first.batch_id, True, first.rejected)
    assert (await payout_env.balances())["pending"] == 5 * USDX


async def test_a_row_that_was_refused_can_be_sent_again_by_itself(payout_env):
    await payout_env.fund(100 * USDX)
    await payout_env.settings(limits={"memory/USDX": {"perDay": "12"}})
    rows = [row("10", key="a"), row("5", key="b")]
    first = await payout_env.pay_all(rows)
    assert codes(first) == [(1, "PAYOUT_LIMIT_EXCEEDED")]
    await payout_env.settings(limits={})
    again = await payout_env.pay_all(rows)
    assert (again.batch_id, again.replayed, codes(again)) == (first.batch_id, True, [(1, "PAYOUT_LIMIT_EXCEEDED")])
    assert (await payout_env.pay_all([row("5", key="b")])).accepted == 1
    assert (await payout_env.balances())["pending"] == 15 * USDX


async def test_one_key_for_the_whole_pays_once_however_often_at_once(payout_env):
    await payout_env.fund(100 * USDX)
    batches = await asyncio.gather(*[payout_env.pay_all([row(), row(key="a")], header_key="k") for _ in range(30)])
    assert len({one.batch_id for one in batches}) == 1
    assert [one.replayed for one in batches].count(False) == 1
    assert (await payout_env.balances())["pending"] == 20 * USDX
    with pytest.raises(ConflictError):
        await payout_env.pay_all([row()], header_key="k")


async def test_a_row_whose_key_was_used_before_is_not_paid_again(payout_env):
    await payout_env.fund(40 * USDX)
    first = (await payout_env.pay(header_key="a")).resource
    batch = await payout_env.pay_all([row(key="b"), row(key="a"), row(key="c")], header_key="k")
    assert (batch.total, batch.accepted, batch.replayed_rows) == (20 * USDX, 2, 1)
    assert batch.payouts[1].payout_id == first.payout_id
    second = await payout_env.pay_all([row(key="a"), row(key="b"), row(key="d")])
    assert (second.total, second.accepted, second.replayed_rows) == (10 * USDX, 1, 2)
    assert [one.payout_id for one in second.payouts[:2]] == [first.payout_id, batch.payouts[0].payout_id]
    assert second.payouts[2].batch_id == second.batch_id
    assert (await payout_env.pay(header_key="b")).resource.payout_id == batch.payouts[0].payout_id
    again = await payout_env.pay_all([row(key="b"), row(key="a"), row(key="c")], header_key="k")
    assert msgspec.structs.replace(again, replayed=False) == batch
    assert (await payout_env.balances())["pending"] == 40 * USDX


async def test_rows_that_were_all_paid_before_are_found_whatever_can_be_paid_now(payout_env):
    """Asked for in other words: under another key of the batch, in another order, or one by one before."""
    await payout_env.fund(100 * USDX)
    rows = [row("10", key="a"), row("5", "bob", key="b")]
    first = await payout_env.pay_all(rows)
    await payout_env.pay(header_key="c", amount="1")
    await payout_env.settings(limits={"memory/USDX": {"perDay": "50", "minimum": "50"}}, payoutEnabled=False)
    again = await payout_env.pay_all(rows[::-1], header_key="k")
    assert (again.accepted, again.total, again.replayed_rows, again.rejected, again.replayed) == (0, 0, 2, [], False)
    assert [one.payout_id for one in again.payouts] == [one.payout_id for one in first.payouts][::-1]
    assert (await payout_env.pay_all(rows[::-1], header_key="k")).batch_id == again.batch_id
    mixed = await payout_env.pay_all([row("1", key="c"), row("7", "bob", key="b"), row("5", "bob", key="b")])
    assert (mixed.accepted, mixed.replayed_rows) == (0, 1)
    assert codes(mixed) == [(1, "IDEMPOTENCY_KEY_REUSED"), (2, "DUPLICATE_IDEMPOTENCY_KEY")]
    with pytest.raises(ServiceError) as error:
        await payout_env.pay_all([row("10", key="a"), row("1", key="d")])
    assert error.value.code == "PAYOUT_DISABLED", "a row that was not paid yet is judged"
    assert (await payout_env.balances())["pending"] == 16 * USDX


async def test_a_key_that_stands_for_something_else_refuses_its_row_alone(payout_env):
    await payout_env.fund(100 * USDX)
    await payout_env.pay(header_key="a", amount="11")
    batch = await payout_env.pay_all([row(key="a"), row(key="b"), row(key="b")])
    assert codes(batch) == [(0, "IDEMPOTENCY_KEY_REUSED"), (2, "DUPLICATE_IDEMPOTENCY_KEY")]
    assert [one.field for one in batch.rejected] == ["idempotencyKey"] * 2
    assert batch.accepted == 1


async def test_rows_with_the_same_keys_in_batches_at_once_are_paid_once(payout_env):
    await payout_env.fund(1000 * USDX)
    keys = [f"key {number}" for number in range(10)]
    orders = [keys, keys[::-1], keys[5:] + keys[:5]] * 5
    batches = await asyncio.gather(*[payout_env.pay_all([row("1", key=key) for key in order]) for order in orders])
    assert sum(one.accepted for one in batches if not one.replayed) == 10
    assert [one.replayed for one in batches].count(False) == 3, "one in each order of its rows"
    assert {one.batch_id for one in batches if one.replayed} <= {one.batch_id for one in batches if not one.replayed}
    assert all(len(one.payouts) == 10 and not one.rejected for one in batches)
    assert (await payout_env.balances())["pending"] == 10 * USDX


async def test_rows_beyond_the_days_limit_are_refused_in_their_order(payout_env):
    await payout_env.fund(1000 * USDX)
    await payout_env.settings(limits={"memory/USDX": {"perDay": "30"}})
    await payout_env.pay()
    batch = await payout_env.pay_all([row("15"), row("10", key="a"), row("5")])
    assert (batch.total, codes(batch)) == (20 * USDX, [(1, "PAYOUT_LIMIT_EXCEEDED")])
    assert [one.field for one in batch.rejected] == ["amount"]
    await payout_env.settings(limits={})
    assert (await payout_env.pay_all([row("10", key="a")])).accepted == 1


async def test_a_hundred_rows_are_as_many_statements_as_one(payout_env):
    await payout_env.fund(1000 * USDX)
    counted = []
    engine = payout_env.db.engine.sync_engine
    await payout_env.pay_all([row("1")])

    def count(*_):
        counted[-1] += 1

    event.listen(engine, "before_cursor_execute", count)
    for rows in (1, 100):
        counted.append(0)
        batch = await payout_env.pay_all(
            [row("1", key=f"{rows}/{number}") for number in range(rows)], header_key=str(rows)
        )
        assert batch.accepted == rows
    event.remove(engine, "before_cursor_execute", count)
    assert counted[0] == counted[1] < 30
