"""Asking the servers of swap and bridge providers: bounded, within the key's budget, and one way to fail.

::

    setup = ProviderSetup(name="example", table="plugins.example", base_url=config.base_url, key=config.key, ...)
    async with provider_client(setup, context) as client:
        answer = await client.get("/quote", {"amount": "5"}, wait_max_s=QUOTE_WAIT_MAX_S)
        if answer.refused:
            refusal = client.decode(answer, Refusal, "a refusal")
            raise ExchangeRefusedError(printable(client.redacted(refusal.text)))
        quote = client.decode(answer, Quote, "a quote")
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from http import HTTPStatus
from typing import Final, TypeVar

import aiohttp
import msgspec
from msgspec import Struct

from cambist.plugin import ExchangeEffects, PluginContext, ProviderUnavailableError, RequestBudget, account_name
from cambist.plugin.budgets import WAIT_MAX_S

from .answers import retry_after_s
from .http import BoundedResponse

T = TypeVar("T")

QUOTE_WAIT_MAX_S: Final = 2.0
"""For how long a quote may wait for its turn: less than a build, which so finds room behind any number of quotes."""


class ProviderSetup(Struct, frozen=True, kw_only=True):
    """One provider's server, and how it may be asked.

    ``name`` stands in messages, and with the key in the account's name. ``table`` is the operator's, with the settings
    of the address and the key in it. ``refusals`` are the statuses with which the server explains why it will not do
    what was asked. The key is sent as a bearer's token.
    """

    name: str
    table: str
    base_url: str
    key: str | None
    requests_per_second: int
    timeout_ms: int
    answer_bytes_max: int
    refusals: frozenset[int]
    url_setting: str = "base_url"
    key_setting: str = "key"


class ProviderAnswer(Struct, frozen=True):
    """What came back: status 200, or one of the setup's refusals."""

    status: int
    body: bytes

    @property
    def refused(self) -> bool:
        """Whether the server will not do it."""
        return self.status != HTTPStatus.OK


class ProviderClient:
    """Asks one server, follows no redirects, and retries nothing. Raises ProviderUnavailableError and nothing else.

    Neither the key nor the address is in a message. Make it with ``provider_client``.
    """

    def __init__(
        self,
        setup: ProviderSetup,
        session: aiohttp.ClientSession,
        budget: RequestBudget,
        now: Callable[[], datetime],
    ) -> None:
        """Ask over this session, which the caller closes."""
        self.name = setup.name
        self._setup = setup
        self._session = session
        self._base_url = setup.base_url.rstrip("/")
        self._timeout = aiohttp.ClientTimeout(total=setup.timeout_ms / 1000)
        self._budget = budget
        self._now = now

    async def get(self, path: str, query: Mapping[str, str], *, wait_max_s: float = WAIT_MAX_S) -> ProviderAnswer:
        """Ask with a query, after waiting for the turn for at most so long."""
        return await self._ask("GET", path, wait_max_s, query=query)

    async def post(self, path: str, asked: Struct, *, wait_max_s: float = WAIT_MAX_S) -> ProviderAnswer:
        """Ask with JSON, after waiting for the turn for at most so long."""
        return await self._ask("POST", path, wait_max_s, body=msgspec.json.encode(asked))

    def decode(self, answer: ProviderAnswer, kind: type[T], wanted: str) -> T:
        """Return the answer as a value; ``wanted`` names it in messages, like "a quote"."""
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except (msgspec.DecodeError, RecursionError, ValueError):
            # The error's text may repeat what the server said.
            raise ProviderUnavailableError(f"{self.name} answers with something else than {wanted}") from None

    def redacted(self, text: str) -> str:
        """Return what the server said, without the key."""
        return text.replace(self._setup.key, "***") if self._setup.key else text

    async def _ask(
        self,
        method: str,
        path: str,
        wait_max_s: float,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> ProviderAnswer:
        if not path.startswith("/"):
            raise ValueError("a path begins with a slash: else it could name another host")
        await self._budget.take(wait_max_s)
        try:
            async with self._session.request(
                method,
                self._base_url + path,
                params=query,
                data=body,
                headers=None if body is None else {"Content-Type": "application/json"},
                timeout=self._timeout,
                allow_redirects=False,
            ) as response:
                status, retry_after = response.status, response.headers.get("Retry-After")
                if status == HTTPStatus.OK or status in self._setup.refusals:
                    return ProviderAnswer(status, await self._body(response))
        except TimeoutError:
            raise ProviderUnavailableError(f"{self.name} did not answer within {self._setup.timeout_ms} ms") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # The error's text may hold the address or a header; its kind says enough.
            raise ProviderUnavailableError(f"{self.name} cannot be reached: {type(error).__name__}") from None
        raise await self._error(status, retry_after)

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for chunk in response.content.iter_chunked(65_536):
            body += chunk
            if len(body) > self._setup.answer_bytes_max:
                raise ProviderUnavailableError(
                    f"{self.name} answers with more than {self._setup.answer_bytes_max} bytes"
                )
        return bytes(body)

    async def _error(self, status: int, retry_after: str | None) -> ProviderUnavailableError:
        name, table = self.name, self._setup.table
        if status == HTTPStatus.TOO_MANY_REQUESTS or (
            status == HTTPStatus.SERVICE_UNAVAILABLE and retry_after is not None
        ):
            wait = await self._budget.pause(retry_after_s(retry_after, self._now))
            asks = "asks for fewer requests" if status == HTTPStatus.TOO_MANY_REQUESTS else "is busy"
            return ProviderUnavailableError(f"{name} {asks} (HTTP {status})", retry_after=wait)
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.FORBIDDEN}:
            text = f"does not let us in (HTTP {status}): {table}.{self._setup.key_setting} is wrong, used up or blocked"
        elif status == HTTPStatus.NOT_FOUND:
            text = f"knows no such path (HTTP 404): {table}.{self._setup.url_setting} is wrong, or the chain unknown"
        elif HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            text = f"sends us elsewhere (HTTP {status}), and we do not go: {table}.{self._setup.url_setting} is wrong"
        else:
            text = f"answers with status {status}"
        return ProviderUnavailableError(f"{name} {text}")


@asynccontextmanager
async def provider_client(setup: ProviderSetup, context: PluginContext) -> AsyncIterator[ProviderClient]:
    """Open a client until the context ends; nobody is asked yet."""
    headers = {
        "User-Agent": context.user_agent,
        "Accept": "application/json",
        "Accept-Encoding": "identity",
    }
    if setup.key is not None:
        headers["Authorization"] = f"Bearer {setup.key}"
    account = account_name(setup.name, setup.key)
    budget = context.budgets.of(account, per_second=setup.requests_per_second)
    # No cookies, and nothing is unpacked: a short answer can be packed that is endless.
    async with aiohttp.ClientSession(
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        response_class=BoundedResponse,
    ) as session:
        yield ProviderClient(setup, session, budget, context.now)


def other_than(wanted: ExchangeEffects, read: ExchangeEffects) -> Sequence[str]:
    """Return the names of the fields in which a call does something else than was asked for."""
    return [name for name in wanted.__struct_fields__ if getattr(wanted, name) != getattr(read, name)]
