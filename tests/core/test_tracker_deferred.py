"""A movement that cannot be told stops nobody: it is put aside, and told in its order once that is possible."""

import pytest

from cambist.domain.identifiers import sort_key
from cambist.hints import Hints
from cambist.services.trackers import deferred, fan_out
from cambist.services.trackers.fan_out import FanOut
from cambist.testing.memory.family import named_address

ONE = 1_000_000
UNWRITABLE = 2**62
"""So many decimals no text has room for."""
ALICE, BOB = (named_address(name) for name in ("alice", "bob"))


@pytest.fixture
def fan(db, clock):
    return FanOut(db, clock, Hints(None))


def amounts(bodies):
    return [(one["data"]["status"], one["data"]["amount"]) for one in bodies]


def transfer_to(address, chain, token, count):
    """Send 1, 2, ... up to so many; return the amounts in the order in which trackers are told of them in one block."""
    sent = {number: chain.transfer(token, address, number * ONE) for number in range(1, count + 1)}
    return sorted(sent, key=lambda number: sort_key(sent[number]))


async def break_movement(watchers, units, decimals):
    """Have a movement say what no body can be written of, or mend it."""
    await watchers.rows("UPDATE movements SET decimals = $2 WHERE units = $1 RETURNING id", units, decimals)


@pytest.mark.parametrize("stages_max", [fan_out.STAGES_MAX, 2], ids=["all at once", "two while two are looked up"])
async def test_one_movement_that_cannot_be_told_stops_no_other_and_is_told_in_order_when_it_can(
    shop, chain, watcher, usdx, watchers, fan, clock, db, monkeypatch, stages_max
):
    for name in ("STAGES_FIRST", "STAGES_MAX"):
        monkeypatch.setattr(fan_out, name, stages_max)
    tracker = await watchers.make([ALICE, BOB])
    in_order = transfer_to(ALICE, chain, usdx, 7)
    chain.mine()
    await shop.poll(watcher)
    await break_movement(watchers, 5 * ONE, UNWRITABLE)
    assert await fan.drain("memory", 0) == 6
    assert amounts(await watchers.told(tracker)) == [("detected", str(number)) for number in in_order if number != 5]
    # What becomes of it later waits with it, and what others did goes on.
    chain.mine(chain.info.confirmations)
    await shop.poll(watcher)
    assert await fan.drain("memory", 0) == 6
    async with db.transaction() as conn:
        assert await deferred.counts(conn) == {"memory": 2}
    for _ in range(3):
        clock.advance(seconds=7200)
        assert await fan.drain("memory", 0) == 0
    [(attempts,), (behind,)] = await watchers.rows("SELECT attempts FROM deferred_stages ORDER BY stage_pk")
    assert (attempts, behind) == (4, 1)
    await break_movement(watchers, 5 * ONE, usdx.decimals)
    assert await fan.drain("memory", 0) == 0
    clock.advance(seconds=7200)
    assert await fan.drain("memory", 0) == 2
    assert amounts(await watchers.told(tracker))[-2:] == [("detected", "5"), ("confirmed", "5")]
    assert await watchers.rows("SELECT * FROM deferred_stages") == []


async def test_where_everything_fails_the_fan_out_stands_still_until_one_that_was_put_aside_can_be_told(
    shop, chain, watcher, usdx, watchers, fan, clock, monkeypatch
):
    monkeypatch.setattr(deferred, "DEFERRED_MAX", 2)
    tracker = await watchers.make([ALICE])
    in_order = transfer_to(ALICE, chain, usdx, 5)
    chain.mine()
    await shop.poll(watcher)
    for number in range(1, 6):
        await break_movement(watchers, number * ONE, UNWRITABLE)
    with pytest.raises(MemoryError):
        await fan.drain("memory", 0)
    assert len(await watchers.rows("SELECT * FROM deferred_stages")) == 2
    # Each is tried again, later and later, however full the place is.
    clock.advance(seconds=7200)
    with pytest.raises(MemoryError):
        await fan.drain("memory", 0)
    assert await watchers.rows("SELECT attempts FROM deferred_stages") == [(2,), (2,)]
    # One that is told makes place for one that stood in the way of all others.
    mended = [in_order[place] for place in (1, 3, 4)]
    for number in mended:
        await break_movement(watchers, number * ONE, usdx.decimals)
    clock.advance(seconds=7200)
    with pytest.raises(MemoryError):
        await fan.drain("memory", 0)
    assert await fan.drain("memory", 0) == 2
    assert amounts(await watchers.told(tracker)) == [("detected", str(number)) for number in mended]


async def test_a_transfer_that_is_mined_again_waits_behind_what_it_was_before(
    shop, chain, watcher, usdx, watchers, fan, clock
):
    tracker = await watchers.make([ALICE])
    chain.mine(6)
    tx_id = chain.transfer(usdx, ALICE, 5 * ONE)
    chain.mine()
    await shop.poll(watcher)
    await break_movement(watchers, 5 * ONE, UNWRITABLE)
    assert await fan.drain("memory", 0) == 0
    chain.reorg(1, mine_again=[tx_id])
    chain.mine()
    await shop.poll(watcher)
    assert await fan.drain("memory", 0) == 0
    await break_movement(watchers, 5 * ONE, usdx.decimals)
    clock.advance(seconds=7200)
    await fan.drain("memory", 0)
    assert [one["data"]["status"] for one in await watchers.told(tracker)] == ["detected", "orphaned", "detected"]
