"""A span in which nothing happens is one statement, and stored by it as by a transaction of several."""

import asyncio

import msgspec
import pytest

from cambist.plugin import Block, Head
from cambist.services.receiving.deposits import blocks, cursors
from cambist.services.receiving.deposits.cursors import Cursor
from cambist.services.receiving.deposits.rows import lock_cursor
from cambist.services.receiving.deposits.store import WatchedChain
from cambist.services.receiving.history import rows
from cambist.testing.memory import MemoryChain
from cambist.testing.memory.family import named_address
from tests.support.past import INFO, ONE, Past, heard, mover, told_of, whole
from tests.support.waiting import waits_for_a_lock

ALICE = named_address("alice")
HASHES_KEPT = 10


@pytest.fixture
async def chain(clock):
    info = msgspec.structs.replace(INFO, hashes_kept=HASHES_KEPT)
    return MemoryChain(info, genesis_time=int(clock.now().timestamp()) - 600, finality_lag_blocks=5)


@pytest.fixture
def chain_scope(shop, chain, ids):
    return WatchedChain(info=chain.info, family=shop.family, scope=0, mode="live", ids=ids)


@pytest.fixture
def past(shop, chain, db, clock):
    return Past(db, chain, shop.family, clock)


async def stored(db):
    """Return where the chain was read to, and which blocks are remembered."""
    async with db.autocommit() as conn:
        cursor = (await conn.exec_driver_sql("SELECT * FROM chain_cursors")).one()
        found = await conn.exec_driver_sql("SELECT height, hash, kept FROM chain_blocks ORDER BY height")
        return tuple(cursor), [tuple(row) for row in found]


async def test_blocks_are_stored_with_the_cursor_and_old_ones_forgotten(shop, chain, watcher, usdx, db):
    await shop.poll(watcher)
    address = await shop.payment(chain, "USDX", ONE)
    chain.transfer(usdx, address, ONE)
    for mined in (1, 3, 1, 40, 1):
        chain.mine(mined)
        await shop.poll(watcher)
    async with chain.view() as view:
        head = await view.head()
    cursor, found = await stored(db)
    assert cursor[2:6] == (46, head.hash, 46, head.finalized_height)
    recent = [(one.header.height, one.header.hash, False) for one in chain._blocks[-1 - HASHES_KEPT :]]
    assert found == [(1, chain._blocks[1].header.hash, True), *recent]


@pytest.mark.parametrize("wrong", ["height", "hash", "tokens_revision", "histories_begun"])
async def test_nothing_is_stored_or_forgotten_where_the_cursor_is_not_what_was_read(
    shop, chain, watcher, db, clock, chain_scope, wrong
):
    chain.mine(20)
    await shop.poll(watcher)
    async with db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE chain_cursors SET tokens_revision = 2, histories_begun = 4")
    before = await stored(db)
    last = chain._blocks[-1].header
    right = {"height": 20, "hash": last.hash, "tokens_revision": 2, "histories_begun": 4}
    other = {"height": 19, "hash": "b", "tokens_revision": 1, "histories_begun": 3}[wrong]
    block = Block(height=21, hash="c", parent_hash=last.hash, time=last.time)
    for said, moves in ((right | {wrong: other}, False), (right, True)):
        old = Cursor(said.pop("height"), said.pop("hash"))
        head = Head(height=21, hash="c", finalized_height=None)
        async with db.autocommit() as conn:
            is_moved = await cursors.advance(
                conn, chain_scope, old=old, blocks=[block], head=head, now=clock.now(), **said
            )
        assert is_moved is moves
        assert (await stored(db) != before) is moves


async def test_where_another_watcher_is_about_to_move_the_cursor_nothing_is_stored(shop, chain, watcher, db):
    chain.mine(20)
    await shop.poll(watcher)
    chain.mine()
    async with db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE chain_cursors SET height = 21, hash = 'other'")
        poll = asyncio.create_task(watcher.poll())
        await waits_for_a_lock(conn, poll)
    assert (await poll).behind == 1
    cursor, found = await stored(db)
    assert cursor[2:4] == (21, "other")
    assert found[-1][0] == 20


async def test_a_block_that_is_kept_while_a_poll_waits_for_the_cursor_is_not_forgotten(
    shop, chain, watcher, db, chain_scope
):
    chain.mine(20)
    await shop.poll(watcher)
    chain.mine(1)
    async with db.transaction() as conn:
        await lock_cursor(conn, *chain_scope.key)
        await blocks.keep_blocks(conn, chain_scope, [10])
        poll = asyncio.create_task(watcher.poll())
        await waits_for_a_lock(conn, poll)
    assert (await poll).height == 21
    cursor, found = await stored(db)
    assert cursor[2] == 21
    assert [height for height, _, _ in found] == list(range(10, 22))


@pytest.mark.parametrize("seen", [False, True], ids=["nothing", "a transfer"])
async def test_a_past_that_begins_while_a_poll_waits_for_the_cursor_ends_behind_its_block(
    shop, chain, watcher, usdx, db, watchers, past, clock, chain_scope, seen
):
    """The poll has not looked for the address, and a transfer to it is in the poll's block."""
    move = mover(shop, chain, watcher, usdx)
    await move(blocks=2)
    late = chain.transfer(usdx, ALICE, ONE)
    if seen:
        chain.transfer(usdx, await shop.payment(chain, "USDX", ONE), ONE)
    chain.mine()
    added = []

    async def add(call):
        if call == "scan" and not added:
            added.append(await watchers.make([ALICE], past=True))

    chain.faults.before = add
    async with db.transaction() as conn:
        await lock_cursor(conn, *chain_scope.key)
        poll = asyncio.create_task(watcher.poll())
        await waits_for_a_lock(conn, poll)
        await rows.begin(conn, chain_scope, 1_000, clock.now(), 0)
    assert (await poll).height == 3
    assert (await told_of(watchers, added[0])).to_block == 3
    await move(blocks=3)
    await past.read()
    assert await heard(watchers, added[0]) == whole([late])


async def test_a_past_that_begins_after_a_span_was_read_ahead_ends_behind_that_span(
    shop, chain, watcher, usdx, db, watchers, past, clock, chain_scope
):
    chain.mine(7)
    late = chain.transfer(usdx, ALICE, ONE)
    chain.mine(5)
    async with watcher.reading_ahead():
        while (await watcher.poll()).height < 4:
            pass
        await asyncio.wait([watcher._ahead._task])
        tracker = await watchers.make([ALICE], past=True)
        async with db.transaction() as conn:
            await rows.begin(conn, chain_scope, 1_000, clock.now(), 0)
        assert (await watcher.poll()).height == 8
    assert (await told_of(watchers, tracker)).to_block == 8
    await shop.poll(watcher)
    await past.read()
    assert await heard(watchers, tracker) == whole([late])
