"""A tracker in stories: made over HTTP, with a server of its own that hears what it tells."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from .gateway import Merchant
from .receiver import Receiver


class Watched:
    """A tracker of a merchant, and ``receiver``, which verifies each delivery with the tracker's secret."""

    def __init__(self, merchant: Merchant, made: dict[str, Any], receiver: Receiver) -> None:
        self.merchant, self.receiver = merchant, receiver
        self.webhook_id: str = made["webhookId"]
        self.token = {"X-Auth-Token": made["authToken"]}

    async def post(self, path: str, body: Any = None) -> dict[str, Any]:
        return await self.merchant.post(f"/api/webhook/{path}", body, headers=self.token)

    async def add(self, *addresses: str) -> None:
        answer = await self.post("address/add-bulk", {"addresses": addresses})
        assert answer["added"] == len(addresses), answer

    async def listed(self) -> Sequence[dict[str, Any]]:
        """Return the whole of ``transaction/list``, by cursor and newest first."""
        path = "/api/webhook/transaction/list?limit=7"
        found = await self.merchant.get(path, headers=self.token)
        rows = found["transactions"]
        while (cursor := found.get("nextCursor")) is not None:
            found = await self.merchant.get(f"{path}&cursor={cursor}", headers=self.token)
            rows += found["transactions"]
        return rows

    def stages(self, tx_id: str, address: str) -> Sequence[tuple[str, str]]:
        """Return what was told of a transaction at an address, each once: stages with their blocks."""
        told = [event["data"] for event in self.receiver.events_by_id().values()]
        of_it = [data for data in told if (data["txHash"], data["address"]) == (tx_id, address)]
        return [(data["status"], data["blockHash"]) for data in of_it]

    async def told(self, tx_id: str, address: str, *statuses: str, seconds: float = 180) -> Sequence[tuple[str, str]]:
        """Wait until just these stages of a transaction were told at an address, and return them with their blocks."""
        await self.receiver.until(
            lambda: [status for status, _ in self.stages(tx_id, address)] == list(statuses),
            lambda: f"of {tx_id} at {address} was told {self.stages(tx_id, address)}, and not {statuses}",
            seconds=seconds,
        )
        return self.stages(tx_id, address)


@asynccontextmanager
async def watched(merchant: Merchant, chain: str, *addresses: str) -> AsyncIterator[Watched]:
    """Make a tracker of these addresses. What it delivers must verify, and each id tell of one thing alone."""
    async with Receiver() as receiver:
        body = {"url": receiver.url, "name": "Desk", "chain": chain}
        made = (await merchant.post("/api/webhook/create", body, status=201))["webhook"]
        receiver.secret = made["secretKey"]
        tracker = Watched(merchant, made, receiver)
        if addresses:
            await tracker.add(*addresses)
        yield tracker
        told = receiver.events_by_id()
        assert receiver.rejected == []
        assert all(event["webhookId"] == tracker.webhook_id for event in told.values())
        news = [(one["data"]["transactionId"], one["data"]["blockHash"], one["event"]) for one in told.values()]
        assert len(set(news)) == len(news)
        await tracker.post("deactivate")
