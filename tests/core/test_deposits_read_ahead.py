"""The next span is read while the last one is stored, and what is stored is the same as without that."""

import asyncio

import pytest

from cambist.plugin import ChainUnavailableError
from cambist.testing.memory import MemoryChain, MemoryView, memory_chain_info

ONE = 1_000_000


class ScannedView(MemoryView):
    """Tells the test of each scan, which may hold it up or fail it."""

    async def scan(self, span, watch):
        self.chain.scanned.append((span.first, span.last))
        await self.chain.before_scan(span)
        return await super().scan(span, watch)


class ScannedChain(MemoryChain):
    view_type = ScannedView

    async def before_scan(self, span):
        pass


@pytest.fixture
async def chain(clock):
    chain = ScannedChain(memory_chain_info(), genesis_time=int(clock.now().timestamp()) - 600)
    chain.scanned = []
    return chain


@pytest.fixture
async def ahead(watcher):
    async with watcher.reading_ahead():
        yield watcher


async def read_to(chain, height):
    """Wait until blocks up to this height were read."""
    async with asyncio.timeout(10):
        while not chain.scanned or chain.scanned[-1][1] < height:  # noqa: ASYNC110  a list grows
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.05)  # what was read is checked after it


async def test_the_next_span_is_read_before_the_next_poll_and_read_once(shop, chain, ahead, usdx):
    address = await shop.payment(chain, "USDX", ONE)
    chain.transfer(usdx, address, ONE)
    chain.mine(120)
    first = await ahead.poll()
    await read_to(chain, 100)
    second, third = await ahead.poll(), await ahead.poll()
    assert [result.blocks for result in (first, second, third)] == [50, 50, 20]
    assert [result.transitions for result in (first, second, third)] == [0, 0, 3]
    assert chain.scanned == [(1, 50), (51, 100), (101, 120)]
    assert (await shop.status(address))[0] == "paid"


async def test_the_head_is_reached_of_a_chain_that_has_a_new_block_at_each_poll(shop, chain, ahead, usdx):
    address = await shop.payment(chain, "USDX", ONE)
    chain.transfer(usdx, address, ONE)
    chain.mine(110)
    behind = []
    for _ in range(6):
        behind.append((await ahead.poll()).behind)
        chain.mine()
    assert behind == [60, 11, 0, 0, 0, 0]
    assert (await shop.status(address))[0] == "paid"


async def test_an_address_handed_out_after_a_span_was_read_ahead_is_not_missed(shop, chain, ahead, usdx):
    chain.mine(100)
    await ahead.poll()
    await read_to(chain, 100)
    address = await shop.payment(chain, "USDX", ONE)
    chain.transfer(usdx, address, ONE)
    chain.mine()
    await shop.poll(ahead)
    assert await shop.status(address) == ("detected", ONE)


@pytest.mark.parametrize("depth", [3, 60], ids=["above what is stored", "below what is stored"])
async def test_a_span_of_a_branch_that_lost_does_not_stay(shop, chain, ahead, usdx, asset, depth):
    """Whether the money was in the blocks that were read ahead or comes in those that replace them."""
    lost, kept = await shop.payment(chain, "USDX", ONE), await shop.payment(chain, "USDX", ONE)
    chain.mine(98)
    chain.transfer(usdx, lost, ONE)
    chain.mine(2)
    await ahead.poll()
    await read_to(chain, 100)
    chain.reorg(depth)
    chain.transfer(usdx, kept, ONE)
    chain.mine(10)
    await shop.poll(ahead)
    assert await shop.status(lost) == ("pending", 0)
    assert (await shop.status(kept))[0] == "paid"
    assert await shop.balance(asset) == {"available": ONE}
    await shop.check_books()


async def test_what_another_watcher_stored_meanwhile_is_read_again_from_there(shop, chain, ahead, usdx, asset):
    address = await shop.payment(chain, "USDX", ONE)
    chain.mine(70)
    chain.transfer(usdx, address, ONE)
    chain.mine(70)
    await ahead.poll()
    await read_to(chain, 100)
    await shop.poll(shop.watcher(chain))
    await shop.poll(ahead)
    assert (await shop.status(address))[0] == "paid"
    assert await shop.balance(asset) == {"available": ONE}
    await shop.check_books()


async def test_a_span_that_could_not_be_read_ahead_is_read_by_its_poll(shop, chain, ahead, usdx):
    failures = []

    async def fail_once(span):
        if span.first == 51 and not failures:
            failures.append(span)
            raise ChainUnavailableError("the node restarts")

    chain.before_scan = fail_once
    address = await shop.payment(chain, "USDX", ONE)
    chain.mine(95)
    chain.transfer(usdx, address, ONE)
    chain.mine(5)
    await ahead.poll()
    await read_to(chain, 100)
    await shop.poll(ahead)
    assert failures
    assert (await shop.status(address))[0] == "paid"


async def test_a_poll_that_is_given_up_gives_up_what_is_read_ahead_and_halves_the_span(shop, chain, ahead):
    async def hang(span):
        if span.first == 51 and span.length > 25:
            await asyncio.Event().wait()

    chain.before_scan = hang
    chain.mine(120)
    await ahead.poll()
    await read_to(chain, 100)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await ahead.poll()
    assert (await ahead.poll()).height == 75


async def test_nothing_goes_on_when_reading_ahead_ends(shop, chain, watcher):
    async def hang(span):
        if span.first == 51:
            await asyncio.Event().wait()

    chain.before_scan = hang
    chain.mine(100)
    tasks = asyncio.all_tasks()
    async with watcher.reading_ahead():
        await watcher.poll()
        await read_to(chain, 100)
        assert len(asyncio.all_tasks()) == len(tasks) + 1
    assert asyncio.all_tasks() == tasks
