"""Every tracker hears of every movement of its addresses, once for each thing that became of it."""

import asyncio

import msgspec
import pytest

from cambist.domain.identifiers import sort_key
from cambist.domain.moments import moment
from cambist.hints import Hints
from cambist.services.platform import PlatformSettings
from cambist.services.trackers import fan_out, telling, transactions
from cambist.services.trackers.bodies import Stage
from cambist.services.trackers.fan_out import FanOut
from cambist.testing.memory.blocks import Output
from cambist.testing.memory.family import named_address
from tests.support.fragile import Deeds, FragileDatabase, KilledError

ONE = 1_000_000
ALICE, BOB, CAROL = (named_address(name) for name in ("alice", "bob", "carol"))


@pytest.fixture
def fan(db, clock):
    return FanOut(db, clock, Hints(None))


def brief(bodies):
    """Return what was told, shortly: event, direction, address and amount."""
    return [
        (b["event"].split(".")[1], b["data"]["direction"], b["data"]["address"], b["data"]["amount"]) for b in bodies
    ]


async def ids_of(watchers):
    rows = await watchers.rows("SELECT delivery_id FROM webhook_deliveries WHERE tracker_pk IS NOT NULL ORDER BY id")
    return [row.delivery_id for row in rows]


async def test_a_transfer_is_told_when_it_is_seen_and_when_it_is_confirmed(
    shop, chain, watcher, usdx, watchers, fan, clock
):
    tracker = await watchers.make([BOB])
    await watchers.add(tracker, [ALICE], label="Till 4")
    tx_id = chain.transfer(usdx, ALICE, 5 * ONE + 500_000)
    chain.mine()
    await shop.poll(watcher)
    assert await fan.drain("memory", 0) == 1
    chain.mine(chain.info.confirmations)
    await shop.poll(watcher)
    assert await fan.drain("memory", 0) == 1
    seen, confirmed = await watchers.told(tracker)
    data = seen["data"]
    transaction_id = data.pop("transactionId")
    assert transaction_id.startswith("mov_")
    assert len(transaction_id) == len("mov_") + 32
    assert data.pop("blockHash")
    assert data.pop("from") is not None
    assert data.pop("blockTime").endswith("Z")
    assert (seen["event"], seen["webhookId"]) == ("transaction.detected", f"trk_{shop.project}_1")
    assert data == {
        "resource": "transaction",
        "direction": "in",
        "address": ALICE,
        "label": "Till 4",
        "chain": "memory",
        "txHash": tx_id,
        "to": ALICE,
        "token": "USDX",
        "contractAddress": usdx.contract,
        "amount": "5.5",
        "blockNumber": 1,
        "confirmations": 0,
        "requiredConfirmations": chain.info.confirmations,
        "status": "detected",
        "timestamp": moment(clock.now()),
    }
    assert confirmed["event"] == "transaction.confirmed"
    assert confirmed["data"]["transactionId"] == transaction_id
    assert confirmed["data"]["confirmations"] == chain.info.confirmations
    assert confirmed["data"]["status"] == "confirmed"
    assert await fan.drain("memory", 0) == 0


async def test_what_goes_to_somebody_whom_nobody_watches_is_told_of_who_sent_it(
    shop, chain, watcher, usdx, watchers, fan
):
    tracker = await watchers.make([ALICE])
    chain.transfer(usdx, ALICE, 3 * ONE)
    chain.mine()
    await shop.poll(watcher)
    chain.transfer(usdx, CAROL, ONE, sender=ALICE)
    chain.mine()
    await shop.poll(watcher)
    await fan.drain("memory", 0)
    assert sorted(one[1:] for one in brief(await watchers.told(tracker))) == [("in", ALICE, "3"), ("out", ALICE, "1")]
    assert len(await watchers.stages()) == 2


async def test_it_is_told_to_everybody_who_watches_and_to_nobody_else(shop, chain, watcher, usdx, watchers, fan):
    sender, recipient, both, neither = [
        await watchers.make(addresses) for addresses in ([ALICE], [BOB], [ALICE, BOB], [CAROL])
    ]
    later = await watchers.make([ALICE], start_block=2)
    off = await watchers.make([ALICE])
    elsewhere = await watchers.make([ALICE, BOB], chain="other")
    await watchers.change(off, is_active=False)
    chain.transfer(usdx, ALICE, 3 * ONE)
    chain.mine()
    await shop.poll(watcher)
    await fan.drain("memory", 0)
    chain.transfer(usdx, BOB, 2 * ONE, sender=ALICE)
    chain.mine()
    await shop.poll(watcher)
    await fan.drain("memory", 0)
    received, sent, got = (
        ("detected", "in", ALICE, "3"),
        ("detected", "out", ALICE, "2"),
        ("detected", "in", BOB, "2"),
    )
    assert brief(await watchers.told(sender)) == [received, sent]
    assert brief(await watchers.told(recipient)) == [got]
    assert brief(await watchers.told(both)) == [received, got, sent]
    assert brief(await watchers.told(later)) == [sent]
    assert [await watchers.told(one) for one in (neither, off, elsewhere)] == [[], [], []]


async def test_who_pays_himself_hears_of_both_ends(shop, chain, watcher, usdx, watchers, fan):
    tracker = await watchers.make([ALICE])
    chain.transfer(usdx, ALICE, 3 * ONE)
    chain.mine()
    chain.transfer(usdx, ALICE, ONE, sender=ALICE)
    chain.mine()
    await shop.poll(watcher)
    await fan.drain("memory", 0)
    told = await watchers.told(tracker)
    assert brief(told)[1:] == [("detected", "in", ALICE, "1"), ("detected", "out", ALICE, "1")]
    assert told[1]["data"]["transactionId"] != told[2]["data"]["transactionId"]
    assert told[1]["data"]["txHash"] == told[2]["data"]["txHash"]


async def test_several_transfers_of_one_transaction_are_told_one_by_one(shop, chain, watcher, usdx, watchers, fan):
    tracker = await watchers.make([ALICE])
    chain.submit([Output(contract=usdx.contract, recipient=ALICE, amount=4 * ONE) for _ in range(3)])
    chain.mine(1 + chain.info.confirmations)
    await shop.poll(watcher)
    await fan.drain("memory", 0)
    told = await watchers.told(tracker)
    assert [one["event"] for one in told] == ["transaction.detected"] * 3 + ["transaction.confirmed"] * 3
    assert len({one["data"]["transactionId"] for one in told}) == 3
    assert len({one["data"]["txHash"] for one in told}) == 1


async def test_what_is_told_of_a_block_is_written_in_the_order_of_its_ids(
    shop, chain, watcher, usdx, watchers, fan, monkeypatch
):
    await watchers.make([ALICE])
    monkeypatch.setattr(fan_out, "STAGES_FIRST", 4)
    amounts = range(1, 31)
    for amount in amounts:
        chain.submit(
            [Output(contract=usdx.contract, recipient=ALICE, amount=part) for part in (amount * ONE, amount * ONE + 1)]
        )
    chain.mine()
    await shop.poll(watcher)
    await fan.drain("memory", 0)
    written = await watchers.rows(
        "SELECT d.delivery_id, m.units FROM webhook_deliveries d"
        " JOIN tracker_transactions t ON t.transaction_id = d.resource_id JOIN movements m ON m.id = t.movement_pk"
        " ORDER BY d.id"
    )
    keys = [row.delivery_id[: len("evt_") + 8 + 4] for row in written]
    assert len(set(keys)) > 1
    assert keys == sorted(keys)
    units = [int(row.units) for row in written]
    assert (len(units), units != sorted(units)) == (60, True)
    assert [other - one for one, other in zip(units[::2], units[1::2], strict=True)] == [1] * 30


@pytest.mark.parametrize("told_between", [True, False])
async def test_a_reorg_is_told_and_what_is_mined_again_keeps_its_id(
    shop, chain, watcher, usdx, watchers, fan, told_between
):
    tracker = await watchers.make([ALICE])
    chain.mine(6)
    tx_id = chain.transfer(usdx, ALICE, 5 * ONE)
    chain.mine(5)
    await shop.poll(watcher)
    if told_between:
        await fan.drain("memory", 0)
    chain.reorg(5, mine_again=[tx_id])
    chain.mine(4)
    await shop.poll(watcher)
    await fan.drain("memory", 0)
    told = await watchers.told(tracker)
    assert [one["data"]["status"] for one in told] == ["detected", "confirmed", "orphaned", "detected", "confirmed"]
    assert len({one["data"]["transactionId"] for one in told}) == 1
    hashes = [one["data"]["blockHash"] for one in told]
    assert len(set(hashes[:3])) == len(set(hashes[3:])) == 1
    assert hashes[0] != hashes[3]
    assert told[0]["data"]["blockTime"] != told[3]["data"]["blockTime"]
    assert [one["data"]["confirmations"] for one in told][2] == 0
    [kept] = await watchers.rows(
        "SELECT m.incarnation, m.status FROM tracker_transactions t JOIN movements m ON m.id = t.movement_pk"
    )
    assert tuple(kept) == (2, "confirmed")
    # By its id alone all of that is found, and nothing else.
    async with shop.db.autocommit() as conn:
        found = await transactions.delivery_ids(conn, told[0]["data"]["transactionId"])
        assert await transactions.delivery_ids(conn, "mov_of_nobody") == []
    told_ids = {row.delivery_id for row in await watchers.rows("SELECT delivery_id FROM webhook_deliveries")}
    assert told_ids < set(found)
    assert len(found) == len(set(found)) == 6


async def test_who_never_heard_of_a_transfer_is_not_told_that_it_is_gone(shop, chain, watcher, usdx, watchers, fan):
    await watchers.make([ALICE])
    chain.mine(3)
    chain.transfer(usdx, ALICE, 5 * ONE)
    chain.mine()
    await shop.poll(watcher)
    await fan.drain("memory", 0)
    late = await watchers.make([ALICE])
    chain.reorg(1)
    await shop.poll(watcher)
    await fan.drain("memory", 0)
    assert await watchers.told(late) == []
    assert [stage for _, _, stage in await watchers.stages()] == ["detected", "orphaned"]


async def test_many_workers_tell_each_movement_once(shop, chain, watcher, usdx, watchers, db, clock):
    trackers = [await watchers.make([ALICE, BOB]) for _ in range(3)]
    workers = [FanOut(db, clock, Hints(None)) for _ in range(4)]
    for number in range(12):
        chain.transfer(usdx, ALICE if number % 2 else BOB, ONE + number)
        chain.mine()
        await shop.poll(watcher)
        if number % 3 == 0:
            await asyncio.gather(*[worker.drain("memory", 0) for worker in workers])
    await asyncio.gather(*[worker.drain("memory", 0) for worker in workers])
    await workers[0].drain("memory", 0)
    stages = await watchers.stages()
    ids = await ids_of(watchers)
    assert len(ids) == len(set(ids)) == 3 * len(stages)
    for tracker in trackers:
        told = [one["data"]["txHash"] for one in await watchers.told(tracker) if one["data"]["status"] == "detected"]
        assert len(told) == len(set(told)) == 12


@pytest.fixture
def few_at_once(monkeypatch):
    """Have two stages told in one transaction, and two looked up meanwhile, as where a block has thousands."""
    for name in ("STAGES_FIRST", "STAGES_MAX"):
        monkeypatch.setattr(fan_out, name, 2)


@pytest.mark.slow
@pytest.mark.parametrize("transfers", [1, 5])
async def test_a_death_at_any_moment_loses_and_doubles_nothing(
    shop, chain, watcher, usdx, watchers, db, clock, fan, few_at_once, transfers
):
    tracker = await watchers.make([ALICE])
    outlived, moment_, sent = False, 0, []
    while not outlived:
        moment_ += 1
        sent += sorted((chain.transfer(usdx, ALICE, ONE) for _ in range(transfers)), key=sort_key)
        chain.mine()
        await shop.poll(watcher)
        mortal = FanOut(FragileDatabase(db, Deeds(moment_)), clock, Hints(None))
        try:
            await mortal.drain("memory", 0)
            outlived = True
        except KilledError:
            await fan.drain("memory", 0)
    assert moment_ > transfers
    told = [one["data"]["txHash"] for one in await watchers.told(tracker) if one["data"]["status"] == "detected"]
    assert told == sent
    ids = await ids_of(watchers)
    assert len(ids) == len(set(ids))


async def test_an_address_of_very_many_trackers_is_told_in_bounded_transactions(
    shop, chain, watcher, usdx, watchers, fan, monkeypatch
):
    """Though each movement is told whole: to all who watch it, even where they are more than the bound."""
    monkeypatch.setattr(telling, "MATCHES_MAX", 3)
    trackers = [await watchers.make([ALICE]) for _ in range(5)]
    few = await watchers.make([BOB])
    for number in range(4):
        chain.transfer(usdx, BOB, ONE + number)
        chain.transfer(usdx, ALICE, ONE + number)
    chain.mine()
    await shop.poll(watcher)
    assert await fan.drain("memory", 0) == 4 * 5 + 4
    for tracker in (*trackers, few):
        assert len(await watchers.told(tracker)) == 4


async def test_what_comes_next_is_looked_up_while_what_came_before_is_written(
    shop, chain, watcher, usdx, watchers, db, clock, monkeypatch, few_at_once
):
    used = []
    take = fan_out.Ahead.take

    async def taken(ahead, after, version):
        found = await take(ahead, after, version)
        used.append(found is not None)
        return found

    monkeypatch.setattr(fan_out.Ahead, "take", taken)
    tracker = await watchers.make([ALICE])
    sent = sorted((chain.transfer(usdx, ALICE, ONE + number) for number in range(9)), key=sort_key)
    chain.mine()
    await shop.poll(watcher)
    workers = [FanOut(db, clock, Hints(None)) for _ in range(3)]
    assert sum(await asyncio.gather(*[worker.drain("memory", 0) for worker in workers])) == 9
    assert [one["data"]["txHash"] for one in await watchers.told(tracker)] == sent
    assert sum(used) >= 3


async def test_what_was_looked_up_before_the_past_was_told_is_looked_up_again(
    shop, chain, watcher, usdx, watchers, db, clock, few_at_once
):
    """Who reads the past leaves to the fan-out what it has yet to tell, also to those who have begun to watch since."""
    first = await watchers.make([ALICE])
    for number in range(4):
        chain.transfer(usdx, ALICE, ONE + number)
    chain.mine()
    await shop.poll(watcher)
    ahead, rest = fan_out.Ahead(db, "memory", 0), {"settings": PlatformSettings(), "now": clock.now(), "stages_max": 2}
    async with db.transaction() as conn:
        assert (await fan_out.fan_out(conn, "memory", 0, ahead, **rest)).deliveries == 2
    await asyncio.wait([ahead._task])
    second = await watchers.make([ALICE])
    async with db.transaction() as conn:
        assert await fan_out.lock_cursor(conn, "memory", 0) == 1
    async with db.transaction() as conn:
        assert (await fan_out.fan_out(conn, "memory", 0, ahead, **rest)).deliveries == 4
    await ahead.close()
    assert [len(await watchers.told(tracker)) for tracker in (first, second)] == [4, 2]


async def test_who_stops_telling_leaves_no_look_ahead_behind(
    shop, chain, watcher, usdx, watchers, fan, few_at_once, monkeypatch
):
    await watchers.make([ALICE])
    for number in range(6):
        chain.transfer(usdx, ALICE, ONE + number)
    chain.mine()
    await shop.poll(watcher)
    looking_up, look_up = asyncio.Event(), fan_out.look_up

    async def once(*args):
        monkeypatch.setattr(fan_out, "look_up", endless)
        return await look_up(*args)

    async def endless(*_):
        looking_up.set()
        await asyncio.Event().wait()

    before = asyncio.all_tasks()
    monkeypatch.setattr(fan_out, "look_up", once)
    telling_ = asyncio.create_task(fan.drain("memory", 0))
    await looking_up.wait()
    telling_.cancel()
    await asyncio.gather(telling_, return_exceptions=True)
    assert asyncio.all_tasks() == before
    monkeypatch.setattr(fan_out, "look_up", look_up)
    assert await fan.drain("memory", 0) >= 4
    assert len(await ids_of(watchers)) == 6


async def test_what_was_looked_up_ahead_may_be_orphaned_before_it_is_written(
    shop, chain, watcher, usdx, watchers, db, clock
):
    """Who has heard of the transfer as it was mined again does not hear of its earlier block."""
    tracker = await watchers.make([ALICE])
    tx_id = chain.transfer(usdx, ALICE, ONE)
    chain.mine()
    await shop.poll(watcher)
    [row] = await watchers.rows("SELECT movement_pk, stage, head, at FROM movement_stages")
    async with db.transaction() as conn:
        findings = await telling.look_up(conn, "memory", 0, [Stage(*row)])
    chain.reorg(1, mine_again=[tx_id])
    await shop.poll(watcher)
    again = (await watchers.rows("SELECT movement_pk, stage, head, at FROM movement_stages ORDER BY id"))[-1]
    async with db.transaction() as conn:
        rest = {"settings": PlatformSettings(), "now": clock.now()}
        told = await telling.tell(conn, "memory", 0, [Stage(*again)], only_trackers=[tracker], **rest)
        late = await telling.queue(conn, "memory", findings, **rest)
    assert (told.deliveries, late.deliveries) == (1, 0)
    [heard] = await watchers.told(tracker)
    [stands] = await watchers.rows("SELECT block_hash FROM movements WHERE status <> 'orphaned'")
    assert heard["data"]["blockHash"] == stands.block_hash


async def test_each_transfer_is_metered_once_for_each_tracker(shop, chain, watcher, usdx, watchers, fan):
    for _ in range(2):
        await watchers.make([ALICE])
    for _ in range(3):
        chain.transfer(usdx, ALICE, ONE)
    chain.mine()
    await shop.poll(watcher)
    await fan.drain("memory", 0)
    chain.mine(4)
    await shop.poll(watcher)
    await fan.drain("memory", 0)
    rows = await watchers.rows("SELECT operation, chain, reference, weight FROM usage_records ORDER BY id")
    known = await watchers.rows("SELECT transaction_id, tracker_pk FROM tracker_transactions ORDER BY id")
    first = {one.tracker_pk: one.transaction_id for one in reversed(known)}
    assert [tuple(row) for row in rows] == [("tracker", "memory", first[pk], 3) for pk in sorted(first)]
    assert len(first) == 2, "one record for all that was told at once, under the id of the first"


async def test_history_and_live_tell_the_same_thing_once(shop, chain, watcher, usdx, watchers, fan, db, clock):
    tracker = await watchers.make([ALICE])
    other = await watchers.make([ALICE])
    chain.transfer(usdx, ALICE, ONE)
    chain.mine(5)
    await shop.poll(watcher)
    found = await watchers.rows("SELECT movement_pk, stage, head, at FROM movement_stages ORDER BY id")
    stages = [Stage(*row) for row in found]
    async with db.transaction() as conn:
        told = await telling.tell(
            conn, "memory", 0, stages, settings=PlatformSettings(), now=clock.now(), only_trackers=[tracker]
        )
    assert (told.stages, told.deliveries) == (2, 2)
    assert await watchers.told(other) == []
    assert await fan.drain("memory", 0) == 2
    assert len(await watchers.told(tracker)) == len(await watchers.told(other)) == 2


async def test_lists_of_other_chains_and_of_sandboxes_cost_the_matching_nothing(watchers, db):
    tracker = await watchers.make([ALICE])
    await watchers.make([ALICE], chain="other")
    async with db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO trackers (webhook_id, project_pk, mode, chain, scope, url, name, start_block, max_addresses,"
            " token_hash, token_encrypted, secret_encrypted) SELECT 'x' || n, project_pk, mode,"
            " CASE n % 2 WHEN 0 THEN 'other' ELSE 'memory' END, n % 2, url, name, 0, 1, ('x' || n)::bytea, '', ''"
            " FROM trackers, generate_series(1, 200) n WHERE id = $1",
            (tracker,),
        )
        await conn.exec_driver_sql(
            "INSERT INTO tracker_addresses (tracker_pk, chain, scope, address) SELECT id, chain, scope, $1"
            " FROM trackers WHERE webhook_id LIKE 'x%'",
            (ALICE,),
        )
        await conn.exec_driver_sql("SET LOCAL enable_seqscan = off")
        await conn.exec_driver_sql("SET LOCAL enable_bitmapscan = off")
        found = await conn.exec_driver_sql(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {telling._MATCH}", ([1], [ALICE], [None], "memory", 0, None, 10)
        )
        [[plan]] = [msgspec.json.decode(row[0]) if isinstance(row[0], str) else row[0] for row in found]
    nodes = list(nodes_of(plan["Plan"]))
    assert any(node.get("Index Name") == "ix_tracker_addresses_address" for node in nodes)
    assert max(node["Actual Rows"] for node in nodes) <= 2, "the two ends of the one movement"
    assert all(not node.get("Rows Removed by Filter") for node in nodes)


def nodes_of(plan):
    yield plan
    for below in plan.get("Plans", []):
        yield from nodes_of(below)
