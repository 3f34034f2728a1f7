"""From a chain to a merchant's balance: seen, confirmed, credited once, and taken back when the chain says so."""

import asyncio

import pytest

from cambist.plugin import InconsistentChainError
from cambist.services.accounting.ledger import Account, Movement, Posting, Purpose, asset_key, post
from cambist.services.receiving.deposits import AddressCache
from cambist.testing.memory.blocks import Output
from cambist.testing.memory.family import named_address

ONE = 1_000_000


def at(chain, clock):
    """Mine a block now."""
    return {"time": int(clock.now().timestamp())}


async def test_a_deposit_is_detected_confirmed_and_credited(shop, chain, watcher, usdx, asset):
    address = await shop.payment(chain, "USDX", 10 * ONE)
    chain.transfer(usdx, address, 10 * ONE)
    chain.mine()
    await shop.poll(watcher)
    assert await shop.status(address) == ("detected", 10 * ONE)
    assert await shop.balance(asset) == {}
    chain.mine()
    await shop.poll(watcher)
    assert await shop.status(address) == ("confirming", 10 * ONE)
    chain.mine(2)
    await shop.poll(watcher)
    assert await shop.status(address) == ("paid", 10 * ONE)
    assert await shop.balance(asset) == {"available": 10 * ONE}
    assert await shop.events(address) == [
        ("payment.detected", "10"),
        ("payment.confirming", "10"),
        ("payment.paid", "10"),
    ]
    await shop.check_books()


async def test_what_an_address_of_ours_sends_to_a_stranger_is_no_deposit(shop, chain, watcher, usdx, asset):
    """It is told by the scan, and nobody is credited or debited for it: what we send is booked where it is sent."""
    address = await shop.payment(chain, "USDX", 10 * ONE)
    chain.transfer(usdx, address, 10 * ONE)
    chain.mine()
    chain.transfer(usdx, named_address("stranger"), 4 * ONE, sender=address)
    chain.mine(4)
    await shop.poll(watcher)
    assert await shop.status(address) == ("paid", 10 * ONE)
    assert await shop.balance(asset) == {"available": 10 * ONE}
    await shop.check_books()


async def test_two_transfers_of_one_transaction_are_both_counted(shop, chain, watcher, usdx, asset):
    one, other = await shop.payment(chain, "USDX", 10 * ONE), await shop.payment(chain, "USDX", 3 * ONE)
    outputs = [(one, 4 * ONE), (one, 6 * ONE), (other, 3 * ONE)]
    chain.submit([Output(contract=usdx.contract, recipient=to, amount=amount) for to, amount in outputs])
    chain.mine(4)
    await shop.poll(watcher)
    assert await shop.status(one) == ("paid", 10 * ONE)
    assert await shop.status(other) == ("paid", 3 * ONE)
    assert await shop.balance(asset) == {"available": 13 * ONE}


async def test_a_part_is_held_until_the_rest_comes(shop, chain, watcher, usdx, asset):
    address = await shop.payment(chain, "USDX", 10 * ONE)
    chain.transfer(usdx, address, 4 * ONE)
    chain.mine(5)
    await shop.poll(watcher)
    assert await shop.status(address) == ("pending", 4 * ONE)
    assert await shop.balance(asset) == {"held": 4 * ONE}
    chain.transfer(usdx, address, 6 * ONE)
    chain.mine(4)
    await shop.poll(watcher)
    assert await shop.status(address) == ("paid", 10 * ONE)
    assert await shop.balance(asset) == {"available": 10 * ONE}


async def test_what_exceeds_the_order_stays_held(shop, chain, watcher, usdx, asset):
    address = await shop.payment(chain, "USDX", 10 * ONE)
    chain.transfer(usdx, address, 12 * ONE)
    chain.mine(4)
    await shop.poll(watcher)
    assert await shop.status(address) == ("overpaid", 12 * ONE)
    chain.transfer(usdx, address, 5 * ONE)
    chain.mine(4)
    await shop.poll(watcher)
    assert await shop.status(address) == ("overpaid", 17 * ONE)
    assert await shop.balance(asset) == {"available": 10 * ONE, "held": 7 * ONE}
    await shop.check_books()


async def test_an_unpaid_payment_expires_and_a_late_one_is_taken_within_the_grace(
    shop, chain, watcher, usdx, asset, clock
):
    address = await shop.payment(chain, "USDX", 10 * ONE)
    clock.advance(seconds=3601)
    await shop.poll(watcher)
    assert await shop.status(address) == ("expired", 0)
    chain.transfer(usdx, address, 10 * ONE)
    chain.mine(4, **at(chain, clock))
    await shop.poll(watcher)
    assert await shop.status(address) == ("paid", 10 * ONE)
    assert [event for event, _ in await shop.events(address)] == [
        "payment.expired", "payment.detected", "payment.confirming", "payment.paid",
    ]  # fmt: skip


async def test_late_money_of_a_locked_rate_is_held(shop, chain, watcher, usdx, asset, clock):
    address = await shop.payment(chain, "USDX", 10 * ONE, fiat=True)
    clock.advance(seconds=3601)
    chain.transfer(usdx, address, 10 * ONE)
    chain.mine(4, **at(chain, clock))
    await shop.poll(watcher)
    assert await shop.status(address) == ("expired", 10 * ONE)
    assert await shop.balance(asset) == {"held": 10 * ONE}


async def test_a_part_that_came_in_time_is_credited_when_the_payment_ends(shop, chain, watcher, usdx, asset, clock):
    address = await shop.payment(chain, "USDX", 10 * ONE)
    chain.transfer(usdx, address, 4 * ONE)
    chain.mine(4)
    await shop.poll(watcher)
    clock.advance(seconds=3601)
    await shop.poll(watcher)
    assert await shop.status(address) == ("underpaid", 4 * ONE)
    assert await shop.balance(asset) == {"available": 4 * ONE}
    assert await shop.events(address) == [("payment.expired", "4")]


async def test_another_registered_token_is_held_and_pays_nothing(shop, chain, watcher, usdx, asset):
    address = await shop.payment(chain, "USDX", 10 * ONE)
    chain.transfer(chain.info.token("DAIX"), address, 10**19)
    chain.mine(4)
    await shop.poll(watcher)
    assert await shop.status(address) == ("pending", 0)
    assert await shop.balance(asset_key("memory", chain.info.token("DAIX").contract)) == {"held": 10**19}


async def test_a_token_of_the_same_name_that_nobody_registered_is_nothing(shop, chain, watcher, usdx, asset):
    address = await shop.payment(chain, "USDX", 10 * ONE)
    chain.submit([Output(contract=named_address("impostor"), recipient=address, amount=10 * ONE)])
    chain.mine(4)
    assert (await shop.poll(watcher)).deposits == 0
    assert await shop.status(address) == ("pending", 0)


async def test_money_from_an_address_of_ours_is_no_deposit(shop, chain, watcher, usdx, asset):
    paid, topped_up = await shop.payment(chain, "USDX", ONE), await shop.payment(chain, "MEM", 100)
    chain.transfer(chain.info.native, paid, 5_000)
    chain.mine()
    chain.transfer(chain.info.native, topped_up, 100, sender=paid)
    chain.mine(5)
    await shop.poll(watcher)
    assert await shop.status(topped_up) == ("pending", 0)


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("fate", ["dropped", "mined again"])
async def test_state_and_ledger_follow_a_reorg(shop, chain, watcher, usdx, asset, depth, fate):
    address = await shop.payment(chain, "USDX", 10 * ONE)
    chain.mine(6)
    tx_id = chain.transfer(usdx, address, 10 * ONE)
    chain.mine(depth)
    await shop.poll(watcher)
    before, _ = await shop.status(address)
    assert before == {1: "detected", 2: "confirming", 5: "paid"}[depth]
    chain.reorg(depth, mine_again=[tx_id] if fate == "mined again" else [])
    await shop.poll(watcher)
    status, _ = await shop.status(address)
    if fate == "dropped":
        assert status == ("failed" if before == "paid" else "pending")
        assert await shop.balance(asset) == {}
    else:
        assert status == before
        assert await shop.balance(asset) == {}
        chain.mine(4)
        await shop.poll(watcher)
        assert await shop.status(address) == ("paid", 10 * ONE)
        assert await shop.balance(asset) == {"available": 10 * ONE}
    await shop.check_books()


async def test_money_that_was_spent_before_a_reorg_took_it_becomes_a_debt_that_is_repaid_first(
    shop, chain, watcher, usdx, asset
):
    address, later = await shop.payment(chain, "USDX", 10 * ONE), await shop.payment(chain, "USDX", 15 * ONE)
    tx_id = chain.transfer(usdx, address, 10 * ONE)
    chain.mine(5)
    await shop.poll(watcher)
    await spend(shop, asset, 7 * ONE)
    chain.reorg(5)
    await shop.poll(watcher)
    assert await shop.status(address) == ("failed", 0)
    assert await shop.balance(asset) == {"receivable": -7 * ONE, "pending": 7 * ONE}
    chain.transfer(usdx, later, 15 * ONE)
    chain.mine(4)
    await shop.poll(watcher)
    assert await shop.status(later) == ("paid", 15 * ONE)
    assert await shop.balance(asset) == {"available": 8 * ONE, "pending": 7 * ONE}
    assert tx_id


async def spend(shop, asset, units):
    move = Movement(
        Account(shop.merchant, asset, Purpose.AVAILABLE), Account(shop.merchant, asset, Purpose.PENDING), units
    )
    async with shop.db.transaction() as conn:
        await post(conn, "live", [Posting(mode="live", kind="spend", reference="1", movements=[move])])


async def test_a_transfer_that_vanishes_and_returns_is_credited_once_each_time(shop, chain, watcher, usdx, asset):
    address = await shop.payment(chain, "USDX", 10 * ONE)
    tx_id = chain.transfer(usdx, address, 10 * ONE)
    chain.mine(4)
    for _ in range(3):
        await shop.poll(watcher)
        assert await shop.balance(asset) == {"available": 10 * ONE}
        chain.reorg(4, mine_again=[tx_id])
        await shop.poll(watcher)
        assert await shop.balance(asset) == {}
        chain.mine(3)
    await shop.check_books()


async def test_an_endpoint_that_lags_takes_nothing_back(shop, chain, watcher, usdx, asset):
    address = await shop.payment(chain, "USDX", 10 * ONE)
    chain.transfer(usdx, address, 10 * ONE)
    chain.mine(5)
    await shop.poll(watcher)
    chain.faults.lag_blocks = 2
    await shop.poll(watcher)
    chain.faults.lag_blocks = 5
    with pytest.raises(InconsistentChainError, match="behind"):
        await watcher.poll()
    chain.faults.lag_blocks = 0
    await shop.poll(watcher)
    assert await shop.status(address) == ("paid", 10 * ONE)
    assert await shop.balance(asset) == {"available": 10 * ONE}


async def test_an_endpoint_that_is_some_short_blocks_behind_is_no_outage(shop, chain, watcher, usdx):
    """Several nodes behind one address are seconds apart, which are dozens of blocks where four come in a second."""
    address = await shop.payment(chain, "USDX", ONE)
    time = chain._blocks[-1].header.time
    for number in range(40):
        chain.mine(1, time=time + number // 4)
    chain.transfer(usdx, address, ONE)
    chain.mine(1, time=time + 10)
    seen = (await shop.poll(watcher)).height
    for lag_blocks in (17, 1, 16):
        chain.faults.lag_blocks = lag_blocks
        assert (await watcher.poll()).height == seen
    chain.faults.lag_blocks = 25
    with pytest.raises(InconsistentChainError, match="25 blocks behind"):
        await watcher.poll()
    assert await shop.status(address) == ("detected", ONE)


async def test_a_payment_handed_out_while_a_scan_runs_is_not_missed(shop, chain, watcher, usdx):
    """The transaction that hands the address out is older than the poll, and commits within it."""
    async with shop.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT pg_current_xact_id()")
        address = shop.family.derive_address("xpubOfTheShopsAccount", 0, 99)
        await shop.address_cache.refresh()
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, merchant_pk, account_index, change, address_index)"
            " VALUES ('live', 'memory', $1, $2, 1, 0, 99)",
            (address, shop.merchant),
        )
        await shop.payment(chain, "USDX", 1)
        await shop.address_cache.refresh()
    assert shop.family.address_key(address) not in shop.address_cache
    await shop.address_cache.refresh()
    assert shop.family.address_key(address) in shop.address_cache
    assert len(shop.address_cache) == 2


@pytest.mark.slow
async def test_watchers_side_by_side_credit_once(shop, chain, watcher, usdx, asset):
    addresses = [await shop.payment(chain, "USDX", 10 * ONE) for _ in range(10)]
    watchers = [shop.watcher(chain) for _ in range(4)]

    async def follow(one):
        for _ in range(15):
            await one.poll()

    followers = [asyncio.create_task(follow(one)) for one in watchers]
    for address in addresses:
        chain.transfer(usdx, address, 10 * ONE)
        chain.mine()
        await asyncio.sleep(0.01)
    await asyncio.gather(*followers)
    chain.mine(3)
    await shop.poll(watcher)
    assert await shop.balance(asset) == {"available": 100 * ONE}
    for address in addresses:
        assert [event for event, _ in await shop.events(address)] == [
            "payment.detected", "payment.confirming", "payment.paid",
        ]  # fmt: skip
    await shop.check_books()


async def test_a_first_look_reads_from_where_the_oldest_payment_was_made(shop, chain, usdx, clock):
    chain.mine(50)
    clock.advance(seconds=60)
    address = await shop.payment(chain, "USDX", ONE)
    clock.advance(seconds=60)
    chain.transfer(usdx, address, ONE)
    chain.mine(30, **at(chain, clock))
    await shop.poll(shop.watcher(chain))
    assert await shop.status(address) == ("paid", ONE)


async def test_a_long_backlog_is_read_span_by_span_and_judged_at_the_head(shop, chain, watcher, usdx):
    address = await shop.payment(chain, "USDX", ONE)
    chain.transfer(usdx, address, ONE)
    chain.mine(120)
    polls = []
    while not polls or polls[-1].behind:
        polls.append(await watcher.poll())
    assert [polled.blocks for polled in polls] == [50, 50, 20]
    assert [polled.transitions for polled in polls] == [0, 0, 3]


async def test_a_batch_that_does_not_continue_the_stored_chain_is_refused(shop, chain, watcher, usdx, db):
    chain.mine(3)
    await shop.poll(watcher)
    async with db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE chain_cursors SET hash = $1", (chain._blocks[2].header.hash,))
        await conn.exec_driver_sql("UPDATE chain_blocks SET hash = 'other' WHERE height = 3")
    chain.mine()
    await shop.poll(watcher)
    async with db.transaction() as conn:
        row = (await conn.exec_driver_sql("SELECT height, hash FROM chain_cursors")).one()
    assert (row.height, row.hash) == (4, chain._blocks[4].header.hash)


async def test_expiry_waits_until_the_chain_has_been_read_to_its_head(shop, chain, watcher, usdx, clock):
    address = await shop.payment(chain, "USDX", ONE)
    chain.transfer(usdx, address, ONE)
    chain.mine(60)
    clock.advance(seconds=7200)
    await watcher.poll()
    assert await shop.status(address) == ("pending", 0)
    await shop.poll(watcher)
    assert (await shop.status(address))[0] == "paid"


async def test_a_watch_learns_of_every_address_whatever_the_order_of_commits(shop, chain, db):
    cache = AddressCache(db, shop.family, "live")
    made = await asyncio.gather(
        *[shop.payment(chain, "USDX", 1) for _ in range(20)], *[cache.refresh() for _ in range(3)]
    )
    await cache.refresh()
    assert all(shop.family.address_key(address) in cache for address in made[:20])
