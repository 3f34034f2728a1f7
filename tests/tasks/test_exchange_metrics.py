"""What Prometheus is told of exchanges: which are open, and what an operator should look at."""

from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import update

from cambist.db.models import Exchange
from cambist.domain.exchanges import Step
from cambist.services.exchanges.runner import count_open
from cambist_tasks.metrics import WorkerCollector
from tests.support.exchange_booth import ONE, ExchangeBooth
from tests.support.payment_env import PaymentEnv


def told(metrics):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in metrics
        for sample in metric.samples
        if not sample.name.endswith("_created")
    }


def test_alerts_are_counted_as_they_come():
    alerts: Counter[str] = Counter()
    collector = WorkerCollector([], [], None, [], alerts)
    assert told(collector._exchanges()) == {}
    alerts["call_differs"] += 2
    alerts["failed"] += 1
    name = "cambist_exchange_alerts_total"
    assert told(collector._exchanges()) == {(name, "call_differs"): 2, (name, "failed"): 1}


@pytest.mark.slow
async def test_live_exchanges_are_counted_by_kind_and_step_until_they_have_ended(db, clock, ids):
    booth = ExchangeBooth(await PaymentEnv(db, clock, ids).open())
    await booth.earn("100")
    swap = await booth.exchange("memory/USDX", ONE, "memory/MEM")
    await booth.exchange("memory/USDX", ONE, "other/USDX")
    async with db.transaction() as conn:
        assert await count_open(conn) == {}
        await conn.execute(update(Exchange).values(mode="live", step=Step.QUEUED))
    async with db.transaction() as conn:
        assert await count_open(conn) == {("swap", "queued"): 1, ("bridge", "queued"): 1}
        await conn.execute(update(Exchange).where(Exchange.txn_id == swap).values(step=Step.ENDED, due_at=None))
    async with db.transaction() as conn:
        assert await count_open(conn) == {("bridge", "queued"): 1}
