"""The worker's job for webhook endpoints: what was left waiting gets their state, and old secrets are forgotten."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from sqlalchemy import text

from cambist.bootstrap import Gateway
from cambist.ports import Ids
from cambist.services.webhooks import endpoint_states
from cambist_tasks.jobs.webhooks import apply_endpoint_states
from tests.support.webhooks import make_endpoints, make_project, paid, put


async def statuses(gateway: Gateway) -> dict[str, int]:
    async with gateway.db.transaction() as conn:
        rows = await conn.execute(text("SELECT status, count(*) FROM webhook_deliveries GROUP BY status"))
        return {row.status: row.count for row in rows}


async def test_what_a_resumed_endpoint_missed_is_made_due_in_parts_by_two_workers_at_once(
    gateway: Gateway, ids: Ids, monkeypatch
) -> None:
    monkeypatch.setattr(endpoint_states, "DELIVERIES_MAX", 10)
    project, clock = await make_project(gateway.db, ids), gateway.clock
    async with gateway.db.transaction() as conn:
        await make_endpoints(ids).create(
            conn, project[0], url="http://127.0.0.1:1025/", events=[], paused=True, now=clock.now()
        )
    await put(gateway.db, [paid(project, None, number) for number in range(35)], ids=ids, clock=clock)
    assert await apply_endpoint_states(gateway) is False
    assert await statuses(gateway) == {"paused": 35}
    async with gateway.db.transaction() as conn:
        # As by somebody who was stopped before any delivery was changed.
        await conn.execute(text("UPDATE webhook_endpoints SET paused = false"))
    while any(await asyncio.gather(apply_endpoint_states(gateway), apply_endpoint_states(gateway))):
        pass
    assert await statuses(gateway) == {"pending": 35}


async def test_a_secret_whose_overlap_is_over_is_forgotten(gateway: Gateway, ids: Ids) -> None:
    project, clock = await make_project(gateway.db, ids), gateway.clock
    async with gateway.db.transaction() as conn:
        endpoint, _ = await make_endpoints(ids).create(
            conn, project[0], url="http://127.0.0.1:1025/", events=[], paused=False, now=clock.now()
        )
        await make_endpoints(ids).rotate_secret(
            conn, project[0], endpoint.endpoint_id, overlap=timedelta(minutes=1), now=clock.now()
        )

    async def kept() -> bool:
        async with gateway.db.transaction() as conn:
            row = await conn.execute(text("SELECT previous_secret_encrypted FROM webhook_endpoints"))
            return row.scalar_one() is not None

    await apply_endpoint_states(gateway)
    assert await kept()
    async with gateway.db.transaction() as conn:
        await conn.execute(text("UPDATE webhook_endpoints SET previous_secret_until = :now"), {"now": clock.now()})
    await apply_endpoint_states(gateway)
    assert not await kept()
