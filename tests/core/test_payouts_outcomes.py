"""What becomes of money that was set aside: sent, given back, or sent, taken back by a reorg, and sent again."""

import pytest

from cambist.domain.intents import SPENDING, IntentKind
from cambist.domain.payouts import Release, Status, release, take_again
from cambist.plugin import Units
from cambist.services.payouts import read
from cambist.services.payouts.read import lock_by_intents
from tests.support.payout_env import person

USDX = 10**6


async def now_of(payout_env, payout):
    async with payout_env.db.transaction() as conn:
        return (await lock_by_intents(conn, [payout.intent_pk]))[payout.intent_pk]


async def test_a_payout_is_told_of_when_it_is_deep_in_the_chain(payout_env, clock):
    await payout_env.fund(25 * USDX)
    payout = (await payout_env.pay()).resource
    await payout_env.happens("waiting", payout, reason="It waits for gas.")
    waiting = await now_of(payout_env, payout)
    assert (waiting.status, waiting.waits_for) == (Status.PROCESSING, "It waits for gas.")
    await payout_env.happens("broadcast", payout, tx_id="0xa")
    await payout_env.happens("broadcast", payout, tx_id="0xb")
    sent = await now_of(payout_env, payout)
    assert (sent.status, sent.tx_id, sent.waits_for) == (Status.BROADCAST, "0xb", None)
    assert await payout_env.balances() == {"available": 15 * USDX, "pending": 10 * USDX, "custody_wallet": 25 * USDX}
    await payout_env.happens("final", payout, tx_id="0xb")
    assert await payout_env.balances() == {"available": 15 * USDX, "custody_wallet": 15 * USDX}
    done = await now_of(payout_env, payout)
    assert (done.status, done.finished_at) == (Status.COMPLETED, clock.now())
    ((event, data),) = await payout_env.events(payout.payout_id)
    assert event == "payout.completed"
    assert data == {
        "resource": "payout",
        "payoutId": payout.payout_id,
        "kind": "payout",
        "chain": "memory",
        "token": "USDX",
        "amount": "10",
        "toAddress": person(),
        "status": "completed",
        "txHash": "0xb",
        "timestamp": clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }


async def test_a_failure_gives_everything_back_where_it_came_from(payout_env):
    await payout_env.fund(10)
    await payout_env.fund(10, "held")
    before = await payout_env.balances()
    refund = await payout_env.queue(IntentKind.REFUND, 15, held_units=Units(10))
    await payout_env.happens("failed", refund, reason="The recipient refuses it.")
    assert await payout_env.balances() == before
    failed = await now_of(payout_env, refund)
    assert (failed.status, failed.error) == (Status.FAILED, "The recipient refuses it.")


async def test_credits_come_back_with_what_failed_before_anything_was_sent(payout_env):
    await payout_env.fund(20)
    unsent, sent = await payout_env.queue(IntentKind.REFUND, 10), await payout_env.queue(IntentKind.WITHDRAWAL, 10)
    await payout_env.happens("broadcast", sent)
    await payout_env.happens("failed", unsent, sent)
    async with payout_env.db.autocommit() as conn:
        rows = await conn.exec_driver_sql("SELECT operation, reference FROM usage_records ORDER BY id")
        assert [tuple(row) for row in rows] == [
            ("refund", unsent.payout_id),
            ("withdrawal", sent.payout_id),
            ("return", f"refund:{unsent.payout_id}"),
        ]


async def test_what_comes_back_repays_a_debt_first(payout_env):
    await payout_env.fund(10)
    payout = (await payout_env.pay(amount="0.00001")).resource
    await payout_env.move("receivable", "custody_wallet", 4)
    await payout_env.happens("failed", payout, reason="no")
    assert await payout_env.balances() == {"available": 6, "custody_wallet": 6}


@pytest.mark.parametrize("kind", sorted(SPENDING))
@pytest.mark.parametrize("outcome", ["final", "failed"])
async def test_each_kind_has_the_events_of_its_resource(payout_env, kind, outcome):
    await payout_env.fund(10)
    row = await payout_env.queue(kind, 10)
    await payout_env.happens("broadcast", row)
    await payout_env.happens(outcome, row)
    told = "completed" if outcome == "final" else "failed"
    if kind == IntentKind.REFUND:
        assert await payout_env.events(row.payout_id) == []
        last = [("failed", row.payout_id, "failed")] if outcome == "failed" else []
        assert payout_env.refunds.told == [("broadcast", row.payout_id, "broadcast"), *last]
        return
    resource = "withdrawal" if kind == IntentKind.WITHDRAWAL else "payout"
    ((event, data),) = await payout_env.events(row.payout_id)
    assert (event, data["resource"], data[f"{resource}Id"]) == (f"{resource}.{told}", resource, row.payout_id)
    assert payout_env.refunds.told == []


async def test_news_that_comes_twice_happens_once(payout_env):
    await payout_env.fund(30 * USDX)
    done, lost = (await payout_env.pay()).resource, (await payout_env.pay()).resource
    for _ in range(2):
        await payout_env.happens("final", done)
        await payout_env.happens("failed", lost)
        await payout_env.happens("failed", done)
        await payout_env.happens("broadcast", done)
        await payout_env.happens("waiting", lost, reason="no")
    assert await payout_env.balances() == {"available": 20 * USDX, "custody_wallet": 20 * USDX}
    assert (await now_of(payout_env, done)).status == Status.COMPLETED
    assert (await now_of(payout_env, lost)).status == Status.FAILED
    assert len(await payout_env.events(done.payout_id)) == len(await payout_env.events(lost.payout_id)) == 1


async def test_what_a_reorg_undid_is_posted_again_once_each_time(payout_env):
    await payout_env.fund(10 * USDX)
    payout = (await payout_env.pay()).resource
    for life in (1, 2, 3):
        await payout_env.happens("final", payout, incarnation=life)
        assert await payout_env.balances() == {}
        for _ in range(2):
            await payout_env.happens("undone", payout, incarnation=life)
        assert await payout_env.balances() == {"pending": 10 * USDX, "custody_wallet": 10 * USDX}
        assert (await now_of(payout_env, payout)).status == Status.BROADCAST
    # Another transaction of the same place in the sequence counts its lives from one.
    await payout_env.happens("final", payout, tx_id="0xb", incarnation=1)
    assert await payout_env.balances() == {}
    assert (await now_of(payout_env, payout)).tx_id == "0xb"


async def test_what_a_reorg_undid_for_good_is_given_back(payout_env):
    await payout_env.fund(10 * USDX)
    payout = (await payout_env.pay()).resource
    await payout_env.happens("final", payout)
    await payout_env.happens("undone", payout)
    await payout_env.happens("failed", payout, tx_id="0xa", incarnation=1, reason="It cannot be mined any more.")
    assert await payout_env.balances() == {"available": 10 * USDX, "custody_wallet": 10 * USDX}
    assert [event for event, _ in await payout_env.events(payout.payout_id)] == ["payout.completed", "payout.failed"]


async def test_a_failed_payout_that_was_mined_all_the_same_is_taken_from_what_is_left(payout_env):
    await payout_env.fund(25 * USDX)
    payout = (await payout_env.pay()).resource
    await payout_env.happens("failed", payout)
    await payout_env.pay(amount="20")
    await payout_env.happens("final", payout)
    assert await payout_env.balances() == {"pending": 20 * USDX, "receivable": -5 * USDX, "custody_wallet": 15 * USDX}
    await payout_env.happens("undone", payout)
    await payout_env.happens("failed", payout, tx_id="0xa", incarnation=1)
    assert await payout_env.balances() == {"available": 5 * USDX, "pending": 20 * USDX, "custody_wallet": 25 * USDX}


async def test_a_failed_refund_that_was_mined_all_the_same_is_told_of_as_revived(payout_env):
    await payout_env.fund(10)
    refund = await payout_env.queue(IntentKind.REFUND, 10)
    await payout_env.happens("failed", refund)
    await payout_env.happens("final", refund)
    assert [what for what, _, _ in payout_env.refunds.told] == ["failed", "revived"]
    assert await payout_env.balances() == {}


async def test_the_same_life_of_a_transaction_is_never_posted_twice(payout_env):
    await payout_env.fund(10 * USDX)
    payout = (await payout_env.pay()).resource
    await payout_env.happens("final", payout)
    await payout_env.happens("undone", payout)
    with pytest.raises(AssertionError, match="posted before"):
        await payout_env.happens("final", payout)
    assert await payout_env.balances() == {"pending": 10 * USDX, "custody_wallet": 10 * USDX}


async def test_many_end_at_once_in_different_ways(payout_env):
    await payout_env.fund(100 * USDX)
    payouts = [(await payout_env.pay(amount=str(number))).resource for number in range(1, 11)]
    await payout_env.happens("final", *payouts[:5])
    await payout_env.happens("failed", *payouts[5:])
    assert await payout_env.balances() == {"available": 85 * USDX, "custody_wallet": 85 * USDX}


async def test_what_the_transactions_have_cost_is_shown_with_the_payout(payout_env):
    await payout_env.fund(10 * USDX)
    payout = (await payout_env.pay()).resource
    async with payout_env.db.transaction() as conn:
        slot = await conn.exec_driver_sql(
            "INSERT INTO outbound_slots (intent_pk, address_pk, chain, scope, sequence, created_at)"
            " SELECT id, source_address_pk, chain, scope, 0, created_at FROM outbound_intents RETURNING id"
        )
        await conn.exec_driver_sql(
            "INSERT INTO outbound_txs (slot_pk, chain, scope, tx_id, raw, fee_limit, fee_price, fee_extra, fee_paid,"
            " created_at) SELECT $1, 'memory', 0, n::text, '', 1, 1, 0, n, now() FROM unnest($2::numeric[]) n",
            (slot.scalar_one(), [20, 1]),
        )
        assert (await read.find_payout(conn, payout_env.live.project_pk, payout.payout_id)).fee == 21


def test_what_comes_back_and_what_is_taken_again_add_up():
    assert release(Units(10), Units(4), Units(0)) == Release(Units(4), Units(0), Units(6))
    assert release(Units(10), Units(4), Units(9)) == Release(Units(4), Units(6), Units(0))
    assert take_again(Units(10), Units(4)) == (4, 6)
    assert take_again(Units(10), Units(40)) == (10, 0)
