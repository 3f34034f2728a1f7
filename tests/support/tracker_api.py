"""Trackers for tests: made through the API, with the headers of their own tokens."""

from __future__ import annotations

from typing import Any

from cambist.testing.memory.family import spell

CREATE = "/api/webhook/create"
URL = "http://127.0.0.1:1025/nobody"


def watched(number: int) -> str:
    """Return an address of the memory family that nobody has."""
    return spell(number.to_bytes(20, "big"))


class Tracker:
    """A tracker, as whoever has its token uses it."""

    def __init__(self, client: Any, made: dict[str, Any]) -> None:
        self.client = client
        self.made = made
        self.webhook_id: str = made["webhookId"]
        self.token = {"X-Auth-Token": made["authToken"]}

    async def get(self, path: str = "get") -> Any:
        return await self.client.get(f"/api/webhook/{path}", headers=self.token)

    async def post(self, path: str, body: Any = None) -> Any:
        return await self.client.post(f"/api/webhook/{path}", json=body, headers=self.token)

    async def told(self, path: str = "get") -> Any:
        """Read something, which must succeed."""
        answer = await self.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def done(self, path: str, body: Any = None) -> Any:
        """Do something, which must succeed."""
        answer = await self.post(path, body)
        assert answer.status_code == 200, answer.text
        return answer.json()


async def make(client: Any, headers: dict[str, str], **wanted: Any) -> Tracker:
    """Make a tracker."""
    body = {"url": URL, "name": "Desk", "chain": "memory"} | wanted
    answer = await client.post(CREATE, json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    return Tracker(client, answer.json()["webhook"])
