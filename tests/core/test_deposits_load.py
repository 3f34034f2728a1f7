"""More payments at once than one poll judges: none is starved by others that merely wait."""

import pytest

from cambist.services.receiving.deposits import judging

ONE = 1_000_000


@pytest.fixture(autouse=True)
def _few_at_once(monkeypatch):
    monkeypatch.setattr(judging, "JUDGED_MAX", 3)


async def statuses(shop, addresses):
    return [(await shop.status(address))[0] for address in addresses]


async def pay(shop, chain, count):
    addresses = [await shop.payment(chain, "USDX", ONE) for _ in range(count)]
    for address in addresses:
        chain.transfer(chain.info.token("USDX"), address, ONE)
    return addresses


async def test_detected_payments_that_wait_for_a_block_do_not_starve_the_others(shop, chain, watcher):
    addresses = await pay(shop, chain, 10)
    chain.mine()
    for _ in range(4):
        await shop.poll(watcher)
    assert await statuses(shop, addresses) == ["detected"] * 10


async def test_confirming_payments_that_wait_for_blocks_do_not_starve_the_others(shop, chain, watcher, clock):
    waiting = await pay(shop, chain, 10)
    chain.mine(2)
    for _ in range(8):
        await shop.poll(watcher)
    assert await statuses(shop, waiting) == ["confirming"] * 10
    unpaid = [await shop.payment(chain, "USDX", ONE) for _ in range(5)]
    clock.advance(seconds=3601)
    for _ in range(2):
        await shop.poll(watcher)
    assert await statuses(shop, unpaid) == ["expired"] * 5


async def test_a_payment_that_still_confirms_tells_its_checkout_of_every_block(shop, chain, watcher, db, monkeypatch):
    (address,) = await pay(shop, chain, 1)
    chain.mine(2)
    await shop.poll(watcher)
    told = []

    async def note(*topics):
        told.extend(topics)

    monkeypatch.setattr(watcher._hints, "publish", note)
    chain.mine()
    await shop.poll(watcher)
    assert await shop.status(address) == ("confirming", ONE)
    assert told == ["payment:pub_0"]
