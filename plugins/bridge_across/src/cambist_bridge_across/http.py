"""One bounded GET of Across's servers, and one way to fail: ProviderUnavailableError with nothing secret in it."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import aiohttp
from msgspec import Struct

from cambist.plugin import ChainError, PluginContext, ProviderUnavailableError, RateLimitedError
from cambist_chainkit.answers import from_status
from cambist_chainkit.pace import Pace

from .config import AcrossConfig

WHO: Final = "Across"
ANSWER_BYTES_MAX: Final = 1 << 18


class Answer(Struct, frozen=True):
    """What came back."""

    status: int
    body: bytes


def open_session(context: PluginContext) -> aiohttp.ClientSession:
    """Return a session that takes answers as they are: what is packed small may be endless when it is unpacked."""
    return aiohttp.ClientSession(
        headers={"User-Agent": context.user_agent, "Accept": "application/json", "Accept-Encoding": "identity"},
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
    )


class Http:
    """Asks at the pace that the operator allows, and leaves the server alone for as long as it says."""

    def __init__(self, session: aiohttp.ClientSession, config: AcrossConfig, context: PluginContext) -> None:
        """Ask over this session, which the caller closes."""
        self._session = session
        self._base_url = config.base_url.rstrip("/")
        self._headers = {} if config.key is None else {"Authorization": f"Bearer {config.key}"}
        self._timeout_ms = config.timeout_ms
        self._timeout = aiohttp.ClientTimeout(total=config.timeout_ms / 1000)
        self._pace = Pace(config.requests_per_second, context.monotonic)
        self._monotonic = context.monotonic
        self._now = context.now
        self._rests_until = 0.0

    async def get(self, path: str, query: Mapping[str, str]) -> Answer:
        """Return an answer of status 200, or one that refuses what was asked (400, 404). Redirects are not followed."""
        rest = self._rests_until - self._monotonic()
        if rest > 0:
            raise ProviderUnavailableError(f"{WHO} asked to be left alone", retry_after=rest)
        try:
            await self._pace.wait(WHO)
        except RateLimitedError as error:
            raise ProviderUnavailableError(str(error), retry_after=error.retry_after) from error
        try:
            async with self._session.get(
                self._base_url + path, params=query, headers=self._headers, timeout=self._timeout, allow_redirects=False
            ) as response:
                if response.status not in {HTTPStatus.OK, HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND}:
                    raise from_status(WHO, response.status, response.headers.get("Retry-After"), self._now)
                return Answer(response.status, await _body(response))
        except RateLimitedError as error:
            self._rests_until = self._monotonic() + error.retry_after
            raise ProviderUnavailableError(str(error), retry_after=error.retry_after) from error
        except ChainError as error:
            raise ProviderUnavailableError(str(error)) from error
        except TimeoutError as error:
            raise ProviderUnavailableError(f"{WHO} did not answer within {self._timeout_ms} ms") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # The error's text may hold the address with its query; its kind says enough.
            raise ProviderUnavailableError(f"{WHO} cannot be reached: {type(error).__name__}") from None


async def _body(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(65_536):
        body += chunk
        if len(body) > ANSWER_BYTES_MAX:
            raise ProviderUnavailableError(f"{WHO} answers with more than {ANSWER_BYTES_MAX} bytes")
    return bytes(body)
