"""Delivery against real servers: signatures, retries, order, crashes, and receivers that hang."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta

import msgspec
import pytest
import stripe
from aiohttp import web
from redis.asyncio import Redis
from sqlalchemy import select, text, update

from cambist.db.engine import Database
from cambist.db.models import Project, WebhookAttempt, WebhookDelivery, WebhookEvent
from cambist.hints import Hints
from cambist.ports import Ids, SystemClock
from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.listing import Part
from cambist.services.webhooks import claims, delivery, recording
from cambist.services.webhooks.delivery_log import get_delivery, list_deliveries
from cambist.services.webhooks.lanes import Lanes, Limits
from cambist.services.webhooks.redelivery import redeliver
from cambist.services.webhooks.secrets import FIELD
from cambist.services.webhooks.sender import AttemptResult
from cambist.testing.clock import ManualClock
from tests.support.payloads import payment_data
from tests.support.statements import statements
from tests.support.webhooks import (
    SECRET,
    Received,
    deliverer,
    hears_at,
    make_project,
    paid,
    put,
    receiver,
    running,
    signing_secrets,
    until,
)

pytestmark = pytest.mark.slow


async def rows(db: Database) -> list:
    async with db.transaction() as conn:
        told = WebhookEvent.body.label("told"), WebhookEvent.event_id
        found = select(WebhookDelivery.__table__, *told).join(WebhookEvent, WebhookEvent.id == WebhookDelivery.event_pk)
        return list(await conn.execute(found.order_by(WebhookDelivery.id)))


async def attempts(db: Database) -> list:
    async with db.transaction() as conn:
        return list(await conn.execute(select(WebhookAttempt.__table__).order_by(WebhookAttempt.id)))


async def test_a_delivery_is_signed_so_that_an_independent_verifier_accepts_it(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    async with receiver() as merchant, deliverer(db, clock) as worker:
        await put(db, [paid(project, merchant.url)], ids=ids, clock=clock)
        assert await worker.deliver_due() == 1
    [request] = merchant.received
    request.verify(SECRET)
    assert request.headers["X-Webhook-Event"] == "payment.paid"
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["X-Webhook-Timestamp"] == str(int(clock.now().timestamp() * 1000))
    assert "X-Webhook-Test" not in request.headers
    assert msgspec.json.decode(request.body) == {
        "event": "payment.paid",
        "webhookId": project[1],
        "data": payment_data(1),
    }
    with pytest.raises(stripe.SignatureVerificationError):
        request.verify(SECRET, request.body.replace(b"pay_1", b"pay_2"))
    with pytest.raises(stripe.SignatureVerificationError):
        request.verify("00" * 32)
    [row] = await rows(db)
    assert (row.status, row.delivered_at, row.told) == ("delivered", clock.now(), request.body)
    [attempt] = await attempts(db)
    assert (attempt.number, attempt.status_code, attempt.error, attempt.response) == (1, 200, None, "noted")


async def test_a_project_without_a_secret_sends_an_empty_signature(db: Database, clock: ManualClock, ids: Ids) -> None:
    project = await make_project(db, ids, secret=None)
    async with receiver() as merchant, deliverer(db, clock) as worker:
        await put(db, [paid(project, merchant.url)], ids=ids, clock=clock)
        await worker.deliver_due()
    assert merchant.received[0].headers["X-Webhook-Signature"] == ""


async def test_five_retries_follow_at_1_2_4_8_16_seconds_then_the_event_is_dropped_and_kept(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    begin, sent_at = clock.now(), []
    async with receiver() as merchant, deliverer(db, clock) as worker:
        merchant.statuses = [500, 404, 302, 503, 400, 500]
        await put(db, [paid(project, merchant.url)], ids=ids, clock=clock)
        for _ in range(120):
            sent_at += [(clock.now() - begin).total_seconds()] * await worker.deliver_due()
            clock.advance(0.5)
    assert sent_at == [0, 1, 3, 7, 15, 31]
    [row] = await rows(db)
    assert (row.status, row.attempts, row.attempts_total) == ("dropped", 6, 6)
    assert [(a.number, a.status_code) for a in await attempts(db)] == [
        (1, 500), (2, 404), (3, 302), (4, 503), (5, 400), (6, 500),
    ]  # fmt: skip
    # Each attempt was signed anew, over its own time and the same bytes.
    assert len({request.headers["X-Webhook-Signature"] for request in merchant.received}) == 6
    assert len({request.body for request in merchant.received}) == 1
    assert len({request.headers["X-Webhook-Id"] for request in merchant.received}) == 1


async def test_a_dropped_event_can_be_sent_again_with_a_fresh_set_of_attempts(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    async with receiver() as merchant, deliverer(db, clock) as worker:
        await hears_at(db, project, merchant.url)
        merchant.statuses = [500] * 7
        await put(db, [paid(project, merchant.url)], ids=ids, clock=clock)
        for _ in range(6):
            await worker.deliver_due()
            clock.advance(16)
        [row] = await rows(db)
        assert row.status == "dropped"
        async with db.transaction() as conn:
            again = await redeliver(conn, project[0], row.delivery_id, now=clock.now())
        assert (again.status, again.next_attempt_at, len(again.attempts)) == ("pending", clock.now(), 6)
        await worker.deliver_due()
        clock.advance(1)
        await worker.deliver_due()
    async with db.transaction() as conn:
        seen = await get_delivery(conn, project[0], row.delivery_id)
    assert seen.status == "delivered"
    assert [(a.number, a.status_code) for a in seen.attempts][5:] == [(6, 500), (7, 500), (8, 200)]
    assert len(merchant.received) == 8


async def test_redelivery_is_refused_for_strangers_for_pending_events_and_without_any_target(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project, other = await make_project(db, ids), await make_project(db, ids)
    await put(db, [paid(project, "http://127.0.0.1:1024/"), paid(project, None, number=2)], ids=ids, clock=clock)
    pending, silent = await rows(db)
    assert (pending.status, silent.status) == ("pending", "no_target")
    async with db.transaction() as conn:
        with pytest.raises(NotFoundError):
            await redeliver(conn, other[0], pending.delivery_id, now=clock.now())
        with pytest.raises(ConflictError, match="still being delivered"):
            await redeliver(conn, project[0], pending.delivery_id, now=clock.now())
        with pytest.raises(ConflictError, match="no target"):
            await redeliver(conn, project[0], silent.delivery_id, now=clock.now())
    async with db.transaction() as conn:
        await conn.execute(update(Project).values(payment_webhook_url="http://127.0.0.1:1025/"))
        view = await redeliver(conn, project[0], silent.delivery_id, now=clock.now())
    assert (view.status, view.url) == ("pending", "http://127.0.0.1:1025/")


async def test_a_rotated_secret_signs_the_very_next_attempt(db: Database, clock: ManualClock, ids: Ids) -> None:
    project = await make_project(db, ids)
    fresh = "7b" * 32
    async with receiver() as merchant, deliverer(db, clock) as worker:
        merchant.statuses = [500]
        await put(db, [paid(project, merchant.url)], ids=ids, clock=clock)
        await worker.deliver_due()
        async with db.transaction() as conn:
            await conn.execute(
                update(Project).values(webhook_secret_encrypted=signing_secrets().seal(project[1], fresh))
            )
        clock.advance(1)
        await worker.deliver_due()
    old, new = merchant.received
    old.verify(SECRET)
    new.verify(fresh)


async def test_events_of_one_payment_are_first_sent_in_order_and_a_failed_one_does_not_hold_the_others(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    names = ["payment.detected", "payment.confirming", "payment.paid"]
    async with receiver() as merchant, deliverer(db, clock) as worker:
        merchant.statuses = [500]
        await put(
            db,
            [paid(project, merchant.url, number, name) for name in names for number in range(20)],
            ids=ids,
            clock=clock,
        )
        await worker.deliver_due()
        clock.advance(1)
        await worker.deliver_due()
    first_seen: dict[str, list[str]] = {}
    for request in merchant.received:
        body = msgspec.json.decode(request.body)
        seen = first_seen.setdefault(body["data"]["paymentId"], [])
        if body["event"] not in seen:
            seen.append(body["event"])
    assert first_seen == {f"pay_{number}": names for number in range(20)}
    assert len(merchant.received) == 61


async def test_a_crash_between_claim_and_record_delivers_the_event_again(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    async with receiver() as merchant, deliverer(db, clock) as worker:
        await put(db, [paid(project, merchant.url)], ids=ids, clock=clock)
        async with db.autocommit() as conn:
            taken = await claims.claim(
                conn,
                now=clock.now(),
                leased_until=clock.now() + timedelta(seconds=15),
                events_max=10,
                room=Lanes(Limits()).room(),
                number=0,
            )
        assert len(taken.claims) == 1
        # Whoever took it is gone now, and never said what came of it.
        assert await worker.deliver_due() == 0
        clock.advance(14)
        assert await worker.deliver_due() == 0
        clock.advance(1)
        assert await worker.deliver_due() == 1
    assert [row.status for row in await rows(db)] == ["delivered"]


async def test_an_attempt_that_outlived_its_lease_counts_when_it_succeeded_and_decides_nothing_when_it_failed(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    await put(db, [paid(project, "http://127.0.0.1:1024/")], ids=ids, clock=clock)
    [row] = await rows(db)

    claim = claims.Claim(
        id=row.id, delivery_id=row.delivery_id, webhook_id="evt_1", event=row.event, url=row.url, origin="",
        body=b"{}", attempts=0, signed_by=project[1], secret_field=FIELD, secret_encrypted=None,
        previous_secret_encrypted=None,
    )  # fmt: skip

    def attempt(*, delivered: bool) -> recording.Attempt:
        result = AttemptResult(
            attempted_at=clock.now(),
            duration_ms=1,
            status_code=200 if delivered else 500,
            error=None if delivered else "HTTP 500",
            response_preview=None,
            signature="",
            timestamp_ms=0,
        )
        due = None if delivered else clock.now() + timedelta(seconds=1)
        return recording.Attempt(claim=claim, result=result, next_due=due)

    async def state() -> tuple[str, int, int]:
        [now] = await rows(db)
        return now.status, now.attempts, now.attempts_total

    async with db.autocommit() as conn:
        await recording.record(conn, [attempt(delivered=False)], now=clock.now(), weight=1)
        assert await state() == ("pending", 1, 1)
        await recording.record(conn, [attempt(delivered=False)], now=clock.now(), weight=1)
        assert await state() == ("pending", 1, 2)
        await recording.record(conn, [attempt(delivered=True)], now=clock.now(), weight=1)
        assert await state() == ("delivered", 1, 3)
        await recording.record(conn, [attempt(delivered=False)], now=clock.now(), weight=1)
        assert await state() == ("delivered", 1, 4)
    assert [attempt.number for attempt in await attempts(db)] == [1, 2, 3, 4]


async def test_two_deliverers_at_once_deliver_each_event_once(db: Database, ids: Ids) -> None:
    clock = SystemClock()
    project = await make_project(db, ids)
    async with receiver() as merchant, deliverer(db, clock) as one, deliverer(db, clock) as two:
        async with running(one), running(two):
            for start in range(0, 600, 100):
                await put(
                    db,
                    [paid(project, merchant.url, number) for number in range(start, start + 100)],
                    ids=ids,
                    clock=clock,
                )
            await until(lambda: len(merchant.received) >= 600)
        assert one.counters.delivered + two.counters.delivered == 600
    assert len({request.headers["X-Webhook-Id"] for request in merchant.received}) == len(merchant.received) == 600
    assert {row.status for row in await rows(db)} == {"delivered"}


async def test_without_redis_a_commit_elsewhere_is_found_within_the_poll(
    db: Database, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for it asks what is due, and claims only then."""
    monkeypatch.setattr(delivery, "POLL_S", 0.05)
    clock = SystemClock()
    project = await make_project(db, ids)
    # Nobody listens on this port.
    gone = Redis(host="127.0.0.1", port=1, socket_connect_timeout=0.2)
    hints = Hints(gone)
    async with receiver() as merchant, deliverer(db, clock, hints=hints) as worker, running(worker):
        with statements(db) as asked:
            await asyncio.sleep(0.3)
        assert sum("min(due_at)" in one for one in asked) > 2
        assert sum("SKIP LOCKED" in one for one in asked) <= 1
        await put(db, [paid(project, merchant.url)], ids=ids, clock=clock)
        await until(lambda: merchant.received)
    await hints.aclose()
    await gone.aclose()


async def test_a_hint_through_redis_wakes_another_process_at_once(
    db: Database, ids: Ids, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "POLL_S", 60)  # so that nothing but the hint wakes it
    clock = SystemClock()
    project = await make_project(db, ids)
    async with Redis.from_url(redis_url) as here, Redis.from_url(redis_url) as there:
        ours, theirs = Hints(here), Hints(there)
        async with receiver() as merchant, deliverer(db, clock, hints=ours) as worker, running(worker):
            await asyncio.sleep(0.5)
            for number in range(5):
                await put(db, [paid(project, merchant.url, number)], ids=ids, clock=clock)
                async with asyncio.timeout(30):
                    while len(merchant.received) == number:
                        await theirs.publish("webhooks")  # again, in case it did not listen yet
                        await asyncio.sleep(0.1)
        await ours.aclose()
        await theirs.aclose()


async def test_receivers_that_hang_do_not_delay_the_others(db: Database, ids: Ids) -> None:
    """One receiver in five hangs, and goes on hanging until all the others have everything of theirs."""
    clock = SystemClock()
    project = await make_project(db, ids)
    told: set[str] = set()
    released = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    async def healthy(request: web.Request) -> web.Response:
        body = msgspec.json.decode(await request.read())
        told.add(body["data"]["paymentId"])
        return web.Response()

    async with AsyncExitStack() as stack:
        merchants = [await stack.enter_async_context(receiver()) for _ in range(20)]
        for number, merchant in enumerate(merchants):
            merchant.answer = hang if number % 5 == 0 else healthy
        worker = await stack.enter_async_context(deliverer(db, clock, timeout_ms=60_000))
        async with running(worker):
            for start in range(0, 2_000, 100):
                events = [paid(project, merchants[number % 20].url, number) for number in range(start, start + 100)]
                await put(db, events, ids=ids, clock=clock)
            await until(lambda: len(told) == 1_600, 50)
            released.set()


async def test_stopping_records_what_is_done_and_gives_back_what_is_not(
    db: Database, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist.services.webhooks.delivery.GRACE_S", 0.2)
    clock = SystemClock()
    project = await make_project(db, ids)
    released = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    async with receiver() as merchant, receiver() as slow, deliverer(db, clock) as worker:
        slow.answer = hang
        async with running(worker):
            await put(db, [paid(project, merchant.url, 1), paid(project, slow.url, 2)], ids=ids, clock=clock)
            await until(lambda: slow.received and merchant.received)
        released.set()
    done, undone = await rows(db)
    assert done.status == "delivered"
    assert undone.status == "pending"
    assert undone.due_at <= clock.now()
    assert worker.in_flight == 0


async def test_a_database_outage_loses_no_outcome(db: Database, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    project = await make_project(db, ids)
    gate = asyncio.Event()

    async def wait(request: web.Request) -> web.Response:
        await gate.wait()
        return web.Response()

    async with receiver() as merchant, deliverer(db, clock) as worker, running(worker):
        merchant.answer = wait
        await put(db, [paid(project, merchant.url)], ids=ids, clock=clock)
        await until(lambda: merchant.received)
        async with db.transaction() as conn:
            # The table is away while the attempt ends, as in a failover.
            await conn.execute(text("ALTER TABLE webhook_attempts RENAME TO away"))
        gate.set()
        await until(lambda: worker.counters.delivered == 1)
        await asyncio.sleep(0.3)
        async with db.transaction() as conn:
            await conn.execute(text("ALTER TABLE away RENAME TO webhook_attempts"))
        async with asyncio.timeout(60):
            while (await rows(db))[0].status != "delivered":  # noqa: ASYNC110  a row changes
                await asyncio.sleep(0.05)
    assert len(merchant.received) == 1
    assert len(await attempts(db)) == 1


async def test_deliveries_are_listed_newest_first_with_filters_and_attempts(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project, other = await make_project(db, ids), await make_project(db, ids)
    async with receiver() as merchant, deliverer(db, clock) as worker:
        merchant.statuses = [500]
        await put(db, [paid(project, merchant.url, n) for n in range(30)], ids=ids, clock=clock)
        await put(db, [paid(other, merchant.url, 99), paid(project, None, 30)], ids=ids, clock=clock)
        await worker.deliver_due()
    async with db.transaction() as conn:
        page = await list_deliveries(conn, project[0], Part(page=2))
        assert (page.total, [view.resource_id for view in page.items]) == (31, [f"pay_{n}" for n in range(5, -1, -1)])
        page = await list_deliveries(conn, project[0], Part(), status="pending")
        [waiting] = page.items
        assert (page.total, waiting.attempts[0].error) == (1, "HTTP 500")
        assert waiting.next_attempt_at == clock.now() + timedelta(seconds=1)
        [silent] = (await list_deliveries(conn, project[0], Part(), resource_id="pay_30")).items
        assert (silent.status, silent.url, silent.attempts) == ("no_target", None, [])
        assert msgspec.json.decode(silent.payload)["data"]["paymentId"] == "pay_30"


def test_a_received_request_without_its_headers_does_not_verify() -> None:
    """The oracle itself refuses: a request that is not signed."""
    bare = Received("/", {"X-Webhook-Timestamp": "1", "X-Webhook-Signature": ""}, b"{}")
    with pytest.raises(stripe.SignatureVerificationError):
        bare.verify(SECRET)
