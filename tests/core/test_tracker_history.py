"""The past of addresses is told whole, once, and to who asked for it, whatever happens while it is read."""

import asyncio
from collections import Counter

import msgspec
import pytest

from cambist.domain.troubles import Trouble
from cambist.hints import Hints
from cambist.plugin import InconsistentChainError
from cambist.services.receiving.history import reader
from cambist.services.trackers import history
from cambist.services.trackers.fan_out import FanOut
from cambist.testing.memory import MemoryChain, MemoryView
from cambist.testing.memory.family import named_address
from tests.support.fragile import FragileDatabase, KilledError, Life
from tests.support.past import INFO, ONE, Past, heard, mover, told_of, whole

ALICE, BOB, CAROL = (named_address(name) for name in ("alice", "bob", "carol"))


@pytest.fixture
async def chain(clock):
    return MemoryChain(INFO, genesis_time=int(clock.now().timestamp()) - 600)


@pytest.fixture
def past(shop, chain, db, clock):
    return Past(db, chain, shop.family, clock)


@pytest.fixture
def move(shop, chain, watcher, usdx):
    return mover(shop, chain, watcher, usdx)


async def test_the_past_is_told_as_the_live_chain_is_and_ends_where_that_begins(move, watchers, past, clock):
    old = await move(ALICE, 11)
    tracker = await watchers.make([ALICE], past=True)
    assert await past.read() == 12 - INFO.confirmations
    row = await told_of(watchers, tracker)
    assert (row.state, row.from_block, row.to_block, row.read_block) == ("reading", 0, 11, 8)
    assert await heard(watchers, tracker) == whole(old[:8]), "what is not deep yet may still change"
    new = await move(ALICE, 4)
    await past.read()
    await move(blocks=INFO.confirmations)
    await past.read()
    assert await heard(watchers, tracker) == whole(old, new)
    [seen, confirmed, *_] = await watchers.told(tracker)
    assert (seen["event"], confirmed["event"]) == ("transaction.detected", "transaction.confirmed")
    assert seen["data"]["transactionId"] == confirmed["data"]["transactionId"]
    stored = await watchers.rows("SELECT status, count(*) AS rows FROM movements GROUP BY status")
    assert [tuple(row) for row in stored] == [("confirmed", 15)]
    credited = await watchers.rows("SELECT 1 FROM deposits UNION ALL SELECT 1 FROM ledger_movements")
    assert credited == []
    cpt = await watchers.rows("SELECT sum(weight) AS told FROM usage_records WHERE operation = 'tracker'")
    assert cpt[0].told == 15


async def test_only_who_asked_for_the_past_is_told_of_it(move, watchers, past):
    old = await move(ALICE, 6)
    await move(blocks=3)
    from_now_on = await watchers.make([ALICE], start_block=0)
    asked = await watchers.make([ALICE], start_block=4, past=True)
    await past.read()
    assert await heard(watchers, from_now_on) == Counter()
    assert await heard(watchers, asked) == whole(old[3:])


async def test_addresses_that_are_added_later_are_read_from_the_start_too_also_while_others_are(move, watchers, past):
    alices, bobs, carols = await move(ALICE, 5), await move(BOB, 5), await move(CAROL, 5)
    await move(blocks=3)
    tracker = await watchers.make([ALICE], past=True)
    await past.step()
    await watchers.add(tracker, [BOB])
    await past.read()
    assert await heard(watchers, tracker) == whole(alices, bobs)
    await watchers.add(tracker, [CAROL])
    await past.read()
    assert await heard(watchers, tracker) == whole(alices, bobs, carols)
    await move(blocks=3)
    await past.read()
    assert (await told_of(watchers, tracker)).state == "done"


@pytest.mark.slow
async def test_trackers_share_one_reading_and_nobody_waits_for_longer_than_one(move, watchers, past):
    paid = await move(ALICE, 40)
    await move(blocks=3)
    first = [await watchers.make([ALICE, BOB], past=True) for _ in range(3)]
    for _ in range(5):
        await past.step()
    late = [await watchers.make([ALICE], past=True), await watchers.make([ALICE], start_block=30, past=True)]
    await past.read()
    assert sum(step.blocks for step in past.steps) <= 44 + 44, "two rides, however many they are"
    for tracker in (*first, late[0]):
        assert await heard(watchers, tracker) == whole(paid)
    assert await heard(watchers, late[1]) == whole(paid[29:])


async def test_what_was_seen_before_the_address_came_is_not_told_after_its_end(move, watchers, past):
    """Who tells of what happens now tells a newcomer of the end; its history comes later, and knows of both."""
    await watchers.make([ALICE])
    [paid] = await move(ALICE)
    tracker = await watchers.make([ALICE], past=True)
    await move(blocks=3)
    assert await heard(watchers, tracker) == Counter({(paid, "confirmed"): 1})
    await past.read()
    assert (await told_of(watchers, tracker)).read_block >= 1
    assert await heard(watchers, tracker) == Counter({(paid, "confirmed"): 1})


async def test_what_was_cancelled_in_between_is_told_again_in_its_order(move, watchers, past, db):
    await watchers.make([ALICE])
    await move(ALICE)
    tracker = await watchers.make([ALICE], past=True)
    await move(blocks=3)
    [both] = await move(ALICE)
    await move(blocks=3)
    statuses = "UPDATE webhook_deliveries SET status = 'cancelled' WHERE tracker_pk = $1 RETURNING 1"
    assert len(await watchers.rows(statuses, tracker)) == 3
    await past.read()
    told = "SELECT event, status FROM webhook_deliveries WHERE tracker_pk = $1 ORDER BY id"
    events = ["transaction.confirmed", "transaction.detected", "transaction.confirmed"]
    assert await watchers.rows(told, tracker) == [(event, "pending") for event in events]
    assert (both, "detected") in await heard(watchers, tracker)


async def test_who_asks_again_and_again_holds_nobody_at_the_bottom(move, watchers, past):
    paid = await move(ALICE, 12)
    await move(blocks=3)
    tracker = await watchers.make([ALICE], past=True)
    for _ in range(6):
        await past.step()
        await watchers.make([BOB], past=True)
        await watchers.add(tracker, [named_address(f"bob {len(past.steps)}")])
    assert await heard(watchers, tracker) == whole(paid)


async def test_a_scan_that_did_not_know_an_address_is_read_again(shop, chain, watcher, usdx, watchers, past, move):
    """The watch is asked before the span is read: an address that comes in between is missed by both, but for this."""
    await move(blocks=2)
    late = chain.transfer(usdx, ALICE, ONE)
    chain.mine()
    tracker = []

    async def add(call):
        if call == "scan" and not tracker:
            tracker.append(await watchers.make([ALICE], past=True))
            await past.read()

    chain.faults.before = add
    await shop.poll(watcher)
    chain.faults.before = None
    assert await heard(watchers, tracker[0]) == Counter()
    await move(blocks=3)
    await past.read()
    assert await heard(watchers, tracker[0]) == whole([late])


async def test_what_stands_already_is_told_without_being_stored_again(move, watchers, past):
    live = await watchers.make([ALICE])
    old = await move(ALICE, 3)
    await move(blocks=3)
    tracker = await watchers.make([ALICE], past=True)
    before = await watchers.stages()
    await past.read()
    assert await heard(watchers, tracker) == await heard(watchers, live) == whole(old)
    assert await watchers.stages() == before


async def test_a_death_at_any_moment_loses_and_doubles_nothing(move, watchers, past, db, shop, chain, clock):
    paid = await move(ALICE, 7)
    await move(blocks=3)
    tracker = await watchers.make([ALICE], past=True)
    steps, alive = 0, True
    while alive:
        steps += 1
        mortal = Past(FragileDatabase(db, Life(steps)), chain, shop.family, clock, progress=past.progress)
        try:
            await mortal.step()
            alive = not mortal.steps[-1].over
        except KilledError:
            pass
        past.progress = mortal.progress
    assert steps > 20
    assert await heard(watchers, tracker) == whole(paid)
    await move(blocks=3)
    await past.read()
    assert (await told_of(watchers, tracker)).state == "done"


async def test_any_number_of_readers_and_the_live_watch_at_once_tell_each_thing_once(
    move, watchers, db, shop, chain, clock
):
    old = await move(ALICE, 12)
    trackers = [await watchers.make([ALICE], past=True) for _ in range(2)]
    pasts = [Past(db, chain, shop.family, clock) for _ in range(3)]
    _, *new = await asyncio.gather(
        asyncio.gather(*(past.read() for past in pasts)), *(move(ALICE, 1) for _ in range(1))
    )
    await move(blocks=3)
    await asyncio.gather(*(past.read() for past in pasts))
    for tracker in trackers:
        assert await heard(watchers, tracker) == whole(old, *new)


@pytest.mark.parametrize("deep", [False, True], ids=["of the newest blocks", "deeper than what is final"])
async def test_a_reorg_meanwhile_takes_back_what_was_told_and_no_more(
    move, watchers, past, chain, shop, watcher, monkeypatch, deep
):
    old = await move(ALICE, 8)
    tracker = await watchers.make([ALICE], past=True)
    depth = 6 if deep else 2
    read = past.reader._read

    async def then_reorg(*args):
        found = await read(*args)
        if chain.height == 8:
            chain.reorg(depth, new_blocks=depth + 1)
            await shop.poll(watcher)
        return found

    monkeypatch.setattr(past.reader, "_read", then_reorg)
    await past.read()
    await move(blocks=4)
    await past.read()
    told = await heard(watchers, tracker)
    stays = old[: 8 - depth]
    assert {one: count for one, count in told.items() if one[0] in stays} == whole(stays)
    assert not [one for one in told if one[0] not in stays]


class LyingView(MemoryView):
    async def scan(self, span, watch):
        result = await super().scan(span, watch)
        return self.chain.lie(result)


class LyingChain(MemoryChain):
    view_type = LyingView
    lie = staticmethod(lambda result: result)


def of_a_strange_block(result):
    replaced = [msgspec.structs.replace(one, block_hash="0xnone") for one in result.transfers]
    return msgspec.structs.replace(result, transfers=replaced)


def without_the_last(result):
    return msgspec.structs.replace(result, blocks=result.blocks[:-1])


class TestLies:
    @pytest.fixture
    async def chain(self, clock):
        return LyingChain(INFO, genesis_time=int(clock.now().timestamp()) - 600)

    @pytest.mark.parametrize("lie", [of_a_strange_block, without_the_last])
    async def test_what_cannot_be_is_said_and_tried_again(self, move, watchers, past, chain, clock, lie):
        paid = await move(ALICE, 3)
        await move(blocks=3)
        tracker = await watchers.make([ALICE], past=True)
        chain.lie = lie
        await past.read()
        step = past.steps[-1]
        assert step.error.code is Trouble.CHAIN_INCONSISTENT
        assert step.retry_s == 5
        row = await told_of(watchers, tracker)
        assert (row.error, row.read_block) == (step.error.words, -1)
        clock.advance(6)
        await past.read()
        assert past.steps[-1].retry_s == 10, "each time after twice as long"
        chain.lie = lambda result: result
        clock.advance(11)
        await past.read()
        assert await heard(watchers, tracker) == whole(paid)
        assert (await told_of(watchers, tracker)).error is None

    async def test_spans_must_follow_each_other(self, move, watchers, past, chain):
        await move(ALICE, 8)
        await move(blocks=3)
        tracker = await watchers.make([ALICE], past=True)
        await past.step()

        def of_another_branch(result):
            first = msgspec.structs.replace(result.blocks[0], parent_hash="0xother")
            return msgspec.structs.replace(result, blocks=[first, *result.blocks[1:]])

        chain.lie = of_another_branch
        await past.step()
        row = await told_of(watchers, tracker)
        assert (row.error, row.read_block) == (
            "What the endpoints answer does not agree: block 4 does not follow the block before it",
            3,
        )


async def test_a_node_without_old_blocks_holds_up_nobody_who_does_not_want_them(move, watchers, past, chain, clock):
    paid = await move(ALICE, 12)
    await move(blocks=3)

    read = past.reader._read

    async def pruned(span, progress):
        if span.first < 8:
            raise InconsistentChainError("block 4 was pruned")
        return await read(span, progress)

    past.reader._read = pruned
    old, young = await watchers.make([ALICE], past=True), await watchers.make([ALICE], start_block=9, past=True)
    await past.read()
    assert await heard(watchers, young) == whole(paid[8:])
    assert await heard(watchers, old) == Counter()
    words = "What the endpoints answer does not agree: block 4 was pruned"
    assert past.steps[-1].error.words == (await told_of(watchers, old)).error == words


@pytest.mark.slow
@pytest.mark.parametrize("has_stages", [True, False], ids=["seen live again", "found in the past only"])
@pytest.mark.parametrize("deferred", [True, False], ids=["put aside", "before the cursor"])
async def test_what_was_mined_again_is_not_followed_by_its_earlier_end(
    shop, chain, watcher, usdx, watchers, past, move, db, clock, deferred, has_stages
):
    first = await watchers.make([ALICE])
    await move(blocks=3)
    tx_id = chain.transfer(usdx, ALICE, ONE)
    chain.mine()
    await shop.poll(watcher)
    fan = FanOut(db, clock, Hints(None))
    if deferred:
        await watchers.rows("UPDATE movements SET decimals = $1 RETURNING id", 2**62)
        await fan.drain("memory", 0)
    if not has_stages:
        await watchers.remove(first, ALICE)
        await watchers.rows("DELETE FROM tracked_addresses RETURNING 1")
    chain.reorg(1, mine_again=[tx_id])
    chain.mine(4)
    await shop.poll(watcher)
    tracker = await watchers.make([ALICE], past=True)
    await past.read()
    if not has_stages and deferred:
        assert await heard(watchers, tracker) == whole([tx_id]), "nobody else would tell of it"
    await watchers.rows("UPDATE movements SET decimals = $1 RETURNING id", usdx.decimals)
    for _ in range(2):
        clock.advance(7200)
        await fan.drain("memory", 0)
    told = [(one["data"]["status"], one["data"]["blockHash"]) for one in await watchers.told(tracker)]
    [stands] = await watchers.rows("SELECT block_hash FROM movements WHERE status = 'confirmed'")
    assert told[-2:] == [("detected", stands.block_hash), ("confirmed", stands.block_hash)]
    assert [stage for stage, _ in told[:-2]] == (["detected", "orphaned"] if has_stages or not deferred else [])


async def test_an_endpoint_on_another_branch_or_behind_is_not_believed(move, watchers, past, chain, clock):
    paid = await move(ALICE, 8)
    await move(blocks=3)
    tracker = await watchers.make([ALICE], past=True)
    chain.faults.lag_blocks = 9
    await past.read()
    assert "newest block is 2" in past.steps[-1].error.words
    chain.faults.lag_blocks = 0
    clock.advance(6)
    await past.read()
    assert await heard(watchers, tracker) == whole(paid)


async def test_spans_that_are_too_wide_for_the_node_are_narrowed(move, watchers, past, chain):
    paid = await move(ALICE, 9)
    await move(blocks=3)
    tracker = await watchers.make([ALICE], past=True)
    chain.faults.span_max = 1
    await past.read()
    assert {step.blocks for step in past.steps} == {0, 1}
    assert await heard(watchers, tracker) == whole(paid)


async def test_the_past_waits_while_the_live_watch_is_behind(move, watchers, past, db, monkeypatch):
    await move(ALICE, 8)
    await watchers.make([ALICE], past=True)
    async with db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE chain_cursors SET head = height + 2")
    monkeypatch.setattr(reader, "BEHIND_PAUSE_S", 0)
    for _ in range(reader.BEHIND_PAUSES_MAX):
        step = await past.step()
        assert (step.blocks, step.over, step.retry_s) == (0, False, None)
    assert (await past.step()).retry_s == reader.BEHIND_RETRY_S, "others may have its place meanwhile"


async def test_who_is_switched_off_hears_nothing_and_goes_on_later(move, watchers, past, db):
    paid = await move(ALICE, 12)
    await move(blocks=3)
    tracker = await watchers.make([ALICE], past=True)
    learn = past.reader._learn

    async def switch(*, on):
        await watchers.change(tracker, is_active=on)
        async with db.transaction() as conn:
            await history.read_again(conn, tracker)

    async def switched_meanwhile(served):
        await learn(served)
        past.reader._learn = learn
        await switch(on=False)

    past.reader._learn = switched_meanwhile
    await past.read()
    assert await heard(watchers, tracker) == Counter()
    await switch(on=True)
    await past.read()
    assert await heard(watchers, tracker) == whole(paid)


async def test_a_history_is_cancelled_and_begun_anew(move, watchers, past, db):
    paid = await move(ALICE, 12)
    await move(blocks=3)
    tracker = await watchers.make([ALICE], past=True)
    await past.step()
    async with db.transaction() as conn:
        await history.cancel(conn, tracker)
    await past.read()
    begun = await heard(watchers, tracker)
    await watchers.add(tracker, [BOB])
    await past.read()
    assert await heard(watchers, tracker) == begun == whole(paid[:3]), "cancelled until it is begun anew"
    async with db.transaction() as conn:
        await history.restart(conn, tracker)
    await past.read()
    assert await heard(watchers, tracker) == whole(paid)


async def test_an_address_that_left_the_list_is_not_told_of(move, watchers, past):
    await move(ALICE, 6)
    bobs = await move(BOB, 6)
    await move(blocks=3)
    tracker = await watchers.make([ALICE, BOB], past=True)
    await watchers.remove(tracker, ALICE)
    await past.read()
    assert await heard(watchers, tracker) == whole(bobs)


async def test_no_more_blocks_are_read_than_the_operator_allows(move, watchers, db, chain, shop, clock):
    paid = await move(ALICE, 20)
    await move(blocks=3)
    tracker = await watchers.make([ALICE], past=True)
    await Past(db, chain, shop.family, clock, blocks_max=9).read()
    assert await heard(watchers, tracker) == whole(paid[13:])
    assert (await told_of(watchers, tracker)).from_block == 14


async def test_very_many_movements_are_told_in_bounded_transactions(move, watchers, past, chain, usdx, monkeypatch):
    monkeypatch.setattr(reader, "MOVEMENTS_MAX", 3)
    monkeypatch.setattr("cambist.services.trackers.telling.MATCHES_MAX", 4)
    paid = [chain.transfer(usdx, ALICE, ONE) for _ in range(7)]
    chain.mine()
    paid += await move(ALICE, 4)
    await move(blocks=3)
    trackers = [await watchers.make([ALICE], past=True) for _ in range(3)]
    await past.read()
    for tracker in trackers:
        assert await heard(watchers, tracker) == whole(paid)


async def test_a_span_that_takes_too_long_to_tell_goes_on_from_the_block_where_it_ended(
    move, watchers, past, monkeypatch
):
    monkeypatch.setattr(reader, "MOVEMENTS_MAX", 2)
    paid = await move(ALICE, 8)
    await move(blocks=3)
    tracker = await watchers.make([ALICE], past=True)
    tell, calls = reader.tell, []

    async def tell_once(*args, **options):
        calls.append(args)
        if len(calls) > 1:
            raise TimeoutError
        return await tell(*args, **options)

    monkeypatch.setattr(reader, "tell", tell_once)
    with pytest.raises(TimeoutError):
        await past.step()
    assert (await told_of(watchers, tracker)).read_block == 1
    monkeypatch.setattr(reader, "tell", tell)
    await past.read()
    assert await heard(watchers, tracker) == whole(paid)
