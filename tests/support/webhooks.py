"""Merchants' servers for tests of webhooks, and the rows that events hang on."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import stripe
from aiohttp import web
from msgspec import Struct
from sqlalchemy import insert, update

from cambist.db.engine import Database
from cambist.db.models import Merchant, Project
from cambist.domain.webhooks import RetrySchedule
from cambist.hints import Hints
from cambist.ports import Clock, Ids
from cambist.secrets import SecretsBox
from cambist.services.webhooks.delivery import Deliverer
from cambist.services.webhooks.endpoints import Endpoints
from cambist.services.webhooks.outbox import NewEvent, enqueue
from cambist.services.webhooks.secrets import SigningSecrets
from cambist.services.webhooks.sender import open_sender
from cambist.settings import WebhookTargets
from tests.support.payloads import payment_data

SECRET = "5a" * 32


class Received(Struct, frozen=True):
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: bytes

    def verify(self, secret: str, body: bytes | None = None) -> None:
        """Verify the signature with Stripe's own verifier, over this body or another."""
        stamp, signature = self.headers["X-Webhook-Timestamp"], self.headers["X-Webhook-Signature"]
        text = (self.body if body is None else body).decode()
        stripe.WebhookSignature.verify_header(text, f"t={stamp},v1={signature}", secret, tolerance=None)


Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Receiver:
    """A merchant's server. ``statuses`` answer one request each, then all is well; ``answer`` replaces that."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.statuses: list[int] = []
        self.answer: Answer | None = None
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.received.append(Received(request.path_qs, dict(request.headers), await request.read()))
        if self.answer is not None:
            return await self.answer(request)
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200, text="noted")


@asynccontextmanager
async def receiver(host: str = "127.0.0.1") -> AsyncIterator[Receiver]:
    """Serve on a free port until the context ends."""
    server = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    with socket.create_server((host, 0), backlog=1024) as listening:
        port = listening.getsockname()[1]
        await web.SockSite(runner, listening.dup()).start()
        server.url = f"http://{host}:{port}/hook"
        try:
            yield server
        finally:
            await runner.cleanup()


@asynccontextmanager
async def canary() -> AsyncIterator[tuple[int, list[object]]]:
    """Listen on all loopback addresses, and note every connection, whatever is said on it."""
    connections: list[object] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer.get_extra_info("peername"))
        writer.close()

    server = await asyncio.start_server(note, "0.0.0.0", 0)  # noqa: S104  a canary in a test
    async with server:
        yield server.sockets[0].getsockname()[1], connections


def signing_secrets() -> SigningSecrets:
    return SigningSecrets(SecretsBox([b"k" * 32], bytes))


async def make_project(
    db: Database, ids: Ids, *, secret: str | None = SECRET, url: str | None = None
) -> tuple[int, str]:
    """Insert a merchant with a project; return the project's primary key and public id."""
    async with db.transaction() as conn:
        merchant_id, project_id = ids.new("mer"), ids.new("prj")
        merchant = await conn.execute(
            insert(Merchant)
            .values(merchant_id=merchant_id, email=f"{merchant_id}@example.com", name="Shop")
            .returning(Merchant.id)
        )
        project = await conn.execute(
            insert(Project)
            .values(
                project_id=project_id,
                merchant_pk=merchant.scalar_one(),
                name="Shop",
                mode="live",
                payment_webhook_url=url,
                webhook_secret_encrypted=secret and signing_secrets().seal(project_id, secret),
            )
            .returning(Project.id)
        )
        return project.scalar_one(), project_id


async def hears_at(db: Database, project: tuple[int, str], url: str) -> None:
    """Set the URL of the project, at which its events are sent again."""
    async with db.transaction() as conn:
        await conn.execute(update(Project).where(Project.id == project[0]).values(payment_webhook_url=url))


def paid(project: tuple[int, str], url: str | None, number: int = 1, event: str = "payment.paid") -> NewEvent:
    return NewEvent(
        project_pk=project[0],
        project_id=project[1],
        event=event,
        resource_id=f"pay_{number}",
        url=url,
        data=payment_data(number, event),
    )


async def put(db: Database, events: Sequence[NewEvent], *, ids: Ids, clock: Clock) -> None:
    async with db.transaction() as conn:
        await enqueue(conn, events, ids=ids, now=clock.now())


def make_endpoints(ids: Ids) -> Endpoints:
    return Endpoints(signing_secrets(), ids, targets=WebhookTargets(allow_private=True, allow_http=True))


@asynccontextmanager
async def deliverer(
    db: Database,
    clock: Clock,
    *,
    hints: Hints | None = None,
    timeout_ms: int = 30_000,
    schedule: RetrySchedule | None = None,
    secrets: SigningSecrets | None = None,
) -> AsyncIterator[Deliverer]:
    """Make a deliverer as a worker does."""
    async with open_sender(
        clock=clock, timeout_ms=timeout_ms, targets=WebhookTargets(allow_private=True, allow_http=True)
    ) as sender:
        yield Deliverer(
            db=db,
            sender=sender,
            secrets=secrets or signing_secrets(),
            hints=hints or Hints(None),
            clock=clock,
            schedule=schedule or RetrySchedule(),
            timeout_ms=timeout_ms,
        )


@asynccontextmanager
async def running(worker: Deliverer) -> AsyncIterator[None]:
    """Deliver until the context ends."""
    task = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until(condition: Callable[[], object], timeout_s: float = 20.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110  what is waited for happens in a server or a database
            await asyncio.sleep(0.01)
