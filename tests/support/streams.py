"""Streams over HTTP, as a page reads them: served by the server that operators run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from msgspec import Struct

from cambist.bootstrap import Gateway
from cambist_web.live.hub import Live, LiveOptions
from tests.support.checkout import serving
from tests.support.web import lent_app

QUICK = LiveOptions(poll_s=0.1, poll_least_s=0.02, check_s=0.1, flush_s=0.05, heartbeat_s=60)
WITHIN_S = 60


class Served(Struct, frozen=True):
    """Where streams are served, and the hub that does it."""

    url: str
    live: Live

    @asynccontextmanager
    async def stream(
        self, path: str, headers: dict[str, str], *, last_event_id: str | None = None
    ) -> AsyncIterator[Page]:
        """Open a stream that must begin."""
        sent = headers if last_event_id is None else {**headers, "Last-Event-ID": last_event_id}
        timeout = aiohttp.ClientTimeout(total=WITHIN_S)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{self.url}{path}", headers=sent) as response,
        ):
            assert response.status == 200, await response.text()
            assert response.headers["content-type"].startswith("text/event-stream")
            page = Page(response)
            assert (await page.event())[0] == "ready"
            yield page

    @asynccontextmanager
    async def get(self, path: str, headers: dict[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}{path}", headers=headers) as response:
            yield response

    async def until_open(self, streams: int) -> None:
        """Wait until so many streams are open."""
        for _ in range(WITHIN_S * 50):
            if self.live.count == streams:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"{self.live.count} streams are open, not {streams}")


class Page:
    """What a page that reads a stream has been told."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.last_event_id: str | None = None
        self.resumed = False
        self.changes: list[dict[str, Any]] = []

    async def event(self) -> tuple[str, dict[str, Any]]:
        """Return the next event's name and data; ("", {}) at the end of the stream."""
        name, data = "", ""
        async for line in self._response.content:
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                data += value
            elif field == "id":
                self.last_event_id = value
            elif not field and not value and data:
                break
        told: dict[str, Any] = json.loads(data) if data else {}
        self.resumed = told.get("resumed", self.resumed)
        self.changes += told.get("changes", [])
        return name, told

    async def told_of(self, **facts: Any) -> dict[str, Any]:
        """Read on until a change has all of these facts, and return it."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                for change in self.changes:
                    if facts.items() <= change.items():
                        return change
                name, _ = await self.event()
                assert name == "changes", (name, self.changes)

    async def end(self) -> str:
        """Read on to the end, and return its reason."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                name, told = await self.event()
                if name in {"end", ""}:
                    return str(told.get("reason", ""))


@asynccontextmanager
async def served(gateway: Gateway, options: LiveOptions = QUICK) -> AsyncIterator[Served]:
    """Serve the gateway on loopback."""
    async with lent_app(gateway) as app:
        app.state.live.options = options
        async with serving(app) as url:
            yield Served(url, app.state.live)
            app.state.live.close()
