"""How long it takes to put ten thousand addresses on a tracker's list in one call, and what others wait meanwhile.

The API and the database are the real ones; the web server alone is not between them. EVM addresses with checksums,
which are the dearest to check, and labels that are not all ASCII, so that they are looked through. A timer in the web
side's own loop notes for how long it worked without letting anybody else run.
"""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from _harness import ROUNDS, Row, at_most, report, sized
from _servers import migrated_servers

from cambist.bootstrap import Gateway, open_gateway
from cambist.services.actor import Actor
from cambist.services.trackers.create import NewTracker, create_tracker
from cambist.settings import (
    AuthSettings,
    DatabaseSettings,
    KeySettings,
    RateLimitSettings,
    RedisSettings,
    Settings,
    WebSettings,
)
from cambist_web.app import create_app
from cambist_web.context import web_of

ADDRESSES = sized(10_000, tiny=200)
OTHERS = sized(20, tiny=1)
"""Trackers that watch as many addresses each beforehand: lists are not empty, nor are indexes."""
TICK_S = 0.002
AIM_S = 2.0
STALL_AIM_MS = 100.0

PLAN = """
INSERT INTO plans (plan_id, name, has_tracker, webhooks_max, addresses_max, is_default)
VALUES ('pln_bench', 'With room for all of them', true, 1000, $1, true)
"""
OWNER = """
WITH merchant AS (
    INSERT INTO merchants (merchant_id, email, name) VALUES ('mer_1', 'a@example.com', 'Shop')
    RETURNING id
)
INSERT INTO projects (project_id, merchant_pk, name, mode) SELECT 'prj_1', id, 'Shop', 'sandbox' FROM merchant
RETURNING id, merchant_pk
"""


def fresh(gateway: Gateway, count: int) -> Sequence[dict[str, str]]:
    """Return addresses that nobody has, as EIP-55 spells them."""
    family = gateway.registry.families["evm"]
    texts = (family.normalize_address(f"0x{os.urandom(20).hex()}") for _ in range(count))
    return [{"address": text, "label": f"Kundin {number}: Zoë"} for number, text in enumerate(texts)]


@asynccontextmanager
async def stalls(found: list[float]) -> AsyncIterator[None]:
    """Note the longest time that the loop's thread worked without letting others run, in milliseconds."""

    async def tick() -> None:
        longest, before = 0.0, time.thread_time()
        try:
            while True:
                await asyncio.sleep(TICK_S)
                now = time.thread_time()
                longest, before = max(longest, now - before), now
        finally:
            found.append(longest * 1000)

    ticking = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticking.cancel()
        with suppress(asyncio.CancelledError):
            await ticking


class TrackerClient:
    """A merchant's trackers, and the API that they are managed with."""

    def __init__(self, gateway: Gateway, client: httpx.AsyncClient, project: Actor) -> None:
        self.gateway, self.client, self.project = gateway, client, project
        self.stalls_ms: list[float] = []

    async def tracker(self) -> Mapping[str, str]:
        """Make a tracker, and return the headers that it is managed with."""
        new = NewTracker(url="https://desk.example/", name="Desk", chain="ethereum", max_addresses=ADDRESSES)
        async with self.gateway.db.transaction() as conn:
            made = await create_tracker(conn, web_of(self.client._transport.app).trackers, self.project, new)  # type: ignore[attr-defined]
        return {"X-Auth-Token": made.credentials.auth_token}

    async def post(self, path: str, token: Mapping[str, str], addresses: Sequence[object]) -> tuple[float, Any]:
        """Return how long one call takes, and its answer."""
        body = httpx.Request("POST", "http://x", json={"addresses": addresses}).content
        headers = {**token, "Content-Type": "application/json"}
        async with stalls(self.stalls_ms):
            started = time.perf_counter()
            answer = await self.client.post(f"/api/webhook/address/{path}", content=body, headers=headers)
            took_s = time.perf_counter() - started
        return took_s, answer.raise_for_status().json()


async def measure(trackers: TrackerClient) -> Sequence[Row]:
    took: dict[str, list[float]] = {"added": [], "exists": [], "removed": []}
    for _ in range(OTHERS):
        await trackers.post("add-bulk", await trackers.tracker(), fresh(trackers.gateway, ADDRESSES))
    trackers.stalls_ms.clear()
    for _ in range(ROUNDS):
        token, addresses = await trackers.tracker(), fresh(trackers.gateway, ADDRESSES)
        for path, fate in (("add-bulk", "added"), ("add-bulk", "exists"), ("remove-bulk", "removed")):
            took_s, answer = await trackers.post(path, token, addresses)
            if answer[fate] != ADDRESSES:
                raise AssertionError(f"{answer[fate]} of {ADDRESSES} were {fate}")
            took[fate].append(took_s)
    seconds = {fate: median(values) for fate, values in took.items()}
    return [
        at_most("added, of one call", seconds["added"], AIM_S, " s"),
        at_most("sent again, and all there", seconds["exists"], AIM_S, " s"),
        at_most("removed", seconds["removed"], AIM_S, " s"),
        at_most("the longest that nobody else was served", max(trackers.stalls_ms), STALL_AIM_MS, " ms"),
    ]


async def run(database_url: str, redis_url: str, folder: Path) -> Sequence[Row]:
    settings = Settings(
        data_dir=folder,
        database=DatabaseSettings(url=database_url),
        redis=RedisSettings(url=redis_url),
        keys=KeySettings(application_key="00" * 32),
        auth=AuthSettings(jwt_secret="a secret for benchmarks, long enough"),
        web=WebSettings(rate_limits=RateLimitSettings(per_key=0, per_address=0, login_per_address=0)),
        plugins={"evm": {"chains": {"ethereum": {"simulated": True}}}},
    )
    async with open_gateway(settings, role="web") as gateway:
        app = create_app(gateway)
        gc.freeze()  # as a web worker does with what it has imported (cli/imports.py)
        async with gateway.db.transaction() as conn:
            row = (await conn.exec_driver_sql(OWNER)).one()
            await conn.exec_driver_sql(PLAN, (ADDRESSES,))
        project = Actor(
            merchant_pk=row.merchant_pk, merchant_id="mer_1", project_pk=row.id, project_id="prj_1", mode="sandbox"
        )
        transport = httpx.ASGITransport(app, client=("192.0.2.7", 1234))
        async with app.lifespan(), httpx.AsyncClient(transport=transport, base_url="http://x", timeout=60) as client:
            return await measure(TrackerClient(gateway, client, project))


def main() -> None:
    with migrated_servers() as (database_url, redis_url), tempfile.TemporaryDirectory(prefix="cambist-bench-") as name:
        rows = asyncio.run(run(database_url, redis_url, Path(name)))
    report(
        f"{ADDRESSES:,} addresses in one call",
        rows,
        note=f"checksummed EVM addresses with labels, beside {OTHERS} trackers that watch as many each",
    )


if __name__ == "__main__":
    main()
