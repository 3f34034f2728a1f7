"""What happens between two steps of a poll: reorgs, new addresses, other watchers, and polls that are given up."""

import asyncio

import pytest
from sqlalchemy.exc import DBAPIError

from cambist.plugin import InconsistentChainError
from cambist.services.receiving.deposits import AddressCache, cursors, store
from cambist.services.receiving.deposits.cursors import Cursor
from cambist.services.receiving.deposits.store import WatchedChain
from cambist.testing.memory import MemoryChain, MemoryFamily, memory_chain_info

ONE = 1_000_000


async def test_money_in_a_block_that_replaced_the_head_during_the_look_is_not_missed(shop, chain, watcher, usdx):
    """The address is handed out after the poll knew the head and the addresses, and paid at the head's height."""
    chain.mine()
    paid = []

    async def replace_the_head(call):
        if call == "scan" and not paid:
            paid.append(await shop.payment(chain, "USDX", ONE))
            chain.reorg(1)
            tx_id = chain.transfer(usdx, paid[0], ONE)
            chain.mine()
            chain.reorg(2, mine_again=[tx_id], new_blocks=1)

    chain.faults.before = replace_the_head
    with pytest.raises(InconsistentChainError, match="replaced"):
        await watcher.poll()
    await shop.poll(watcher)
    assert await shop.status(paid[0]) == ("detected", ONE)


async def test_a_first_look_does_not_trust_a_miners_clock_to_the_second(shop, chain, usdx, clock):
    """A block may carry a time from before the payment that it pays: its maker's clock is not ours."""
    address = await shop.payment(chain, "USDX", ONE)
    chain.transfer(usdx, address, ONE)
    chain.mine(1, time=int(clock.now().timestamp()) - 3)
    chain.mine(3, time=int(clock.now().timestamp()) + 1)
    await shop.poll(shop.watcher(chain))
    assert await shop.status(address) == ("paid", ONE)


async def test_of_two_first_looks_only_one_leaves_its_block(shop, chain, db, clock, ids):
    chain.mine(3)
    chain_scope = WatchedChain(info=chain.info, family=shop.family, scope=0, mode="live", ids=ids)
    async with chain.view() as view:
        first, other = await view.block(1), await view.block(3)
    async with db.transaction() as conn:
        await cursors.create_cursor(conn, chain_scope, first, [], clock.now())
    async with db.transaction() as conn:
        cursor = await cursors.create_cursor(conn, chain_scope, other, [], clock.now())
        assert cursor == Cursor(1, first.hash)
        assert await store.stored_heights(conn, chain_scope) == [1]


async def test_a_reorg_of_the_very_first_block_is_followed(shop, chain, usdx):
    chain.mine(20)
    watcher = shop.watcher(chain)
    await shop.poll(watcher)
    address = await shop.payment(chain, "USDX", ONE)
    tx_id = chain.transfer(usdx, address, ONE)
    chain.mine()
    chain.reorg(5, mine_again=[tx_id])
    await shop.poll(watcher)
    assert await shop.status(address) == ("detected", ONE)


@pytest.mark.slow
async def test_a_span_that_never_ends_in_time_is_asked_for_in_parts(shop, chain, watcher, usdx):
    address = await shop.payment(chain, "USDX", ONE)
    chain.transfer(usdx, address, ONE)
    chain.mine(40)
    asked = []
    answer = chain.faults.meet

    async def slow(call, *, span_length=0):
        await answer(call, span_length=span_length)
        if call == "scan":
            asked.append(span_length)
            await asyncio.sleep(0.0 if span_length <= 10 else 60)

    chain.faults.meet = slow
    for _ in range(20):
        try:
            async with asyncio.timeout(0.3):
                polled = await watcher.poll()
        except TimeoutError:
            continue
        if not polled.behind:
            break
    assert await shop.status(address) == ("paid", ONE)


async def test_addresses_of_a_restored_database_are_read_once(shop, chain, db, clock):
    """Rows from a dump carry the numbers of transactions of another server, which are far ahead of this one's."""
    for _ in range(3):
        await shop.payment(chain, "USDX", 1)
    async with db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE addresses SET xid = '900000000000'::xid8")
    read = []

    class Counting(MemoryFamily):
        def address_key(self, address):
            read.append(address)
            return super().address_key(address)

    cache = AddressCache(db, Counting(), "live")
    await cache.refresh()
    assert len(cache) == len(read) == 3
    await cache.refresh()
    assert len(read) == 3
    late = await shop.payment(chain, "USDX", 1)
    await cache.refresh()
    assert read[3:] == [late]


async def test_money_on_each_others_chains_does_not_make_two_watchers_wait_for_each_other(shop, chain, db, clock, ids):
    """Both chains' watchers hold what came to the other's payment while they judge their own."""
    other = MemoryChain(memory_chain_info("other"), genesis_time=int(clock.now().timestamp()) - 600, seed=7)
    here, there = await shop.payment(chain, "USDX", 9 * ONE), await shop.payment(other, "USDX", 9 * ONE)
    watchers = [shop.watcher(chain), shop.watcher(other)]
    for one in watchers:
        await shop.poll(one)
    for one, own, others in ((chain, here, there), (other, there, here)):
        one.transfer(one.info.token("USDX"), own, 9 * ONE)
        one.mine()
        await shop.poll(shop.watcher(one))
        one.transfer(one.info.token("USDX"), others, ONE)
        one.mine()
    saved = asyncio.Barrier(2)
    save = store.save

    async def save_together(*args, **kwargs):
        count = await save(*args, **kwargs)
        async with asyncio.timeout(5):
            await saved.wait()
        return count

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "save", save_together)
        async with asyncio.timeout(20):
            done = await asyncio.gather(*[one.poll() for one in watchers], return_exceptions=True)
    assert not [error for error in done if isinstance(error, DBAPIError)]
