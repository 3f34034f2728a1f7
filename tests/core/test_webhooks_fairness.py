"""Whoever hears of something has a queue of their own: no backlog, however long, is in anybody else's way."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import msgspec
import pytest

from cambist.services.webhooks import claims
from cambist.services.webhooks.lanes import Room
from tests.support.trackers import Watchers
from tests.support.webhooks import deliverer, make_project, paid, put, receiver

BACKLOG = 1_500
QUEUES = 4
ROOMY = Room(attempts=512, unknown=128, by_origin={})


@pytest.fixture
async def project(db, ids):
    return await make_project(db, ids)


@pytest.fixture
def watchers(db, project):
    return Watchers(db, project[0], family="memory")


@pytest.fixture
def claim(db, clock):
    async def take(room=ROOMY, begin=None, number=0):
        async with db.autocommit() as conn:
            leased_until = clock.now() + timedelta(seconds=30)
            return await claims.claim(
                conn,
                now=clock.now(),
                leased_until=leased_until,
                events_max=200,
                room=room,
                number=number,
                begin=begin,
            )

    return take


async def pile_up(watchers, tracker, count, clock, *, earlier_s=0):
    """Have so many deliveries due to a tracker, each about a transaction of its own."""
    await watchers.rows(
        "WITH told AS (INSERT INTO tracker_transactions (transaction_id, tracker_pk, movement_pk, direction, address)"
        " SELECT 'mov_' || $1::bigint || '_' || to_char(n, 'FM00000'), $1::bigint, 1, 'in', 'a'"
        " FROM generate_series(1, $2::bigint) n RETURNING transaction_id)"
        " INSERT INTO webhook_deliveries (delivery_id, project_pk, tracker_pk, event, resource_id, url, body, due_at)"
        " SELECT 'evt' || substr(transaction_id, 4) || 'd1', project_pk, t.id, 'transaction.detected', transaction_id,"
        " t.url, '{}', $3"
        " FROM told, trackers t WHERE t.id = $1::bigint RETURNING id",
        *(tracker, count, clock.now() - timedelta(seconds=earlier_s)),
    )


async def test_a_trackers_backlog_delays_no_other_tracker_and_no_project(db, clock, ids, project, watchers, claim):
    flooded = await watchers.make(["a"], url="https://flooded.example/moved")
    await pile_up(watchers, flooded, BACKLOG, clock, earlier_s=3600)
    others = [await watchers.make(["a"], url=f"https://other{number}.example/moved") for number in range(5)]
    for other in others:
        await pile_up(watchers, other, 1, clock)
    await put(db, [paid(project, "https://shop.example/hook", number) for number in range(150)], ids=ids, clock=clock)
    taken = Counter(one.url.split("/")[2] for one in (await claim()).claims)
    assert sum(taken.values()) == 200
    # Projects' events come first, as far as there is room at one receiver; then each tracker has its turn.
    assert taken["shop.example"] == 128
    assert [taken[f"other{number}.example"] for number in range(5)] == [1] * 5
    assert taken["flooded.example"] == 200 - 128 - 5


async def test_where_one_receivers_places_are_few_everybody_who_is_told_there_has_a_turn(db, clock, watchers, claim):
    """As many old backlogs as would take each of its places, and a fresh delivery of somebody else."""
    url = "https://hub.example/moved"
    flooded = [await watchers.make(["a"], url=url) for _ in range(8)]
    for tracker in flooded:
        await pile_up(watchers, tracker, 50, clock, earlier_s=3600)
    fresh = await watchers.make(["a"], url=url)
    await pile_up(watchers, fresh, 50, clock)
    room = Room(attempts=500, unknown=4, by_origin={})
    told = Counter()
    for number in range(27):
        told.update(one.signed_by for one in (await claim(room, number=number)).claims)
    assert sum(told.values()) == 27 * 4
    assert len(told) == 9


async def test_a_receivers_backlog_behind_a_full_lane_hides_nobody(db, clock, ids, project, claim):
    await put(
        db, [paid(project, "https://full.example/hook", number) for number in range(BACKLOG)], ids=ids, clock=clock
    )
    clock.advance(1)
    await put(db, [paid(project, "https://late.example/hook", BACKLOG)], ids=ids, clock=clock)
    room = Room(attempts=500, unknown=8, by_origin={"https://full.example": 0})
    assert [one.url for one in (await claim(room)).claims] == ["https://late.example/hook"]


async def test_more_queues_than_one_claim_looks_for_are_all_come_to(db, clock, ids, project, claim):
    queues = claims.TARGETS_MAX + 150
    await put(
        db, [paid(project, f"https://shop{number}.example/", number) for number in range(queues)], ids=ids, clock=clock
    )
    urls, begin, rounds = set(), None, 0
    while len(urls) < queues and rounds < 20:
        found = await claim(begin=begin)
        urls |= {one.url for one in found.claims}
        begin, rounds = found.go_on, rounds + 1
    assert len(urls) == queues
    assert rounds < 10


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
async def test_a_claim_reads_the_fronts_of_queues_and_not_their_length(db, clock, ids, watchers, project, is_known):
    """With the plan that PostgreSQL keeps for values that it has not seen, whether or not it knows of the rows."""
    if not is_known:
        async with db.autocommit() as conn:
            await conn.exec_driver_sql("ALTER TABLE webhook_deliveries SET (autovacuum_enabled = off)")
    for _ in range(QUEUES):
        await pile_up(watchers, await watchers.make(["a"], url="https://hub.example/moved"), BACKLOG, clock)
    await put(db, [paid(project, "https://shop.example/", number) for number in range(BACKLOG)], ids=ids, clock=clock)
    await watchers.rows("UPDATE webhook_deliveries SET due_at = due_at - id * interval '1 millisecond' RETURNING id")
    if is_known:
        async with db.autocommit() as conn:
            await conn.exec_driver_sql("VACUUM ANALYZE webhook_deliveries")
    at, until = clock.now(), clock.now() + timedelta(seconds=30)
    values = f"'{at}', '{until}', 100, '{{}}', '{{}}', '{{}}', 128, 0, {claims.TRACKERS_FROM - 1}, 0"
    async with db.transaction() as conn:
        driver = (await conn.get_raw_connection()).driver_connection
        await driver.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        types = "timestamptz, timestamptz, bigint, text[], text[], int[], bigint, bigint, bigint, bigint"
        await driver.execute(f"PREPARE claimed ({types}) AS {claims._CLAIM}")
        [plan] = await driver.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE claimed ({values})")
        await driver.execute("DEALLOCATE claimed")
    read = list(deliveries_read(plan["Plan"]))
    due, target = "ix_webhook_deliveries_due", "ix_webhook_deliveries_target"
    earlier = "ix_webhook_deliveries_resource", "uq_webhook_deliveries_delivery_id"
    # The nearest, the first queues, the next ones, each queue's front, what is earlier than a delivery, what is taken.
    assert [index for index, _ in read] == [due, target, target, target, *earlier, *["pk_webhook_deliveries"] * 2]
    assert sum(rows for _, rows in read) < 2 * BACKLOG


def deliveries_read(plan):
    """Return each way in which deliveries are read: by which index, and how many rows were looked at."""
    if plan.get("Relation Name") == "webhook_deliveries" and plan["Node Type"] != "ModifyTable":
        each = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        yield plan.get("Index Name"), each * plan["Actual Loops"]
    for below in plan.get("Plans", []):
        yield from deliveries_read(below)


async def test_a_trackers_deliveries_go_to_the_url_that_it_has_now(db, clock, watchers):
    async with receiver() as old, receiver() as new, deliverer(db, clock) as worker:
        tracker = await watchers.make(["a"], url=old.url)
        old.statuses = [500]
        await pile_up(watchers, tracker, 1, clock)
        assert await worker.deliver_due() == 1
        await watchers.change(tracker, url=new.url)
        clock.advance(10)
        assert await worker.deliver_due() == 1
    assert (len(old.received), len(new.received)) == (1, 1)
    assert msgspec.json.decode(new.received[0].body) == {}
