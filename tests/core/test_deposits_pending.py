"""A poll does what is due, whatever that is, and asks one question where nothing is new."""

from __future__ import annotations

import pytest
from msgspec import structs

from cambist.services.receiving.deposits import opening_balances
from cambist.services.receiving.deposits.pending import TOLD_AFTER
from cambist.testing.memory import MemoryChain, memory_chain_info
from cambist.testing.memory.family import named_address
from tests.support.statements import statements
from tests.support.trackers import Watchers
from tests.support.treasury import Treasury

ONE = 1_000_000
ALICE = named_address("alice")


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        await treasury.mine()
        yield treasury


async def looked_at(db) -> tuple[object, ...]:
    async with db.autocommit() as conn:
        return tuple((await conn.exec_driver_sql("SELECT xmin::text, updated_at FROM chain_cursors")).one())


async def test_a_poll_that_finds_nothing_new_asks_one_question_and_writes_nothing(treasury, db):
    before = await looked_at(db)
    for _ in range(3):
        treasury.clock.advance(1)
        with statements(db) as executed:
            await treasury.poll()
        assert len(executed) == 1
    assert await looked_at(db) == before


async def test_books_are_opened_as_soon_as_there_is_a_gas_station_and_nothing_is_asked_for_it(shop, chain, watcher, db):
    """Also a watcher that begins where they are open knows it from that question."""
    station = shop.family.derive_address("xpubOfTheGateway", 0, 0)
    with statements(db) as executed:
        await watcher.poll()
    assert len(executed) == 1
    async with db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, purpose, account_index, change, address_index)"
            " VALUES ('live', 'memory', $1, 'gas', 0, 0, 0)",
            (station,),
        )
        assert await opening_balances.open_station(conn, chain.info, "live") is None
    await watcher.poll()
    async with db.autocommit() as conn:
        assert (await opening_balances.open_station(conn, chain.info, "live")).address == station
    for one in (watcher, shop.watcher(chain)):
        with statements(db) as executed:
            await one.poll()
        assert len(executed) == 1


async def test_a_poll_says_every_few_seconds_that_it_has_looked(treasury, db):
    for _ in range(2):
        _, before = await looked_at(db)
        treasury.clock.advance(TOLD_AFTER.total_seconds())
        await treasury.poll()
        _, after = await looked_at(db)
        assert after - before == TOLD_AFTER


async def test_a_block_in_which_nothing_is_ours_is_stored_and_nothing_is_judged(treasury, db):
    treasury.chain.mine()
    with statements(db) as executed:
        await treasury.poll()
    assert not [one for one in executed[1:] if "payments" in one or "deposits" in one or "FROM movements" in one]
    # That question, with what is new among addresses, and one statement for the cursor, the block and old ones.
    assert len(executed) == 2


async def test_a_payment_expires_while_the_chain_stands_still(shop, chain, watcher, clock):
    address = await shop.payment(chain, "USDX", ONE, minutes=1)
    chain.mine()
    await shop.poll(watcher)
    assert await shop.status(address) == ("pending", 0)
    clock.advance(60)
    await shop.poll(watcher)
    assert (await shop.status(address))[0] == "expired"


async def test_a_payment_that_somebody_marked_is_judged_while_the_chain_stands_still(shop, chain, watcher, db):
    await shop.payment(chain, "USDX", ONE)
    chain.mine()
    await shop.poll(watcher)
    async with db.autocommit() as conn:
        await conn.exec_driver_sql("UPDATE payments SET dirty = true")
    await shop.poll(watcher)
    async with db.autocommit() as conn:
        assert (await conn.exec_driver_sql("SELECT dirty FROM payments")).scalar_one() is False


async def test_what_becomes_final_is_confirmed_while_the_chain_stands_still(shop, clock, db, usdx, asset):
    info = structs.replace(memory_chain_info(), finality_required=True)
    chain = MemoryChain(info, genesis_time=int(clock.now().timestamp()) - 600, finality_lag_blocks=50)
    watcher = shop.watcher(chain)
    await shop.poll(watcher)
    await Watchers(shop.db, shop.project, family=shop.family.name).make([ALICE])
    address = await shop.payment(chain, "USDX", ONE)
    chain.transfer(usdx, address, ONE)
    chain.transfer(usdx, ALICE, ONE)
    chain.mine(10)
    await shop.poll(watcher)
    assert (await shop.balance(asset), await movements(db)) == ({}, ["detected"])
    chain._finality_lag_blocks = 0
    await shop.poll(watcher)
    assert await shop.status(address) == ("paid", ONE)
    assert (await shop.balance(asset), await movements(db)) == ({"available": ONE}, ["confirmed"])


async def movements(db) -> list[str]:
    async with db.autocommit() as conn:
        return list((await conn.exec_driver_sql("SELECT status FROM movements ORDER BY id")).scalars())


async def test_a_page_is_told_of_every_confirmation(shop, chain, watcher, usdx):
    """Also of those with which nothing is decided."""
    address = await shop.payment(chain, "USDX", ONE)
    chain.transfer(usdx, address, ONE)
    chain.mine()
    await shop.poll(watcher)
    async with watcher._hints.subscribe("payment:pub_0") as hint:
        for _ in range(chain.info.confirmations):
            chain.mine()
            await shop.poll(watcher)
            assert await hint.wait(0.01)
        assert (await shop.status(address))[0] == "paid"
        chain.mine()
        await shop.poll(watcher)
        assert not await hint.wait(0.01)


async def test_what_moved_is_confirmed_where_nobody_is_paid(shop, chain, watcher, usdx, db):
    await Watchers(shop.db, shop.project, family=shop.family.name).make([ALICE])
    chain.transfer(usdx, ALICE, ONE)
    chain.mine()
    await shop.poll(watcher)
    for _ in range(chain.info.confirmations):
        assert await movements(db) == ["detected"]
        chain.mine()
        await shop.poll(watcher)
    assert await movements(db) == ["confirmed"]


async def test_what_is_deep_already_when_it_is_first_read_is_confirmed_with_it(shop, chain, watcher, usdx, db):
    await Watchers(shop.db, shop.project, family=shop.family.name).make([ALICE])
    address = await shop.payment(chain, "USDX", ONE)
    chain.transfer(usdx, address, ONE)
    chain.transfer(usdx, ALICE, ONE)
    chain.mine(chain.info.confirmations + 2)
    assert (await watcher.poll()).behind == 0
    assert (await shop.status(address), await movements(db)) == (("paid", ONE), ["confirmed"])
