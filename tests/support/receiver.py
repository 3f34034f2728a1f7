"""A merchant's server: takes webhooks and verifies them with somebody else's code."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import stripe
from aiohttp import web


class Receiver:
    """Listens on loopback; every webhook must verify, and is kept with its headers. It answers as it is told to."""

    def __init__(self) -> None:
        self.url = ""
        self.secret: str | None = None
        self.answer, self.text = 200, ""
        self.received: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.rejected: list[str] = []
        self._news = asyncio.Condition()

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/hook", self._take)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/hook"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        stamp, signature = request.headers["X-Webhook-Timestamp"], request.headers["X-Webhook-Signature"]
        try:
            stripe.WebhookSignature.verify_header(
                body.decode(), f"t={stamp},v1={signature}", self.secret, tolerance=None
            )
        except stripe.SignatureVerificationError as error:
            self.rejected.append(str(error))
        event = json.loads(body)
        assert request.headers["X-Webhook-Event"] == event["event"]
        async with self._news:
            self.received.append(event)
            self.headers.append(request.headers)
            self._news.notify_all()
        return web.Response(status=self.answer, text=self.text)

    def events(self, resource_id: str) -> Sequence[str]:
        """Return the events of a payment, payout, withdrawal or account, each once, as they first came."""
        found = [event["event"] for event in self.received if _concerns(event, resource_id)]
        return list(dict.fromkeys(found))

    def events_by_id(self) -> dict[str, dict[str, Any]]:
        """Return what came under each ``X-Webhook-Id``, in the order in which it first came: always the same."""
        found: dict[str, dict[str, Any]] = {}
        for headers, event in zip(self.headers, self.received, strict=True):
            assert found.setdefault(headers["X-Webhook-Id"], event) == event
        return found

    async def until(
        self, check: Callable[[], bool], why: Callable[[], str] | None = None, *, seconds: float = 180
    ) -> None:
        """Wait for news until something is true of what was received; ``why`` says what is missing."""
        async with self._news:
            try:
                await asyncio.wait_for(self._news.wait_for(check), seconds)
            except TimeoutError:
                told = [event["event"] for event in self.received] if why is None else why()
                raise AssertionError(f"not in {seconds} s: {told}") from None

    async def wait(self, resource_id: str, event: str, *, seconds: float = 180) -> dict[str, Any]:
        """Return the data of an event of a payment, payout, withdrawal or account, as soon as it was received."""

        def found() -> dict[str, Any] | None:
            for item in self.received:
                if item["event"] == event and _concerns(item, resource_id):
                    return item["data"]
            return None

        async with self._news:
            try:
                await asyncio.wait_for(self._news.wait_for(lambda: found() is not None), seconds)
            except TimeoutError:
                told = self.events(resource_id)
                raise AssertionError(f"no {event} for {resource_id} in {seconds} s, but {told}") from None
        data = found()
        assert data is not None
        return data


def _concerns(event: dict[str, Any], resource_id: str) -> bool:
    data = event["data"]
    if data["resource"] == "account_deposit":
        return resource_id in {data["accountId"], data["depositId"]}
    named = "txnId" if data["resource"] == "exchange" else f"{data['resource']}Id"
    return bool(data[named] == resource_id)
