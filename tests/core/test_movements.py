"""What moves from and to tracked addresses is stored with the poll that read it, through reorgs and beside credits."""

import asyncio

import pytest

from cambist.testing.memory.blocks import Output
from cambist.testing.memory.family import named_address

ONE = 1_000_000
ALICE, BOB, CAROL = (named_address(name) for name in ("alice", "bob", "carol"))


async def movements(watchers):
    found = await watchers.rows(
        "SELECT sender, recipient, token, units, status, incarnation FROM movements ORDER BY id"
    )
    return [(row.sender, row.recipient, row.token, int(row.units), row.status, row.incarnation) for row in found]


async def test_what_comes_and_goes_is_stored_and_confirmed_once_it_is_deep_enough(shop, chain, watcher, usdx, watchers):
    await watchers.make([ALICE])
    chain.transfer(usdx, ALICE, 5 * ONE)
    chain.transfer(usdx, BOB, 7 * ONE)  # nobody's
    chain.mine()
    chain.transfer(usdx, BOB, 2 * ONE, sender=ALICE)
    chain.transfer(chain.info.native, ALICE, 9)
    chain.mine()
    await shop.poll(watcher)
    found = await movements(watchers)
    assert [one[:4] for one in found if one[1] == ALICE or one[0] == ALICE] == [one[:4] for one in found]
    assert sorted(one[2:4] for one in found) == [("MEM", 9), ("USDX", 2 * ONE), ("USDX", 5 * ONE)]
    assert {one[4] for one in found} == {"detected"}
    chain.mine(chain.info.confirmations - 1)
    await shop.poll(watcher)
    assert sorted(one[4] for one in await movements(watchers)) == ["confirmed", "detected", "detected"]
    chain.mine()
    await shop.poll(watcher)
    assert {one[4] for one in await movements(watchers)} == {"confirmed"}
    stages = await watchers.stages()
    each = {(tx_id, 1, stage) for tx_id, _, _ in stages for stage in ("detected", "confirmed")}
    assert (set(stages), len(stages)) == (each, 6)
    [least] = await watchers.rows(
        "SELECT min(s.head - m.height) AS confirmations FROM movement_stages s JOIN movements m ON m.id = s.movement_pk"
        " WHERE s.stage = 'confirmed'"
    )
    assert least.confirmations == chain.info.confirmations


@pytest.mark.parametrize("depth", [1, 5])
async def test_a_reorg_orphans_a_movement_and_the_next_incarnation_is_another_row(
    shop, chain, watcher, usdx, watchers, depth
):
    await watchers.make([ALICE])
    chain.mine(6)
    tx_id = chain.transfer(usdx, ALICE, 5 * ONE)
    chain.mine(depth)
    await shop.poll(watcher)
    before = ["detected"] if depth == 1 else ["detected", "confirmed"]
    chain.reorg(depth, mine_again=[tx_id])
    chain.mine(5)
    await shop.poll(watcher)
    assert await watchers.stages() == [
        *((tx_id, 1, stage) for stage in [*before, "orphaned"]),
        (tx_id, 2, "detected"),
        (tx_id, 2, "confirmed"),
    ]
    assert [one[4:] for one in await movements(watchers)] == [("orphaned", 1), ("confirmed", 2)]


async def test_several_transfers_of_a_transaction_are_movements_of_their_own(shop, chain, watcher, usdx, watchers):
    await watchers.make([ALICE, BOB])
    outputs = [(ALICE, 4 * ONE), (ALICE, 4 * ONE), (BOB, ONE), (CAROL, ONE)]
    chain.submit([Output(contract=usdx.contract, recipient=to, amount=amount) for to, amount in outputs])
    chain.mine()
    await shop.poll(watcher)
    assert sorted(one[1:4] for one in await movements(watchers)) == sorted(
        (to, "USDX", amount) for to, amount in outputs[:3]
    )


async def test_a_payments_address_can_be_tracked_too_and_is_credited_as_ever(
    shop, chain, watcher, usdx, asset, watchers
):
    address = await shop.payment(chain, "USDX", 10 * ONE)
    await watchers.make([address])
    chain.transfer(usdx, address, 10 * ONE)
    chain.mine(4)
    await shop.poll(watcher)
    assert await shop.balance(asset) == {"available": 10 * ONE}
    assert [one[1:5] for one in await movements(watchers)] == [(address, "USDX", 10 * ONE, "confirmed")]


async def test_an_amount_beyond_belief_is_no_movement_and_stops_no_credit(shop, chain, watcher, usdx, asset, watchers):
    address = await shop.payment(chain, "USDX", 10 * ONE)
    await watchers.make([ALICE])
    chain.transfer(usdx, ALICE, 10**78)
    chain.transfer(usdx, address, 10 * ONE)
    chain.mine(4)
    await shop.poll(watcher)
    assert await shop.balance(asset) == {"available": 10 * ONE}
    assert await movements(watchers) == []


async def test_an_address_that_is_added_is_matched_from_the_next_block_on(shop, chain, watcher, usdx, watchers):
    tracker = await watchers.make([BOB])
    chain.transfer(usdx, ALICE, ONE)
    chain.mine()
    await shop.poll(watcher)
    assert await movements(watchers) == []
    await watchers.add(tracker, [ALICE])
    chain.transfer(usdx, ALICE, 2 * ONE)
    chain.mine()
    await shop.poll(watcher)
    assert [one[3] for one in await movements(watchers)] == [2 * ONE]


async def test_two_watchers_store_each_movement_once(shop, chain, watcher, usdx, watchers):
    await watchers.make([ALICE])
    others = [shop.watcher(chain) for _ in range(3)]
    for _ in range(10):
        chain.transfer(usdx, ALICE, ONE)
        chain.mine()
        await asyncio.gather(*[one.poll() for one in (watcher, *others)])
    await shop.poll(watcher)
    assert len(await movements(watchers)) == 10
    stages = await watchers.stages()
    assert len(stages) == len(set(stages))


async def test_an_incarnation_keeps_its_number_to_itself_when_earlier_ones_are_deleted(
    shop, chain, watcher, usdx, watchers
):
    await watchers.make([ALICE])
    chain.mine(6)
    tx_id = chain.transfer(usdx, ALICE, ONE)
    for again in range(3):
        chain.mine()
        await shop.poll(watcher)
        if again == 1:
            await watchers.rows("DELETE FROM movement_stages RETURNING 1")
            await watchers.rows("DELETE FROM movements WHERE incarnation = 1 RETURNING 1")
        if again < 2:
            chain.reorg(chain.height - 6, mine_again=[tx_id])
            await shop.poll(watcher)
    stored = await watchers.rows("SELECT incarnation FROM movements ORDER BY id")
    assert [row.incarnation for row in stored] == [2, 3]
