"""Blocks with deposits are remembered for ever: neither a poll nor a reorg may get slower with them."""

from datetime import timedelta

import msgspec
import pytest

from cambist.plugin import InconsistentChainError
from cambist.services.accounting.ledger import asset_key
from cambist.services.receiving.deposits import blocks, store
from cambist.services.receiving.deposits.store import WatchedChain
from cambist.testing.memory import MemoryChain, MemoryView, memory_chain_info

ONE = 1_000_000
HASHES_KEPT = 10


@pytest.fixture
async def chain(clock):
    info = msgspec.structs.replace(memory_chain_info(), hashes_kept=HASHES_KEPT)
    return MemoryChain(info, genesis_time=int(clock.now().timestamp()) - 600)


class ForgetfulView(MemoryView):
    """Has the newest blocks alone, as most nodes do."""

    async def block(self, height):
        if height < self.chain.oldest:
            raise InconsistentChainError(f"no block {height}: pruned history unavailable")
        return await super().block(height)


class ForgetfulChain(MemoryChain):
    view_type = ForgetfulView
    oldest = 0


async def remember(db, heights):
    """Fill in the kept blocks of years."""
    async with db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO chain_blocks (chain, scope, height, hash, parent_hash, mined_at, kept)"
            " SELECT 'memory', 0, g, 'h' || g, 'h' || g - 1, now(), true FROM generate_series(1, $1::bigint) g",
            (heights,),
        )
    async with db.autocommit() as conn:
        await conn.exec_driver_sql("ANALYZE chain_blocks")


async def test_a_reorg_that_passes_the_recent_blocks_ends_at_a_kept_one(shop, chain):
    """Between kept blocks lie gaps; what came after the fork is read again, and nothing counts twice."""
    watcher = shop.watcher(chain)
    await shop.poll(watcher)
    early, late = await shop.payment(chain, "USDX", ONE), await shop.payment(chain, "USDX", ONE)
    chain.transfer(chain.info.token("USDX"), early, ONE)
    chain.mine(30)
    tx_id = chain.transfer(chain.info.token("USDX"), late, ONE)
    chain.mine(10)
    await shop.poll(watcher)
    chain.reorg(25, mine_again=[tx_id])
    chain.mine(5)
    polled = await watcher.poll()
    assert (polled.height, polled.orphaned) == (1, 1)
    await shop.poll(watcher)
    assert await shop.status(early) == await shop.status(late) == ("paid", ONE)
    assert await shop.balance(asset_key("memory", chain.info.token("USDX").contract)) == {"available": 2 * ONE}
    await shop.check_books()


async def test_a_reorg_reads_a_bounded_number_of_heights(shop, chain, db, ids):
    await remember(db, 20_000)
    chain_scope = WatchedChain(info=chain.info, family=shop.family, scope=0, mode="live", ids=ids)
    async with db.transaction() as conn:
        heights = await store.stored_heights(conn, chain_scope)
    assert list(heights) == list(range(20_001 - len(heights), 20_001))
    assert HASHES_KEPT < len(heights) <= HASHES_KEPT + 1 + store.KEPT_HEIGHTS_MAX


async def test_forgetting_old_blocks_passes_over_the_kept_ones(db):
    await remember(db, 20_000)
    async with db.transaction() as conn:
        plan = (await conn.exec_driver_sql(f"EXPLAIN {blocks.PRUNE}", ("memory", 0, 19_990))).scalars().all()
    assert "ix_chain_blocks_recent" in "\n".join(plan)


async def test_a_first_look_asks_a_node_for_no_block_that_it_has_forgotten(shop, clock):
    """Somebody is asked to pay before the chain is looked at first, and the node keeps less than half of its blocks."""
    info = msgspec.structs.replace(memory_chain_info(), hashes_kept=HASHES_KEPT)
    chain = ForgetfulChain(info, genesis_time=int((clock.now() - timedelta(days=7)).timestamp()))
    chain.mine(500)
    chain.mine(1, time=int((clock.now() - timedelta(minutes=11)).timestamp()))
    address = await shop.payment(chain, "USDX", ONE)
    chain.transfer(chain.info.token("USDX"), address, ONE)
    chain.mine(90, time=int(clock.now().timestamp()))
    chain.oldest = 420
    await shop.poll(shop.watcher(chain))
    assert await shop.status(address) == ("paid", ONE)


async def test_a_height_is_found_whatever_the_times_of_blocks(chain):
    """The highest block that was surely made before a moment, genesis where there is none, wherever the moment lies."""
    start = chain._blocks[0].header.time
    for step in [0, 0, 1, 700, 0, 0, 3, 1000, 0, 5] * 5:
        chain.mine(1, time=chain._blocks[-1].header.time + step)
    times = [block.header.time for block in chain._blocks]
    async with chain.view() as view:
        for second in range(start - 5, times[-1] + 700, 97):
            before = [height for height, time in enumerate(times) if time < second]
            since = blocks.moment(second) + blocks.CLOCKS_DIFFER_MAX
            assert await blocks.height_before(view, chain.height, since) == max(before, default=0)
