"""The sides of the webhook benchmark: our deliverer, and one arq job for each webhook."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, ClassVar, Self

import aiohttp
import arq
import msgspec
from arq.connections import RedisSettings

from cambist.db.engine import connect
from cambist.domain.webhooks import RetrySchedule
from cambist.hints import Hints
from cambist.ports import SystemClock, system_ids
from cambist.secrets import SecretsBox
from cambist.services.webhooks.delivery import Deliverer
from cambist.services.webhooks.outbox import NewEvent, enqueue
from cambist.services.webhooks.secrets import SigningSecrets
from cambist.services.webhooks.sender import open_sender
from cambist.settings import WebhookTargets
from cambist_tasks.memory import tune_memory

SECRET = "5a" * 32
TIMEOUT_MS = 10_000


def delays_s(received: Sequence[tuple[float, bytes]]) -> list[float]:
    """Return how long each webhook took from when its event was made."""
    return [at - msgspec.json.decode(body, type=_Body).data.made_at for at, body in received]


class _Data(msgspec.Struct, rename="camel"):
    made_at: float


class _Body(msgspec.Struct):
    data: _Data


def payload(number: int) -> dict[str, Any]:
    """Return an event's data, as large as a payment's."""
    return {
        "resource": "payment",
        "paymentId": f"pay_{number:026d}",
        "publicId": f"pub_{number:026d}",
        "status": "paid",
        "chain": "ethereum",
        "token": "USDT",
        "address": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "expectedAmount": "125.5",
        "receivedAmount": "125.5",
        "txId": f"0x{number:064x}",
        "orderId": f"order-{number}",
        "metadata": {"cart": number},
        "madeAt": time.time(),
    }


class Ours:
    """The outbox and its deliverer."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url
        self._clock = SystemClock()
        self._ids = system_ids()
        self._numbers = iter(range(1 << 40))

    async def __aenter__(self) -> Self:
        self._stack = AsyncExitStack()
        self._db = connect(self._database_url, application_name="bench")
        self._stack.push_async_callback(self._db.close)
        secrets = SigningSecrets(SecretsBox([b"k" * 32], self._ids.random_bytes))
        sender = await self._stack.enter_async_context(
            open_sender(
                clock=self._clock, timeout_ms=TIMEOUT_MS, targets=WebhookTargets(allow_private=True, allow_http=True)
            )
        )
        self._hints = Hints(None)
        self._deliverer = Deliverer(
            db=self._db,
            sender=sender,
            secrets=secrets,
            hints=self._hints,
            clock=self._clock,
            schedule=RetrySchedule(),
            timeout_ms=TIMEOUT_MS,
        )
        async with self._db.transaction() as conn:
            await conn.exec_driver_sql(
                "INSERT INTO merchants (merchant_id, email, name) VALUES ('mer_1', 'a@example.com', 'A')"
            )
            row = await conn.exec_driver_sql(
                "INSERT INTO projects (project_id, merchant_pk, name, mode, webhook_secret_encrypted)"
                " SELECT 'prj_1', id, 'A', 'live', $1 FROM merchants RETURNING id",
                (secrets.seal("prj_1", SECRET),),
            )
            self._project = row.scalar_one()
        tune_memory()  # as a worker does
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def put(self, urls: Sequence[str], count: int) -> None:
        """Write so many events into the outbox, spread over the receivers."""
        async with self._db.transaction() as conn:
            numbers = [next(self._numbers) for _ in range(count)]
            events = [
                NewEvent(
                    project_pk=self._project,
                    project_id="prj_1",
                    event="payment.paid",
                    resource_id=f"pay_{number}",
                    url=urls[number % len(urls)],
                    data=payload(number),
                )
                for number in numbers
            ]
            await enqueue(conn, events, ids=self._ids, now=self._clock.now())

    async def deliver_all(self, count: int) -> int:
        """Deliver as a worker does until so many are through, each signed, sent and recorded; return how many."""
        before = self._deliverer.counters.delivered
        running = asyncio.create_task(self._deliverer.run())
        while self._deliverer.counters.delivered - before < count:  # noqa: ASYNC110  the deliverer tells nobody
            await asyncio.sleep(0.002)
        running.cancel()
        await asyncio.wait([running])  # it records what is left before it ends
        return self._deliverer.counters.delivered - before

    async def stream(self, urls: Sequence[str], per_second: int, seconds: int) -> None:
        """Deliver as a worker does, while events are written at an even pace, ten times a second."""
        running = asyncio.create_task(self._deliverer.run())
        loop = asyncio.get_running_loop()
        due = loop.time()
        for _ in range(seconds * 10):
            await self.put(urls, per_second // 10)
            await self._hints.publish("webhooks")
            due += 0.1
            await asyncio.sleep(max(0.0, due - loop.time()))
        await asyncio.sleep(2)
        running.cancel()
        await asyncio.wait([running])


async def job(context: dict[str, Any], url: str, body: bytes) -> None:
    """Sign and post one webhook; the job's end is its record."""
    timestamp_ms = time.time_ns() // 1_000_000
    headers = {
        "Content-Type": "application/json",
        "X-Webhook-Timestamp": str(timestamp_ms),
        "X-Webhook-Signature": hmac.digest(SECRET.encode(), b"%d.%b" % (timestamp_ms, body), "sha256").hex(),
    }
    async with context["session"].post(url, data=body, headers=headers) as response:
        await response.read()
        response.raise_for_status()


class Arq:
    """A job for each webhook, with arq tuned: polled every 10 ms, no result kept, one session."""

    options: ClassVar[dict[str, Any]] = {"poll_delay": 0.01, "keep_result": 0, "max_jobs": 128, "burst": True}

    def __init__(self, redis_url: str) -> None:
        self._settings = RedisSettings.from_dsn(redis_url)

    async def __aenter__(self) -> Self:
        self._pool = await arq.create_pool(self._settings)
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        await self._pool.aclose()

    async def put(self, urls: Sequence[str], count: int) -> None:
        """Enqueue so many jobs, spread over the receivers."""
        bodies = [
            msgspec.json.encode({"event": "payment.paid", "webhookId": "prj_1", "data": payload(number)})
            for number in range(count)
        ]
        await asyncio.gather(
            *(self._pool.enqueue_job("job", urls[number % len(urls)], body) for number, body in enumerate(bodies))
        )

    async def deliver_all(self, _count: int) -> int:
        """Run all jobs, and return how many."""
        worker = arq.Worker(
            [job], redis_pool=self._pool, ctx={"session": self._session}, handle_signals=False, **self.options
        )
        await worker.main()
        return worker.jobs_complete
