"""Several targets of one event: each with its own filter, secret, order and pace, and none in another's way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random

import msgspec
import pytest
from aiohttp import web
from sqlalchemy import text

from cambist.db.engine import Database
from cambist.domain.webhooks import RetrySchedule
from cambist.ports import Ids, SystemClock
from cambist.services.actor import Actor
from cambist.services.errors import ConflictError, InvalidError, NotFoundError
from cambist.services.identity.projects import Projects
from cambist.services.webhooks import endpoint_states, endpoints
from cambist.services.webhooks.endpoints import ENDPOINTS_MAX, ChangeEndpoint
from cambist.services.webhooks.redelivery import redeliver
from cambist.settings import WebhookTargets
from cambist.testing.clock import ManualClock
from tests.support.webhooks import (
    SECRET,
    deliverer,
    make_endpoints,
    make_project,
    paid,
    put,
    receiver,
    running,
    signing_secrets,
    until,
)


async def add(db, ids, clock, project, url, *events, paused=False):
    async with db.transaction() as conn:
        return await make_endpoints(ids).create(
            conn, project[0], url=url, events=events, paused=paused, now=clock.now()
        )


async def change(db, ids, clock, project, endpoint, **changes):
    async with db.transaction() as conn:
        return await make_endpoints(ids).change(
            conn, project[0], endpoint.endpoint_id, ChangeEndpoint(**changes), now=clock.now()
        )


async def told(db, columns="status", where="true"):
    async with db.transaction() as conn:
        found = await conn.execute(text(f"SELECT {columns} FROM webhook_deliveries WHERE {where} ORDER BY id"))  # noqa: S608  ours
        return [row[0] if len(row) == 1 else tuple(row) for row in found]


def numbers(shop):
    """Return which events came in, in their order: the event's name, and its payment's number."""
    bodies = [msgspec.json.decode(one.body) for one in shop.received]
    return [(body["event"].partition(".")[2], int(body["data"]["paymentId"][4:])) for body in bodies]


@asynccontextmanager
async def three() -> AsyncIterator[list]:
    async with receiver() as one, receiver() as two, receiver() as three:
        yield [one, two, three]


async def test_every_target_hears_of_an_event_by_one_id_and_the_same_bytes_signed_by_its_own_secret(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    async with three() as (shop, books, stock), deliverer(db, clock) as worker:
        _, books_secret = await add(db, ids, clock, project, books.url)
        _, stock_secret = await add(db, ids, clock, project, stock.url, "payment.paid")
        await put(db, [paid(project, shop.url, 1), paid(project, shop.url, 2, "payment.expired")], ids=ids, clock=clock)
        assert await worker.deliver_due() == 5
    assert [len(one.received) for one in (shop, books, stock)] == [2, 2, 1]
    for one, secret in ((shop, SECRET), (books, books_secret), (stock, stock_secret)):
        for request, original in zip(one.received, shop.received, strict=False):
            request.verify(secret)
            assert request.body == original.body
            assert request.headers["X-Webhook-Id"] == original.headers["X-Webhook-Id"]
            assert "X-Webhook-Signature-Previous" not in request.headers
    assert len({request.headers["X-Webhook-Id"] for request in shop.received}) == 2
    assert len({SECRET, books_secret, stock_secret}) == 3
    async with db.transaction() as conn:
        metered = (await conn.execute(text("SELECT reference FROM usage_records"))).scalars().all()
        events = (await conn.execute(text("SELECT count(*), count(DISTINCT event_id) FROM webhook_events"))).one()
    assert sorted(metered) == sorted(await told(db, "delivery_id"))
    assert tuple(events) == (2, 2)


async def test_an_event_is_without_a_target_only_where_nobody_at_all_is_told(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    await add(db, ids, clock, project, "http://127.0.0.1:1025/", "payment.paid")
    await put(db, [paid(project, None, 1), paid(project, None, 2, "payment.expired")], ids=ids, clock=clock)
    assert await told(db, "event, status, endpoint_pk IS NOT NULL") == [
        ("payment.paid", "pending", True), ("payment.expired", "no_target", False),
    ]  # fmt: skip


async def test_a_retry_holds_back_later_events_of_its_resource_at_its_target_and_nothing_else(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    async with three() as (shop, books, _), deliverer(db, clock) as worker:
        await add(db, ids, clock, project, books.url)
        shop.statuses = [500, 200, 500]  # the first of payment 1, that of payment 2, and the retry of the first
        events = [("payment.detected", 1), ("payment.paid", 2), ("payment.confirming", 1), ("payment.paid", 1)]
        await put(db, [paid(project, shop.url, number, event) for event, number in events], ids=ids, clock=clock)
        await worker.deliver_due()
        assert numbers(shop) == [("detected", 1), ("paid", 2)]
        assert sorted(numbers(books)) == sorted((event.partition(".")[2], number) for event, number in events)
        assert [event for event, number in numbers(books) if number == 1] == ["detected", "confirming", "paid"]
        clock.advance(1)
        await worker.deliver_due()
        assert numbers(shop)[2:] == [("detected", 1)]
        clock.advance(2)
        await worker.deliver_due()
        assert numbers(shop)[3:] == [("detected", 1), ("confirming", 1), ("paid", 1)]


async def test_what_is_dropped_holds_back_nothing_any_more(db: Database, clock: ManualClock, ids: Ids) -> None:
    project = await make_project(db, ids)
    async with receiver() as shop, deliverer(db, clock) as worker:
        shop.statuses = [500] * 6
        await put(
            db, [paid(project, shop.url, 1), paid(project, shop.url, 1, "payment.refunded")], ids=ids, clock=clock
        )
        for _ in range(6):
            await worker.deliver_due()
            clock.advance(16)
        assert numbers(shop) == [("paid", 1)] * 6 + [("refunded", 1)]
    assert await told(db) == ["dropped", "delivered"]


@pytest.mark.slow
async def test_with_failures_at_random_and_two_deliverers_each_target_hears_of_each_resource_in_order(
    db: Database, ids: Ids
) -> None:
    clock, chance = SystemClock(), Random(7)
    project = await make_project(db, ids)
    stages = ["payment.detected", "payment.confirming", "payment.paid", "payment.refunded"]
    accepted: dict[str, list[tuple[str, int]]] = {}

    async def moody(request: web.Request) -> web.Response:
        status = 500 if chance.random() < 0.3 else 200
        if status == 200:
            body = msgspec.json.decode(await request.read())
            came = accepted.setdefault(str(request.url.port), [])
            came.append((body["event"], int(body["data"]["paymentId"][4:])))
        return web.Response(status=status)

    schedule = RetrySchedule(retries=50, base_delay_ms=0)
    async with (
        three() as shops,
        deliverer(db, clock, schedule=schedule) as one,
        deliverer(db, clock, schedule=schedule) as two,
    ):
        for shop in shops:
            shop.answer = moody
        for shop in shops[1:]:
            await add(db, ids, clock, project, shop.url)
        async with running(one), running(two):
            for stage in stages:
                await put(db, [paid(project, shops[0].url, n, stage) for n in range(40)], ids=ids, clock=clock)
            await until(lambda: sum(map(len, accepted.values())) >= 480)
    assert set(await told(db)) == {"delivered"}
    assert len(accepted) == 3
    for came in accepted.values():
        assert len(came) == len(set(came)) == 160, "each once"
        for number in range(40):
            assert [event for event, about in came if about == number] == stages


async def test_a_paused_endpoint_queues_and_holds_back_nobody_and_gets_all_in_order_when_it_goes_on(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    async with three() as (shop, books, stock), deliverer(db, clock) as worker:
        endpoint, _ = await add(db, ids, clock, project, books.url)
        await add(db, ids, clock, project, stock.url)
        books.statuses = [500]
        await put(db, [paid(project, shop.url, 1, "payment.detected")], ids=ids, clock=clock)
        await worker.deliver_due()
        assert (await change(db, ids, clock, project, endpoint, paused=True)).paused
        await put(db, [paid(project, shop.url, 1), paid(project, shop.url, 2)], ids=ids, clock=clock)
        clock.advance(60)
        await worker.deliver_due()
        assert [len(one.received) for one in (shop, books, stock)] == [3, 1, 3]
        assert await told(db, where=f"endpoint_pk = {endpoint.pk}") == ["paused"] * 3
        clock.advance(86_400 * 20)
        await worker.deliver_due()
        assert len(books.received) == 1
        await change(db, ids, clock, project, endpoint, paused=False)
        await worker.deliver_due()
    assert sorted(numbers(books)[1:]) == [("detected", 1), ("paid", 1), ("paid", 2)]
    assert [event for event, number in numbers(books)[1:] if number == 1] == ["detected", "paid"]


async def test_what_was_queued_past_a_pause_or_its_end_is_neither_sent_nor_forgotten(
    db: Database, clock: ManualClock, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transactions that had seen the endpoint as it was before, and more than one step changes."""
    monkeypatch.setattr(endpoint_states, "DELIVERIES_MAX", 4)
    project = await make_project(db, ids)
    async with receiver() as shop, deliverer(db, clock) as worker:
        endpoint, _ = await add(db, ids, clock, project, shop.url)
        await put(db, [paid(project, None, number) for number in range(10)], ids=ids, clock=clock)
        await change(db, ids, clock, project, endpoint, paused=True)
        assert sorted(await told(db)) == ["paused"] * 4 + ["pending"] * 6
        assert await worker.deliver_due() == 0

        async def apply():
            async with db.transaction() as conn:
                return await endpoint_states.apply_endpoint_states(conn, now=clock.now())

        assert [await apply() for _ in range(3)] == [4, 2, 0]
        assert set(await told(db)) == {"paused"}
        await change(db, ids, clock, project, endpoint, paused=False)
        assert await worker.deliver_due() == 4
        assert [await apply() for _ in range(3)] == [4, 2, 0]
        await worker.deliver_due()
        assert [number for _, number in numbers(shop)] == list(range(10))


async def test_a_deleted_endpoint_gets_nothing_more_and_its_secret_is_gone(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    async with receiver() as shop, deliverer(db, clock) as worker:
        endpoint, _ = await add(db, ids, clock, project, shop.url)
        await put(db, [paid(project, None, 1)], ids=ids, clock=clock)
        async with db.transaction() as conn:
            await endpoints.delete(conn, project[0], endpoint.endpoint_id, now=clock.now())
        await put(db, [paid(project, None, 2)], ids=ids, clock=clock)
        assert await worker.deliver_due() == 0
        assert shop.received == []
    assert await told(db) == ["dropped", "no_target"]
    (delivery_id, _) = await told(db, "delivery_id")
    async with db.transaction() as conn:
        with pytest.raises(ConflictError, match="no target"):
            await redeliver(conn, project[0], delivery_id, now=clock.now())
        with pytest.raises(NotFoundError):
            await endpoints.find(conn, project[0], endpoint.endpoint_id)
        left = await conn.execute(text("SELECT secret_encrypted, previous_secret_encrypted FROM webhook_endpoints"))
        assert tuple(left.one()) == (None, None)


async def test_what_is_queued_goes_to_the_endpoints_new_url(db: Database, clock: ManualClock, ids: Ids) -> None:
    project = await make_project(db, ids)
    async with three() as (old, new, _), deliverer(db, clock) as worker:
        endpoint, _ = await add(db, ids, clock, project, old.url)
        old.statuses = [500]
        await put(db, [paid(project, None, 1)], ids=ids, clock=clock)
        await worker.deliver_due()
        await change(db, ids, clock, project, endpoint, url=new.url)
        clock.advance(1)
        await worker.deliver_due()
        assert (len(old.received), len(new.received)) == (1, 1)
    assert await told(db, "url") == [new.url]


async def test_while_a_rotation_overlaps_the_old_secret_signs_beside_the_new_one_and_then_no_more(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    hour = timedelta(hours=1)
    targets = WebhookTargets(allow_private=True, allow_http=True)
    async with three() as (shop, books, _), deliverer(db, clock) as worker:
        endpoint, old = await add(db, ids, clock, project, books.url)
        async with db.transaction() as conn:
            actor = Actor(
                project_pk=project[0], project_id=project[1], merchant_pk=1, merchant_id="mer", mode="live",
                is_active=True,
            )  # fmt: skip
            projects = Projects(signing_secrets(), ids, targets=targets)
            new_of_project = (await projects.rotate_secret(conn, actor, overlap=hour, now=clock.now())).secret
            rotation = await make_endpoints(ids).rotate_secret(
                conn, project[0], endpoint.endpoint_id, overlap=hour, now=clock.now()
            )
            new = rotation.secret
        for number in (1, 2):
            await put(db, [paid(project, shop.url, number)], ids=ids, clock=clock)
            await worker.deliver_due()
            clock.advance(3_600)
        for one, before, after in ((shop, SECRET, new_of_project), (books, old, new)):
            during, later = one.received
            during.verify(after)
            later.verify(after)
            previous = during.headers["X-Webhook-Signature-Previous"]
            during.headers["X-Webhook-Signature"] = previous
            during.verify(before)
            assert "X-Webhook-Signature-Previous" not in later.headers
        async with db.transaction() as conn:
            await endpoint_states.forget_previous_secrets(conn, now=clock.now())
            for table in ("projects", "webhook_endpoints"):
                left = await conn.execute(text(f"SELECT previous_secret_encrypted FROM {table}"))  # noqa: S608  ours
                assert left.scalar_one() is None


async def test_endpoints_that_cannot_be_meant_are_refused_and_there_are_ten_at_most(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project, other = await make_project(db, ids), await make_project(db, ids)
    with pytest.raises(InvalidError):
        await add(db, ids, clock, project, "ftp://shop.example/")
    with pytest.raises(InvalidError, match=r"payment\.stolen"):
        await add(db, ids, clock, project, "https://shop.example/", "payment.stolen")
    for _ in range(ENDPOINTS_MAX):
        endpoint, _ = await add(db, ids, clock, project, "https://shop.example/")
    with pytest.raises(ConflictError):
        await add(db, ids, clock, project, "https://shop.example/")
    with pytest.raises(NotFoundError):
        await change(db, ids, clock, other, endpoint, paused=True)
    with pytest.raises(InvalidError):
        await change(db, ids, clock, project, endpoint, url="http://user@shop.example/")


async def test_what_waits_behind_a_retry_is_due_with_it_so_that_claims_do_not_look_at_it_in_vain(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project, begin = await make_project(db, ids), clock.now()
    async with receiver() as shop, receiver() as books, deliverer(db, clock) as worker:
        await add(db, ids, clock, project, books.url)
        shop.statuses = [500]
        events = [paid(project, shop.url, 1, event) for event in ("payment.detected", "payment.paid")]
        await put(db, [*events, paid(project, shop.url, 2)], ids=ids, clock=clock)
        await worker.deliver_due()
        second = timedelta(seconds=1)
        assert await told(db, "due_at", "status = 'pending'") == [begin + second] * 2
        clock.advance(1)
        await worker.deliver_due()
    assert numbers(shop) == [("detected", 1), ("paid", 2), ("detected", 1), ("paid", 1)]
    assert len(books.received) == 3
