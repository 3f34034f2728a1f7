"""Usage credits in the worker: what was delivered is metered, and what was metered reaches the ledger."""

from __future__ import annotations

import asyncio

from cambist.bootstrap import Gateway
from cambist.db.engine import Database
from cambist.domain.usage import Weights
from cambist.domain.webhooks import RetrySchedule
from cambist.hints import Hints
from cambist.ports import Ids
from cambist.services.accounting import usage
from cambist.services.accounting.usage import Metered
from cambist.services.platform import PlatformSettings
from cambist.services.webhooks.delivery import Deliverer
from cambist.services.webhooks.redelivery import redeliver
from cambist.services.webhooks.sender import open_sender
from cambist.settings import WebhookTargets
from cambist.testing.clock import ManualClock
from cambist_tasks.jobs.usage import give_allowances, give_months, post_usage
from tests.support.webhooks import hears_at, make_project, paid, put, receiver, signing_secrets

ANYWHERE = WebhookTargets(allow_private=True, allow_http=True)


async def records(db: Database) -> list[tuple[object, ...]]:
    async with db.autocommit() as conn:
        rows = await conn.exec_driver_sql("SELECT mode, operation, chain, reference, weight FROM usage_records")
        return [tuple(row) for row in rows]


async def test_a_webhook_costs_once_when_it_is_delivered_whatever_came_before_and_after(
    db: Database, clock: ManualClock, ids: Ids
) -> None:
    project = await make_project(db, ids)
    async with (
        receiver() as merchant,
        open_sender(clock=clock, timeout_ms=30_000, targets=ANYWHERE) as sender,
    ):
        await hears_at(db, project, merchant.url)
        deliverer = Deliverer(
            db=db,
            sender=sender,
            secrets=signing_secrets(),
            hints=Hints(None),
            clock=clock,
            schedule=RetrySchedule(),
            timeout_ms=30_000,
        )
        merchant.statuses = [500]
        await put(db, [paid(project, merchant.url)], ids=ids, clock=clock)
        assert await deliverer.deliver_due() == 1
        assert await records(db) == []
        clock.advance(3600)
        assert await deliverer.deliver_due() == 1
        [delivered] = merchant.received[1:]
        delivery = delivered.headers["X-Webhook-Id"].replace("evt_", "dlv_")
        told = [("live", "webhook_delivery", None, delivery, Weights().webhook_delivery)]
        assert await records(db) == told
        async with db.transaction() as conn:
            await redeliver(conn, project[0], delivery, now=clock.now())
        assert await deliverer.deliver_due() == 1
        assert len(merchant.received) == 3
        assert await records(db) == told


async def test_two_workers_roll_usage_up_and_give_allowances_once(gateway: Gateway, ids: Ids) -> None:
    await make_project(gateway.db, ids)
    async with gateway.db.transaction() as conn:
        row = (await conn.exec_driver_sql("SELECT id FROM merchants")).scalar_one()
        done = [Metered(row, "live", "payment", "memory", f"pay_{number}") for number in range(10)]
        settings = PlatformSettings()
        await usage.meter(conn, done, settings, gateway.clock.now())
    both = [post_usage(gateway), give_allowances(gateway), post_usage(gateway), give_allowances(gateway)]
    assert await asyncio.gather(*both) == [False] * 4
    async with gateway.db.autocommit() as conn:
        left = await usage.balance(conn, row, "live")
        posted = await conn.exec_driver_sql(
            "SELECT balance FROM ledger_accounts WHERE merchant_pk = $1 AND mode = 'live' AND purpose = 'cpt'", (row,)
        )
    allowance = settings.cpt.initial_allowance
    assert left == posted.scalar_one() == allowance - 10 * settings.cpt.weights.of("payment", "memory")


async def test_two_workers_give_the_credits_that_a_plan_includes_once(gateway: Gateway, ids: Ids) -> None:
    await make_project(gateway.db, ids)
    async with gateway.db.transaction() as conn:
        row = (await conn.exec_driver_sql("SELECT id FROM merchants")).scalar_one()
        await conn.exec_driver_sql(
            "INSERT INTO plans (plan_id, name, has_tracker, webhooks_max, addresses_max, cpt_per_month, is_default)"
            " VALUES ('pln_1', 'Growth', true, 1, 1, 777, true)"
        )
    assert await asyncio.gather(*(give_months(gateway) for _ in range(4))) == [False] * 4
    async with gateway.db.autocommit() as conn:
        assert [await usage.balance(conn, row, mode) for mode in usage.MODES] == [777, 777]
