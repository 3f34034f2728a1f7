"""What trackers are told goes out signed with their own secrets, and stops at once where they are switched off."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import msgspec
import pytest
import stripe
from aiohttp import web

from cambist.domain.webhooks import RetrySchedule
from cambist.hints import Hints
from cambist.services.errors import ConflictError
from cambist.services.paging import LAST_MOMENT
from cambist.services.platform import PlatformSettings
from cambist.services.trackers import telling
from cambist.services.trackers.bodies import Stage
from cambist.services.trackers.fan_out import FanOut
from cambist.services.webhooks import claims, redelivery, stopping
from cambist.services.webhooks.delivery import Deliverer
from cambist.services.webhooks.redelivery import redeliver, redeliver_of_tracker
from cambist.services.webhooks.sender import open_sender
from cambist.settings import WebhookTargets
from cambist.testing.memory.blocks import Output
from cambist.testing.memory.family import named_address
from tests.support.trackers import SECRET
from tests.support.webhooks import SECRET as PROJECT_SECRET
from tests.support.webhooks import receiver, signing_secrets

ONE = 1_000_000
ALICE, BOB = (named_address(name) for name in ("alice", "bob"))


@asynccontextmanager
async def deliverer(db, clock):
    targets = WebhookTargets(allow_private=True, allow_http=True)
    async with open_sender(clock=clock, timeout_ms=30_000, targets=targets) as sender:
        yield Deliverer(
            db=db,
            sender=sender,
            secrets=signing_secrets(),
            hints=Hints(None),
            clock=clock,
            schedule=RetrySchedule(),
            timeout_ms=30_000,
        )


@pytest.fixture
def moved(shop, chain, watcher, usdx, db, clock):
    """Move so many times to an address, and queue what trackers are told of it."""

    async def move(address, times=1):
        for number in range(times):
            chain.transfer(usdx, address, ONE + number)
        chain.mine()
        await shop.poll(watcher)
        await FanOut(db, clock, Hints(None)).drain("memory", 0)

    return move


async def statuses(watchers, tracker):
    rows = await watchers.rows("SELECT status FROM webhook_deliveries WHERE tracker_pk = $1 ORDER BY id", tracker)
    return [row.status for row in rows]


async def test_a_delivery_is_signed_with_the_trackers_secret_and_metered(db, clock, watchers, moved):
    async with receiver() as merchant, deliverer(db, clock) as worker:
        tracker = await watchers.make([ALICE], url=merchant.url)
        await moved(ALICE)
        assert await worker.deliver_due() == 1
    [request] = merchant.received
    request.verify(SECRET)
    with pytest.raises(stripe.SignatureVerificationError):
        request.verify(PROJECT_SECRET)
    [row] = await watchers.rows("SELECT * FROM webhook_deliveries")
    assert request.headers["X-Webhook-Id"] == row.delivery_id
    assert row.delivery_id.startswith("evt_")
    assert request.headers["X-Webhook-Event"] == "transaction.detected"
    assert (row.status, row.body, row.tracker_pk) == ("delivered", request.body, tracker)
    assert msgspec.json.decode(request.body)["data"]["transactionId"] == row.resource_id
    metered = await watchers.rows("SELECT operation, reference FROM usage_records ORDER BY id")
    assert [tuple(one) for one in metered] == [("tracker", row.resource_id), ("webhook_delivery", row.delivery_id)]


async def test_a_failed_delivery_is_repeated_with_the_same_id_and_the_same_bytes(db, clock, watchers, moved):
    async with receiver() as merchant, deliverer(db, clock) as worker:
        await watchers.make([ALICE], url=merchant.url)
        merchant.statuses = [500, 503]
        await moved(ALICE)
        for _ in range(3):
            assert await worker.deliver_due() == 1
            clock.advance(seconds=10)
        assert await worker.deliver_due() == 0
    assert len({(one.headers["X-Webhook-Id"], one.body) for one in merchant.received}) == 1
    assert len(merchant.received) == 3


async def test_what_comes_of_a_transfer_waits_for_what_came_before_at_the_same_tracker_alone(
    shop, chain, watcher, db, clock, watchers, moved
):
    async with receiver() as merchant, receiver() as another, deliverer(db, clock) as worker:
        tracker = await watchers.make([ALICE], url=merchant.url)
        await watchers.make([ALICE], url=another.url)
        merchant.statuses = [500, 500]
        await moved(ALICE)
        assert await worker.deliver_due() == 2
        chain.mine(chain.info.confirmations)
        await shop.poll(watcher)
        await FanOut(db, clock, Hints(None)).drain("memory", 0)
        # The confirmed one is due, and the one before it is not before its next attempt.
        assert await worker.deliver_due() == 1
        clock.advance(seconds=10)
        assert await worker.deliver_due() == 1
        # What failed again takes what waits behind it along.
        [waits] = await watchers.rows(
            "SELECT count(DISTINCT due_at) AS moments, count(*) AS waiting FROM webhook_deliveries"
            " WHERE tracker_pk = $1 AND status = 'pending'",
            tracker,
        )
        assert tuple(waits) == (1, 2)
        clock.advance(seconds=10)
        assert await worker.deliver_due() == 2
    sent = [[one.headers["X-Webhook-Event"].rpartition(".")[2] for one in to.received] for to in (merchant, another)]
    assert sent == [["detected"] * 3 + ["confirmed"], ["detected", "confirmed"]]


async def test_a_worker_that_dies_between_sending_and_recording_sends_the_same_again(db, clock, watchers, moved):
    async with receiver() as merchant:
        tracker = await watchers.make([ALICE], url=merchant.url)
        await moved(ALICE)
        async with deliverer(db, clock) as first:
            await first._start_due()  # and nothing of what came of it is written down
            await asyncio.wait(list(first._running))
        assert await statuses(watchers, tracker) == ["pending"]
        clock.advance(seconds=60)
        async with deliverer(db, clock) as second:
            assert await second.deliver_due() == 1
    assert len({one.headers["X-Webhook-Id"] for one in merchant.received}) == 1
    assert len(merchant.received) == 2
    assert await statuses(watchers, tracker) == ["delivered"]
    assert len(await watchers.rows("SELECT id FROM usage_records WHERE operation = 'webhook_delivery'")) == 1


async def test_what_waits_for_a_tracker_that_is_switched_off_is_never_sent(db, clock, watchers, moved, monkeypatch):
    monkeypatch.setattr(stopping, "ROWS_MAX", 7)
    async with receiver() as merchant, deliverer(db, clock) as worker:
        off = await watchers.make([ALICE], url=merchant.url)
        on = await watchers.make([ALICE], url=f"{merchant.url}/other")
        await moved(ALICE, 40)
        await watchers.change(off, is_active=False)
        assert await worker.deliver_due() == 40
        assert {one.path for one in merchant.received} == {"/hook/other"}
        assert await statuses(watchers, off) == ["cancelled"] * 40
        assert await statuses(watchers, on) == ["delivered"] * 40
        await watchers.change(off, is_active=True)
        assert await worker.deliver_due() == 0


async def test_what_waits_for_a_suspended_merchants_tracker_is_dropped_and_can_be_sent_later(
    db, clock, shop, watchers, moved, monkeypatch
):
    monkeypatch.setattr(stopping, "ROWS_MAX", 7)
    async with receiver() as merchant, deliverer(db, clock) as worker:
        tracker = await watchers.make([ALICE], url=merchant.url)
        await moved(ALICE, 40)
        await suspended(db, clock.now())
        assert await worker.deliver_due() == 0
        assert (merchant.received, await statuses(watchers, tracker)) == ([], ["dropped"] * 40)
        await suspended(db, None)
        async with db.transaction() as conn:
            bounds = {"since": clock.now() - timedelta(days=1), "until": LAST_MOMENT}
            again = await redeliver_of_tracker(conn, shop.project, tracker, **bounds, now=clock.now())
        assert (again.queued, await worker.deliver_due()) == (40, 40)


async def suspended(db, since):
    async with db.transaction() as conn:
        reason = None if since is None else "chargebacks"
        await conn.exec_driver_sql("UPDATE merchants SET suspended_at = $1, suspension_reason = $2", (since, reason))


async def test_what_waits_for_an_address_that_left_the_list_is_never_sent(db, clock, watchers, moved):
    async with receiver() as merchant, deliverer(db, clock) as worker:
        tracker = await watchers.make([ALICE, BOB], url=merchant.url)
        await moved(ALICE)
        await moved(BOB)
        await watchers.remove(tracker, ALICE)
        assert await worker.deliver_due() == 1
        assert await statuses(watchers, tracker) == ["cancelled", "delivered"]
        await moved(ALICE)
        assert await worker.deliver_due() == 0
    assert [msgspec.json.decode(one.body)["data"]["address"] for one in merchant.received] == [BOB]


async def test_an_old_delivery_is_sent_again_also_where_its_transaction_was_deleted_after_its_time(
    shop, db, clock, watchers, moved
):
    async with receiver() as merchant, deliverer(db, clock) as worker:
        tracker = await watchers.make([ALICE], url=merchant.url)
        await moved(ALICE)
        assert await worker.deliver_due() == 1
        [(delivery_id,)] = await watchers.rows("SELECT delivery_id FROM webhook_deliveries")
        await watchers.rows("DELETE FROM tracker_transactions RETURNING id")
        async with db.transaction() as conn:
            await redeliver(conn, shop.project, delivery_id, now=clock.now())
        assert await worker.deliver_due() == 1
        assert await statuses(watchers, tracker) == ["delivered"]
        # Switched off is switched off, however old it is.
        async with db.transaction() as conn:
            await redeliver(conn, shop.project, delivery_id, now=clock.now())
        await watchers.change(tracker, is_active=False)
        assert await worker.deliver_due() == 0
        assert await statuses(watchers, tracker) == ["cancelled"]


async def test_all_that_was_dropped_in_a_time_is_sent_again_once(shop, db, clock, watchers, moved, monkeypatch):
    async def again(since, until=LAST_MOMENT):
        async with db.transaction() as conn:
            done = await redeliver_of_tracker(conn, shop.project, tracker, since=since, until=until, now=clock.now())
        return done.queued, done.more

    async with receiver() as merchant, deliverer(db, clock) as worker:
        tracker = await watchers.make([ALICE], url="https://shop.example/wrong")
        other = await watchers.make([ALICE], url=merchant.url)
        await moved(ALICE, 3)
        since = clock.now()
        assert await again(since) == (0, False), "what is still being delivered is left alone"
        await watchers.rows("UPDATE webhook_deliveries SET status = 'dropped', attempts = 6 RETURNING id")
        await watchers.change(tracker, url=merchant.url)
        assert await again(since + timedelta(days=1)) == (0, False)
        assert await again(since - timedelta(days=1), until=since - timedelta(hours=1)) == (0, False)
        monkeypatch.setattr(redelivery, "REDELIVERED_MAX", 2)
        assert await again(since - timedelta(hours=1)) == (2, True)
        assert sorted(await asyncio.gather(*(again(since - timedelta(hours=1)) for _ in range(3)))) == [
            (0, False),
            (0, False),
            (1, False),
        ]
        assert await worker.deliver_due() == 3
        assert await statuses(watchers, tracker) == ["delivered"] * 3
        assert await statuses(watchers, other) == ["dropped"] * 3
        assert len({one.headers["X-Webhook-Id"] for one in merchant.received}) == 3
        await watchers.change(tracker, is_active=False)
        with pytest.raises(ConflictError, match="switched off"):
            await again(since - timedelta(hours=1))


async def test_what_is_under_way_when_a_tracker_is_switched_off_arrives_but_is_not_repeated(db, clock, watchers, moved):
    async with receiver() as merchant, deliverer(db, clock) as worker:
        tracker = await watchers.make([ALICE], url=merchant.url)

        async def switch_off(_request):
            await watchers.change(tracker, is_active=False)
            return web.Response(status=500)

        merchant.answer = switch_off
        await moved(ALICE)
        assert await worker.deliver_due() == 1
        clock.advance(seconds=60)
        assert await worker.deliver_due() == 0
    assert len(merchant.received) == 1
    assert await statuses(watchers, tracker) == ["cancelled"]


async def test_what_was_cancelled_is_sent_when_it_is_told_again(db, clock, watchers, moved):
    """As when a tracker is switched on and its past is read."""
    async with receiver() as merchant, deliverer(db, clock) as worker:
        tracker = await watchers.make([ALICE], url=merchant.url)
        await moved(ALICE)
        await watchers.change(tracker, is_active=False)
        assert await worker.deliver_due() == 0
        await watchers.change(tracker, is_active=True)
        found = await watchers.rows("SELECT movement_pk, stage, head, at FROM movement_stages")
        stages = [Stage(*row) for row in found]
        for again in (1, 0):
            async with db.transaction() as conn:
                told = await telling.tell(
                    conn, "memory", 0, stages, settings=PlatformSettings(), now=clock.now(), only_trackers=[tracker]
                )
                if not again:
                    # What was told before is nothing that anybody waits for.
                    async with db.transaction() as other:
                        await other.exec_driver_sql("SELECT FROM webhook_deliveries FOR NO KEY UPDATE NOWAIT")
            assert told.deliveries == again
            assert await worker.deliver_due() == again
    assert await statuses(watchers, tracker) == ["delivered"]


async def test_what_a_claim_is_about_to_cancel_is_sent_when_it_is_told_again_meanwhile(db, clock, watchers, moved):
    """The claim looked before the address was added again, and commits after the past was told."""
    async with receiver() as merchant, deliverer(db, clock) as worker:
        tracker = await watchers.make([ALICE], url=merchant.url)
        await moved(ALICE)
        stages = [
            Stage(*row) for row in await watchers.rows("SELECT movement_pk, stage, head, at FROM movement_stages")
        ]
        await watchers.remove(tracker, ALICE)

        async def tell_again():
            async with db.transaction() as conn:
                told = await telling.tell(
                    conn, "memory", 0, stages, settings=PlatformSettings(), now=clock.now(), only_trackers=[tracker]
                )
            return told.deliveries

        async with db.transaction() as claiming:
            at = {"now": clock.now(), "leased_until": clock.now() + timedelta(minutes=1)}
            claimed = await claims.claim(claiming, **at, events_max=10, room=worker._lanes.room(), number=1)
            assert (claimed.claims, claimed.stopped) == ([], {tracker})
            await watchers.add(tracker, [ALICE])
            again = asyncio.create_task(tell_again())
            waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            async with asyncio.timeout(20):
                while not (again.done() or await watchers.rows(waiting)):  # noqa: ASYNC110  the database says
                    await asyncio.sleep(0.01)
            assert not again.done(), "nobody knows yet what becomes of it"
        assert await again == 1
        assert await worker.deliver_due() == 1
    assert await statuses(watchers, tracker) == ["delivered"]


@pytest.mark.parametrize("removed", [ALICE, BOB])
async def test_what_one_address_is_told_does_not_end_with_the_one_that_is_paid_after_a_reorg(
    shop, chain, watcher, usdx, db, clock, watchers, removed
):
    """A transaction that is mined again pays somebody else, whom the same tracker watches until before delivery."""
    async with receiver() as merchant, deliverer(db, clock) as worker:
        tracker = await watchers.make([ALICE, BOB], url=merchant.url)
        chain.mine(3)
        chain.transfer(usdx, ALICE, ONE)
        (sent,) = chain.pool
        chain.mine()
        await shop.poll(watcher)
        chain.reorg(1)
        output = Output(contract=usdx.contract, recipient=BOB, amount=ONE)
        chain.pool.add(msgspec.structs.replace(sent, outputs=(output,)))
        chain.mine(2)
        await shop.poll(watcher)
        await FanOut(db, clock, Hints(None)).drain("memory", 0)
        await watchers.remove(tracker, removed)
        await worker.deliver_due()
    told = [msgspec.json.decode(one.body)["data"] for one in merchant.received]
    expected = [(ALICE, "detected"), (ALICE, "orphaned")] if removed == BOB else [(BOB, "detected")]
    assert [(one["address"], one["status"]) for one in told] == expected
    assert {one["txHash"] for one in told} == {sent.id}
