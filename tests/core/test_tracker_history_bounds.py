"""What keeps one tracker's past from holding up others, the live watch, or itself."""

import asyncio
from collections import Counter

import pytest

from cambist.plugin import InconsistentChainError
from cambist.services import retention
from cambist.services.receiving.history import reader
from cambist.services.trackers import history
from cambist.settings import RetentionSettings
from cambist.testing.memory import MemoryChain
from cambist.testing.memory.family import named_address
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


async def test_blocks_that_the_node_lacks_do_not_postpone_who_wants_others_of_the_same_span(move, watchers, past):
    paid = await move(ALICE, 12)
    await move(blocks=3)
    read = past.reader._read

    async def pruned(span, progress):
        if span.first == 0:
            raise InconsistentChainError("block 0 was pruned")
        return await read(span, progress)

    past.reader._read = pruned
    old, young = await watchers.make([ALICE], past=True), await watchers.make([ALICE], start_block=2, past=True)
    await past.step()
    assert (await told_of(watchers, old)).failures == 1
    assert (await told_of(watchers, young)).failures == 0
    await past.read()
    assert await heard(watchers, young) == whole(paid[1:])


async def test_movements_that_cannot_be_told_are_passed_by_and_counted(move, watchers, past, usdx):
    paid = await move(ALICE, 8)
    both, other = await move(BOB, 1), await move(ALICE, 1)
    await move(blocks=3)
    tracker, bobs = await watchers.make([ALICE], past=True), await watchers.make([BOB], past=True)
    store = past.reader._store

    async def spoiled(*args):
        await watchers.rows("UPDATE movements SET decimals = $1 WHERE tx_id = $2 RETURNING id", 2**62, paid[3])
        return await store(*args)

    await past.read()
    await watchers.rows("DELETE FROM webhook_deliveries RETURNING 1")
    await watchers.rows("DELETE FROM tracker_transactions RETURNING 1")
    past.reader._store = spoiled
    async with past.db.transaction() as conn:
        await history.restart(conn, tracker)
        await history.restart(conn, bobs)
    await past.read()
    assert await heard(watchers, tracker) == whole(paid[:3], paid[4:], other)
    assert await heard(watchers, bobs) == whole(both)
    row = await told_of(watchers, tracker)
    assert (row.untold, row.error, row.read_block) == (1, None, 10)
    assert (await told_of(watchers, bobs)).untold == 0
    past.reader._store = store
    await watchers.rows("UPDATE movements SET decimals = $1 RETURNING id", usdx.decimals)
    async with past.db.transaction() as conn:
        await history.restart(conn, tracker)
    await past.read()
    assert await heard(watchers, tracker) == whole(paid, other)
    assert (await told_of(watchers, tracker)).untold == 0


async def test_where_too_much_cannot_be_told_the_span_is_tried_again_later(
    move, watchers, past, usdx, clock, monkeypatch
):
    monkeypatch.setattr(reader, "UNTOLD_MAX", 2)
    paid = await move(ALICE, 8)
    await move(blocks=3)
    tracker = await watchers.make([ALICE], past=True)
    store = past.reader._store

    async def spoiled(*args):
        await watchers.rows("UPDATE movements SET decimals = $1 RETURNING id", 2**62)
        return await store(*args)

    first = await watchers.make([ALICE], past=True)
    await past.read()
    past.reader._store = spoiled
    async with past.db.transaction() as conn:
        await history.restart(conn, tracker)
    await past.read()
    row = await told_of(watchers, tracker)
    assert (row.error, row.read_block) == ("More than 2 movements from block 0 on could not be told.", -1)
    past.reader._store = store
    await watchers.rows("UPDATE movements SET decimals = $1 RETURNING id", usdx.decimals)
    clock.advance(6)
    await past.read()
    row = await told_of(watchers, tracker)
    assert (row.error, row.untold) == (None, 0), "all was told in the end"
    for one in (tracker, first):
        assert await heard(watchers, one) == whole(paid)


async def test_what_happens_now_is_told_before_each_part_of_the_past(
    move, watchers, past, chain, usdx, shop, watcher, monkeypatch
):
    monkeypatch.setattr(reader, "MOVEMENTS_MAX", 1)
    await move(ALICE, 8)
    await move(blocks=3)
    now = await watchers.make([BOB])
    tracker = await watchers.make([ALICE], past=True)
    tx_id = chain.transfer(usdx, BOB, ONE)
    chain.mine()
    await shop.poll(watcher)  # and no fan-out of its own
    await past.step()
    assert await heard(watchers, now) == Counter({(tx_id, "detected"): 1})
    assert await heard(watchers, tracker) != Counter()


async def test_a_past_is_begun_at_most_once_in_a_while(move, watchers, db, chain, shop, clock):
    past = Past(db, chain, shop.family, clock, pause_s=300)
    alices, bobs = await move(ALICE, 3), await move(BOB, 3)
    await move(blocks=3)
    tracker = await watchers.make([ALICE], past=True)
    await past.read()
    read = len(past.steps)
    for address in (BOB, CAROL):
        await watchers.add(tracker, [address])
        assert await past.read() == 0
    assert await due(db, clock, 300) == []
    clock.advance(301)
    assert await due(db, clock, 300) == [("memory", 0)]
    await past.read()
    assert sum(step.blocks for step in past.steps[read:]) == 7
    assert await heard(watchers, tracker) == whole(alices, bobs)


async def due(db, clock, pause_s):
    async with db.autocommit() as conn:
        return await history.find_due(conn, [("memory", INFO.confirmations, False)], clock.now(), pause_s)


async def test_retention_leaves_what_is_about_to_be_told(move, watchers, past, db, clock, monkeypatch):
    paid = await move(ALICE, 8)
    await move(blocks=3)
    await watchers.make([ALICE], past=True)
    await past.read()
    await watchers.rows("DELETE FROM tracker_transactions RETURNING 1")
    await watchers.rows("UPDATE movements SET stored_at = now() - interval '40 days' RETURNING 1")
    await watchers.rows("UPDATE movement_stages SET at = now() - interval '40 days' RETURNING 1")
    tell = past.reader._tell

    async def after_retention(*args):
        await retention.delete_batch(db, RetentionSettings(), clock.now())
        await tell(*args)

    monkeypatch.setattr(past.reader, "_tell", after_retention)
    late = await watchers.make([ALICE], past=True)
    await past.read()
    assert await heard(watchers, late) == whole(paid)


async def test_who_is_late_with_what_was_read_before_moves_nobody_on_who_began_anew(
    move, watchers, db, shop, chain, clock
):
    """The late one read its span without the address that came since."""
    paid = await move(ALICE, 8) + await move(BOB, 6)
    await move(blocks=3)
    tracker = await watchers.make([ALICE], past=True)
    late, other = (Past(db, chain, shop.family, clock) for _ in range(2))
    for _ in range(2):
        await late.step()
    read, has_read, may_go_on = late.reader._read, asyncio.Event(), asyncio.Event()

    async def held(*args):
        found = await read(*args)
        has_read.set()
        await may_go_on.wait()
        return found

    late.reader._read = held
    step = asyncio.create_task(late.step())
    await has_read.wait()
    await move(blocks=3)
    await other.read()
    assert (await told_of(watchers, tracker)).state == "done"
    await watchers.add(tracker, [BOB])
    await other.step()
    assert (await told_of(watchers, tracker)).read_block == INFO.span_max - 1
    may_go_on.set()
    await step
    assert (await told_of(watchers, tracker)).read_block == INFO.span_max - 1
    await other.read()
    assert await heard(watchers, tracker) == whole(paid)
