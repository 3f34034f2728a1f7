"""A receiver that was down for long catches up, by asking for the events or having them sent again: each once."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import msgspec
import pytest
from aiohttp import web
from sqlalchemy import text

from cambist.db.engine import Database
from cambist.domain.webhooks import RetrySchedule
from cambist.ports import Ids, SystemClock
from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.listing import Part
from cambist.services.paging import LAST_MOMENT
from cambist.services.webhooks import claims, redelivery
from cambist.services.webhooks.events import EventFilters, get_event, list_events
from cambist.services.webhooks.lanes import Lanes, Limits
from cambist.services.webhooks.redelivery import redeliver_event, redeliver_failed
from cambist.services.webhooks.sender import Message
from cambist.testing.clock import ManualClock
from tests.support.webhooks import (
    deliverer,
    hears_at,
    make_endpoints,
    make_project,
    paid,
    put,
    receiver,
    running,
    until,
)


async def again(db, clock, project, since: datetime, *, until: datetime = LAST_MOMENT, endpoint_id=None):
    async with db.transaction() as conn:
        done = await redeliver_failed(
            conn, project[0], since=since, until=until, endpoint_id=endpoint_id, now=clock.now()
        )
    return done.queued, done.more


async def whole_list(db, project, limit=7, **filters):
    """Return every event, oldest first, read page by page."""
    found, after = [], None
    while True:
        async with db.transaction() as conn:
            page = await list_events(conn, project[0], EventFilters(**filters), Part(limit=limit, after=after))
        found += page.items
        after = page.last
        if after is None:
            return found[::-1]


async def endpoint_of(db, ids, clock, project, url, *events):
    async with db.transaction() as conn:
        made, _ = await make_endpoints(ids).create(
            conn, project[0], url=url, events=events, paused=False, now=clock.now()
        )
    return made


async def drop_all(worker, clock):
    for _ in range(6):
        await worker.deliver_due()
        clock.advance(16)


def ids_in(shop):
    return [request.headers["X-Webhook-Id"] for request in shop.received]


@pytest.mark.slow
async def test_after_a_day_in_which_all_was_dropped_it_is_sent_again_once_however_often_that_is_asked_for(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    async with receiver() as shop, deliverer(db, clock) as worker:
        await hears_at(db, project, shop.url)
        await put(db, [paid(project, shop.url, 0)], ids=ids, clock=clock)
        await worker.deliver_due()
        down = clock.now() + timedelta(seconds=1)
        clock.advance(1)
        shop.statuses = [503] * 120
        for hour in range(20):
            await put(db, [paid(project, shop.url, hour + 1)], ids=ids, clock=clock)
            await drop_all(worker, clock)
            clock.advance(3_600)
        assert shop.statuses == []
        shop.received.clear()
        assert await again(db, clock, project, down) == (20, False)
        assert await again(db, clock, project, down) == (0, False)
        await worker.deliver_due()
        assert await again(db, clock, project, down) == (0, False)
        await worker.deliver_due()
    listed = await whole_list(db, project)
    assert ids_in(shop) == [event.event_id for event in listed[1:]], "each once, in their order"
    assert [request.body for request in shop.received] == [bytes(event.payload) for event in listed[1:]]
    assert {delivery.status for event in listed for delivery in event.deliveries} == {"delivered"}


async def test_the_list_has_every_event_as_it_was_sent_whether_anybody_heard_of_it_or_not(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project, other = await make_project(db, ids), await make_project(db, ids)
    async with receiver() as shop, deliverer(db, clock) as worker:
        begin = clock.now()
        shop.statuses = [200] + [500] * 6
        for number, url in enumerate((shop.url, shop.url, None)):
            await put(db, [paid(project, url, number), paid(other, None, 9)], ids=ids, clock=clock)
            await drop_all(worker, clock)
        await put(db, [paid(project, shop.url, 1, "payment.expired")], ids=ids, clock=clock)
    listed = await whole_list(db, project, limit=1)
    assert [[delivery.status for delivery in event.deliveries] for event in listed] == [
        ["delivered"], ["dropped"], ["no_target"], ["pending"],
    ]  # fmt: skip
    assert [bytes(event.payload) for event in listed[:2]] == [shop.received[0].body, shop.received[1].body]
    assert [event.event_id for event in listed[:2]] == list(dict.fromkeys(ids_in(shop)))
    assert [event.resource for event in listed] == ["payment"] * 4
    third = listed[2].created_at
    assert await whole_list(db, project, since=third) == listed[2:]
    assert await whole_list(db, project, since=begin, until=third) == listed[:2]
    assert await whole_list(db, project, names=["payment.expired"]) == listed[3:]
    assert await whole_list(db, project, names=["payment.expired", "payment.paid"], resource_id="pay_1") == [
        listed[1], listed[3],
    ]  # fmt: skip
    async with db.transaction() as conn:
        assert await get_event(conn, project[0], listed[0].event_id) == listed[0]
        with pytest.raises(NotFoundError):
            await get_event(conn, other[0], listed[0].event_id)


async def test_a_large_backlog_is_taken_in_parts_oldest_first_and_two_who_ask_at_once_start_nothing_twice(
    db: Database, clock: ManualClock, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redelivery, "REDELIVERED_MAX", 40)
    project, begin = await make_project(db, ids), clock.now()
    async with receiver() as shop, deliverer(db, clock) as worker:
        await hears_at(db, project, shop.url)
        await put(db, [paid(project, shop.url, number) for number in range(100)], ids=ids, clock=clock)
        async with db.transaction() as conn:
            await conn.execute(text("UPDATE webhook_deliveries SET status = 'dropped', attempts = 6"))
        assert await again(db, clock, project, begin) == (40, True)
        async with db.transaction() as conn:
            started = await conn.execute(text("SELECT max(id) FROM webhook_deliveries WHERE status = 'pending'"))
            left = await conn.execute(text("SELECT min(id) FROM webhook_deliveries WHERE status = 'dropped'"))
            assert started.scalar_one() < left.scalar_one()
        both = await asyncio.gather(*(again(db, clock, project, begin) for _ in range(2)))
        while (done := await again(db, clock, project, begin))[0]:
            both.append(done)
        assert sum(queued for queued, _ in both) == 60
        await worker.deliver_due()
        assert len(ids_in(shop)) == len(set(ids_in(shop))) == 100


async def test_what_had_no_target_reaches_those_that_were_added_since(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project, begin = await make_project(db, ids), clock.now()
    async with receiver() as shop, receiver() as books, deliverer(db, clock) as worker:
        await put(
            db,
            [paid(project, None, 1, "payment.detected"), paid(project, None, 1), paid(project, None, 2)],
            ids=ids,
            clock=clock,
        )
        assert await again(db, clock, project, begin) == (0, False)
        endpoint = await endpoint_of(db, ids, clock, project, books.url, "payment.paid")
        assert await again(db, clock, project, begin, endpoint_id=endpoint.endpoint_id) == (2, False)
        assert await again(db, clock, project, begin) == (0, False)
        async with db.transaction() as conn:
            await conn.execute(text("UPDATE projects SET payment_webhook_url = :url"), {"url": shop.url})
        assert await again(db, clock, project, begin, until=begin) == (0, False)
        assert await again(db, clock, project, begin) == (3, False)
        assert await again(db, clock, project, begin) == (0, False)
        await worker.deliver_due()
    assert (len(shop.received), len(books.received)) == (3, 2)
    assert set(ids_in(books)) < set(ids_in(shop))


async def test_one_event_goes_again_to_all_its_targets_or_to_one_that_had_not_heard_of_it(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    async with receiver() as shop, receiver() as books, receiver() as late, deliverer(db, clock) as worker:
        await hears_at(db, project, shop.url)
        await endpoint_of(db, ids, clock, project, books.url)
        await put(db, [paid(project, shop.url)], ids=ids, clock=clock)
        (event,) = await whole_list(db, project)

        async def ask(endpoint_id=None):
            async with db.transaction() as conn:
                return await redeliver_event(conn, project[0], event.event_id, endpoint_id=endpoint_id, now=clock.now())

        with pytest.raises(ConflictError, match="still being delivered"):
            await ask()
        await worker.deliver_due()
        assert {delivery.status for delivery in (await ask()).deliveries} == {"pending"}
        with pytest.raises(ConflictError, match="still being delivered"):
            await ask()
        await worker.deliver_due()
        added = await endpoint_of(db, ids, clock, project, late.url, "payment.expired")
        assert len((await ask(added.endpoint_id)).deliveries) == 3
        await worker.deliver_due()
        with pytest.raises(NotFoundError):
            await ask("whe_unknown")
    assert [len(one.received) for one in (shop, books, late)] == [2, 2, 1]
    assert set(ids_in(shop) + ids_in(books) + ids_in(late)) == {event.event_id}
    assert len({request.body for one in (shop, books, late) for request in one.received}) == 1


async def test_an_event_without_any_target_cannot_be_sent_again(db: Database, clock: ManualClock, ids: Ids) -> None:
    project = await make_project(db, ids)
    await put(db, [paid(project, None)], ids=ids, clock=clock)
    (event,) = await whole_list(db, project)
    with pytest.raises(ConflictError, match="no target"):
        async with db.transaction() as conn:
            await redeliver_event(conn, project[0], event.event_id, endpoint_id=None, now=clock.now())


async def test_a_worker_that_dies_between_sending_and_recording_loses_nothing_and_receivers_see_one_id(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    async with receiver() as shop, receiver() as books, deliverer(db, clock) as worker:
        await endpoint_of(db, ids, clock, project, books.url)
        await put(
            db, [paid(project, shop.url, 1), paid(project, shop.url, 1, "payment.refunded")], ids=ids, clock=clock
        )
        async with db.autocommit() as conn:
            lease = clock.now() + timedelta(seconds=15)
            taken = await claims.claim(
                conn, now=clock.now(), leased_until=lease, events_max=10, room=Lanes(Limits()).room(), number=0
            )
        for claim in taken.claims:
            message = Message(id=claim.webhook_id, event=claim.event, body=claim.body, secret=None)
            assert (await worker._sender.send_once(claim.url, message)).delivered
        # It is gone now, and nobody knows that its requests arrived.
        assert await worker.deliver_due() == 0
        clock.advance(15)
        await worker.deliver_due()
    for one in (shop, books):
        assert [msgspec.json.decode(request.body)["event"] for request in one.received] == [
            "payment.paid", "payment.paid", "payment.refunded",
        ]  # fmt: skip
        assert len(set(ids_in(one))) == 2
        assert one.received[0].body == one.received[1].body
    async with db.transaction() as conn:
        metered = await conn.execute(text("SELECT count(*) FROM usage_records"))
        assert metered.scalar_one() == 4


@pytest.mark.slow
async def test_deliverers_killed_at_random_over_a_receiver_that_was_down_lose_nothing_and_change_nothing(
    db: Database, ids: Ids
) -> None:
    """Down while events come in, killed and doubled workers, then up: by list and by redelivery, all ids are there."""
    clock, project = SystemClock(), await make_project(db, ids)
    begin, up = clock.now(), asyncio.Event()

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=200 if up.is_set() else 503)

    schedule = RetrySchedule(retries=1, base_delay_ms=1)
    async with receiver() as shop, receiver() as books:
        await hears_at(db, project, shop.url)
        shop.answer = books.answer = answer
        await endpoint_of(db, ids, clock, project, books.url)
        for part in range(6):
            async with deliverer(db, clock, schedule=schedule) as one, deliverer(db, clock, schedule=schedule) as two:
                tasks = [asyncio.create_task(worker._start_due()) for worker in (one, two)]
                await put(db, [paid(project, shop.url, part * 20 + n) for n in range(20)], ids=ids, clock=clock)
                if part % 2:
                    async with running(one), running(two):
                        await asyncio.sleep(0.3)
                await asyncio.gather(*tasks)
                for task in [*one._running, *two._running]:
                    task.cancel()  # as killed: whatever it had sent is not recorded
        async with db.transaction() as conn:
            # The leases of those who died are over.
            await conn.execute(text("UPDATE webhook_deliveries SET due_at = now() WHERE status = 'pending'"))
        async with deliverer(db, clock, schedule=schedule) as worker, running(worker):
            await until(lambda: worker.counters.dropped > 0 or not worker.in_flight, 5)
            await asyncio.sleep(1)
            up.set()
            for one in (shop, books):
                one.received.clear()
            total, more = await again(db, clock, project, begin)
            assert not more
            assert total > 100
            await until(lambda: worker.counters.delivered >= total)
            assert await again(db, clock, project, begin) == (0, False)
    listed = await whole_list(db, project, limit=50)
    assert len(listed) == len({event.event_id for event in listed}) == 120
    bodies = {event.event_id: bytes(event.payload) for event in listed}
    for one in (shop, books):
        assert {request.headers["X-Webhook-Id"]: request.body for request in one.received} == bodies
    assert {delivery.status for event in listed for delivery in event.deliveries} == {"delivered"}
