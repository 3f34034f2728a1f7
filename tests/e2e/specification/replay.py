"""A merchant's program that knows of the gateway what the specification says, and checks that it is so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from tests.support.access import filled
from tests.support.gateway import ADMIN_KEY, Merchant
from tests.support.receiver import Receiver

from .rows import ROWS, Row
from .shapes import Failure, Shown

WRONG = {
    "K": {"X-Api-Key": "ck_live_nobody"},
    "B": {"Authorization": "Bearer nobody"},
    "T": {"X-Auth-Token": "tok_nobody"},
    "A": {"X-Admin-Key": "nobody"},
}


class Replay:
    """Asks row by row, with the merchant's own credentials."""

    def __init__(self, merchant: Merchant, receiver: Receiver) -> None:
        self.merchant, self.receiver = merchant, receiver
        self.token: Mapping[str, str] = {}

    @property
    def project_id(self) -> str:
        project_id: str = self.merchant.project["projectId"]
        return project_id

    def credentials(self, kind: str) -> Mapping[str, str]:
        """Return the header by the letter of section 4."""
        return {
            "K": self.merchant.headers, "B": self.merchant.bearer, "T": self.token, "A": {"X-Admin-Key": ADMIN_KEY},
        }[kind]  # fmt: skip

    async def ask(
        self,
        name: str,
        body: object = None,
        *,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        **ids: str,
    ) -> dict[str, Any]:
        """Ask what a row says, by the first of its credentials, and return the answer once it is as it is shown.

        ``headers`` come beside the credential or, where they hold one, in its place.
        """
        row, (method, path) = ROWS[name], name.split()
        own = self.credentials(row.credentials[0]) if row.credentials and not _holds_credentials(headers) else {}
        url = self.merchant.url + filled(path, **ids) + (f"?{urlencode(query)}" if query else "")
        sent = {**own, **(headers or {})}
        async with self.merchant.session.request(method, url, json=body, headers=sent) as response:
            told: dict[str, Any] = await response.json()
        assert response.status == (status or row.status), (name, response.status, told)
        check(told, _shape(row, response.status))
        return told

    async def refused(self, name: str, body: object, status: int, code: str, **more: Any) -> None:
        """Ask what must be refused with this status, which the row shows, and this code."""
        assert status in ROWS[name].refusals, f"{name} is not shown to answer {status}"
        told = await self.ask(name, body, status=status, **more)
        assert told["code"] == code


def check(value: object, shape: type[Shown]) -> None:
    """Raise where a field that is shown is missing, or of another type."""
    msgspec.convert(value, shape)


def _shape(row: Row, status: int) -> type[Shown]:
    return row.answer if status < 300 else Failure


def _holds_credentials(headers: Mapping[str, str] | None) -> bool:
    return any(name in (headers or {}) for wrong in WRONG.values() for name in wrong)
