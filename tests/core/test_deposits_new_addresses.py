"""A poll learns of new addresses beside its question of what is due, and misses none that it would have asked for."""

from datetime import timedelta

import pytest
from msgspec import structs

from cambist.plugin import InconsistentChainError
from cambist.services.receiving.deposits import AddressCache
from cambist.services.receiving.deposits.new_addresses import BESIDE_MAX, News
from tests.support.statements import statements

ONE = 1_000_000


@pytest.fixture
async def watcher(shop, chain, watcher):
    """Give one that has read a block, and so the addresses that there were."""
    chain.mine()
    await watcher.poll()
    return watcher


async def pay(shop, chain, usdx, addresses):
    for address in addresses:
        chain.transfer(usdx, address, ONE)
    chain.mine()
    for address in addresses:
        assert await shop.status(address) == ("pending", 0)


async def test_what_was_handed_out_since_the_last_poll_is_learnt_with_what_is_due(shop, chain, watcher, usdx, db):
    first = await shop.payment(chain, "USDX", ONE)
    await pay(shop, chain, usdx, [first])
    with statements(db) as executed:
        await watcher.poll()
    assert (await shop.status(first))[0] == "detected"
    assert len([one for one in executed if "pg_snapshot_xmin" in one]) == 1


async def test_none_of_many_new_addresses_is_missed(shop, chain, watcher, usdx):
    many = [await shop.payment(chain, "USDX", ONE) for _ in range(BESIDE_MAX + 1)]
    paid = [many[0], many[-1]]
    await pay(shop, chain, usdx, paid)
    assert (await watcher.poll()).deposits == 2
    assert [(await shop.status(one))[0] for one in paid] == ["detected"] * 2


async def test_addresses_that_commit_in_another_order_than_they_are_numbered_are_learnt(shop, chain, watcher, usdx):
    """The older transaction is open while a poll learns of a younger one's address."""
    older = shop.family.derive_address("xpubOfTheShopsAccount", 0, 99)
    async with shop.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, merchant_pk, account_index, change, address_index)"
            " VALUES ('live', 'memory', $1, $2, 1, 0, 99)",
            (older, shop.merchant),
        )
        younger = await shop.payment(chain, "USDX", ONE)
        await pay(shop, chain, usdx, [younger])
        await watcher.poll()
        assert (await shop.status(younger))[0] == "detected"
    chain.transfer(usdx, older, ONE)
    chain.mine()
    assert (await watcher.poll()).deposits == 1


async def test_of_a_span_below_the_head_the_last_block_is_known_before_the_addresses_are(shop, chain, watcher, usdx):
    """That block is replaced when the poll has asked what is due, by one that pays who was given an address since."""
    last = chain.height + chain.info.span_max
    chain.mine(chain.info.span_max + 10)
    asked, paid = [], []

    async def replace(call):
        if call == "block":
            asked.append(call)
        # The cursor's block is asked for first.
        if len(asked) == 2 and not paid:
            paid.append(await shop.payment(chain, "USDX", ONE))
            chain.reorg(11, new_blocks=0)
            chain.transfer(usdx, paid[0], ONE)
            chain.mine(11)

    chain.faults.before = replace
    polled = await watcher.poll()
    assert (polled.height, polled.deposits) == (last, 1)


async def test_the_head_that_is_scanned_was_known_before_the_addresses_were(shop, chain, watcher, usdx):
    """It is replaced when the poll has learnt them, by one that pays who was given an address since."""
    chain.mine()
    paid = []

    async def replace(call):
        if call == "block" and not paid:
            paid.append(await shop.payment(chain, "USDX", ONE))
            chain.reorg(1, new_blocks=0)
            chain.transfer(usdx, paid[0], ONE)
            chain.mine()

    chain.faults.before = replace
    with pytest.raises(InconsistentChainError, match="replaced"):
        await watcher.poll()
    assert (await watcher.poll()).deposits == 1


async def test_only_what_surely_completes_the_filter_is_learnt(shop, chain):
    """Else all is read by itself: where more is new, another server has answered, or the filter is an older one."""
    cache = AddressCache(shop.db, shop.family, "live")
    assert cache.since() is None
    await cache.refresh()
    since = cache.since()
    address = await shop.payment(chain, "USDX", ONE)
    news = News(addresses=[address], xmin=since + 5, server=cache._server)
    for wrong in (
        structs.replace(news, addresses=[address] * BESIDE_MAX),
        structs.replace(news, server=news.server - timedelta(seconds=1)),
        structs.replace(news, xmin=since - 1),
    ):
        assert cache.learn(since, wrong) is None
    assert cache.learn(since + 1, news) is None
    assert cache.since() == since
    assert shop.family.address_key(address) not in cache
    watch, xid = cache.learn(since, news)
    assert shop.family.address_key(address) in watch
    assert xid == since + 5 == cache.since()
    # Who asked before is answered after: what others have learnt meanwhile stays known.
    assert cache.learn(since, structs.replace(news, addresses=[], xmin=since)).xid == xid
