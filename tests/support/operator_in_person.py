"""An operator who works over HTTP, in person: made at the command line, with a phone, and everything audited."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

import aiohttp

from tests.support.gateway import GatewayProcess, until
from tests.support.streams import Page
from tests.support.two_factor import Phone

AUTH = "/api/admin/auth"
PASSWORD = "a password of an operator, quite uncommon"


class Operator:
    """An owner of the gateway with a session, who steps up where that is wanted, and listens to what changes."""

    def __init__(self, gateway: GatewayProcess, session: aiohttp.ClientSession) -> None:
        self._gateway, self._session = gateway, session
        self.operator_id, self._phone, self._bearer = "", Phone("A" * 32), ""

    async def sign_in(self) -> Self:
        """Be made at the command line, set a password by the link, and enrol a phone, whose first code signs in."""
        email = f"{os.urandom(4).hex()}@gateway.example"
        who = ("admin", "create", email, "--name", "Ada", "--role", "owner")
        code, printed = await self._gateway.run(*who, *self._gateway.options)
        assert code == 0, printed
        self.operator_id, *_, link = printed.split()
        word = {"email": email, "password": PASSWORD}
        await self.post(f"{AUTH}/set-password", {"token": link.partition("#")[2], "password": PASSWORD})
        self._phone = Phone((await self.post(f"{AUTH}/two-factor/enrol", word))["secret"])
        shown = await self.post(f"{AUTH}/two-factor/confirm", {**word, "totpCode": await self._phone.code()})
        self._bearer = shown["accessToken"]
        return self

    async def get(self, path: str) -> dict[str, Any]:
        return await self._ask("GET", path)

    async def post(self, path: str, body: Mapping[str, Any], *, status: int | None = None) -> dict[str, Any]:
        return await self._ask("POST", path, body, status)

    async def put(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self._ask("PUT", path, body)

    async def patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self._ask("PATCH", path, body)

    async def delete(self, path: str) -> dict[str, Any]:
        return await self._ask("DELETE", path)

    async def until(self, path: str, told: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Read it until it tells what it should, and return that."""

        async def poll() -> dict[str, Any] | None:
            found = await self.get(path)
            return found if told(found) else None

        return await until(poll)

    async def race(self, path: str) -> str | None:
        """Post to it; return the code of the refusal, or None where it was not too late."""
        return (await self._ask("POST", path, {}, None, refusable=True)).get("code")

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Page]:
        """Read what the stream tells until the block ends."""
        url, never = self._gateway.url + "/api/admin/stream", aiohttp.ClientTimeout(total=None)
        async with self._session.get(url, headers=self._headers(), timeout=never) as response:
            assert response.status == 200, await response.text()
            page = Page(response)

            async def read() -> None:
                while (await page.event())[0]:
                    pass

            reading = asyncio.create_task(read())
            yield page
            assert not reading.done(), "the stream has ended"
            reading.cancel()

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._bearer}"} if self._bearer else {}

    async def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        status: int | None = None,
        *,
        refusable: bool = False,
    ) -> dict[str, Any]:
        url = self._gateway.url + path
        async with self._session.request(method, url, json=body, headers=self._headers()) as response:
            answer: dict[str, Any] = await response.json()
        if answer.get("code") == "STEP_UP_REQUIRED":
            await self._ask("POST", f"{AUTH}/step-up", {"totpCode": await self._phone.code()})
            return await self._ask(method, path, body, status, refusable=refusable)
        good = response.ok or refusable if status is None else response.status == status
        assert good, (method, path, response.status, answer)
        return answer
