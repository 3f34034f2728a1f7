"""Asks 1inch's Swap API: bounded in size and time, no redirects, and the key in no message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Annotated, Final, NoReturn, TypeVar

import aiohttp
import msgspec
from msgspec import Meta, Struct, field

from cambist.plugin import PluginContext, ProviderUnavailableError

from .addresses import spell
from .budget import RETRY_AFTER_MAX_S, RequestBudget
from .config import WHERE, OneInchConfig
from .refusals import refusal

T = TypeVar("T")

ANSWER_BYTES_MAX: Final = 1_000_000
WORD_MAX: Final = 2**256 - 1

Digits = Annotated[str, Meta(pattern=r"\A[0-9]{1,78}\Z")]
Address = Annotated[str, Meta(pattern=r"\A0x[0-9a-fA-F]{40}\Z")]
Data = Annotated[str, Meta(pattern=r"\A0x[0-9a-fA-F]+\Z")]


class BuiltSwap(Struct, frozen=True):
    """A call as the server built it, and the output that it expects. Addresses are normalized, nothing is believed."""

    units: int
    sender: str
    to_address: str
    value: int
    data: bytes


class _Quote(Struct, frozen=True):
    units: Digits = field(name="dstAmount")


class _Transaction(Struct, frozen=True):
    sender: Address = field(name="from")
    to: Address
    data: Data
    value: Digits


class _Swap(Struct, frozen=True):
    units: Digits = field(name="dstAmount")
    tx: _Transaction


class _Refusal(Struct, frozen=True):
    description: str


class _Answer(Struct, frozen=True):
    status: int
    retry_after: float
    body: bytes


def open_session(context: PluginContext) -> aiohttp.ClientSession:
    """Return a session without cookies, which unpacks nothing: a short answer can be packed that is endless."""
    return aiohttp.ClientSession(
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": context.user_agent, "Accept": "application/json", "Accept-Encoding": "identity"},
    )


class OneInchApi:
    """The two questions of a swap. Raises ExchangeRefusedError and ProviderUnavailableError, and nothing else."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        config: OneInchConfig,
        budget: RequestBudget,
        now: Callable[[], datetime],
    ) -> None:
        """Ask over this session, which the caller closes."""
        self._session = session
        self._key = config.key
        self._url = f"{config.base_url.rstrip('/')}/swap/v{config.version}"
        self._timeout_ms = config.timeout_ms
        self._budget = budget
        self._now = now

    async def quote(self, chain_id: int, params: Mapping[str, str]) -> int:
        """Return how much comes out."""
        body = await self._get(f"{chain_id}/quote", params)
        return _number(self._decoded(body, _Quote, "a quote").units)

    async def swap(self, chain_id: int, params: Mapping[str, str]) -> BuiltSwap:
        """Return the call that swaps."""
        body = await self._get(f"{chain_id}/swap", params)
        answer = self._decoded(body, _Swap, "a swap")
        try:
            data = bytes.fromhex(answer.tx.data[2:])
        except ValueError:
            _garbled("a swap")
        return BuiltSwap(
            units=_number(answer.units),
            sender=spell(answer.tx.sender),
            to_address=spell(answer.tx.to),
            value=_number(answer.tx.value),
            data=data,
        )

    async def _get(self, path: str, params: Mapping[str, str]) -> bytes:
        await self._budget.take()
        answer = await self._ask(path, params)
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            wait = self._budget.limited(answer.retry_after)
            raise ProviderUnavailableError("1inch asks for fewer requests (HTTP 429)", retry_after=wait)
        self._budget.answered()
        if answer.status == HTTPStatus.OK:
            return answer.body
        if answer.status == HTTPStatus.BAD_REQUEST:
            raise refusal(self._redacted(self._decoded(answer.body, _Refusal, "a refusal").description))
        raise _status_error(answer)

    async def _ask(self, path: str, params: Mapping[str, str]) -> _Answer:
        try:
            async with self._session.get(
                f"{self._url}/{path}",
                params=params,
                headers={"Authorization": f"Bearer {self._key}"},
                timeout=aiohttp.ClientTimeout(total=self._timeout_ms / 1000),
                allow_redirects=False,
            ) as response:
                body = bytearray()
                async for chunk in response.content.iter_chunked(65_536):
                    body += chunk
                    if len(body) > ANSWER_BYTES_MAX:
                        raise ProviderUnavailableError(f"1inch answers with more than {ANSWER_BYTES_MAX} bytes")
                wait = _seconds(response.headers.get("Retry-After"), self._now)
                return _Answer(response.status, wait, bytes(body))
        except TimeoutError as error:
            raise ProviderUnavailableError(f"1inch did not answer within {self._timeout_ms} ms") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # The error's text may hold the address or a header; its kind says enough.
            raise ProviderUnavailableError(f"1inch cannot be reached: {type(error).__name__}") from None

    def _decoded(self, body: bytes, kind: type[T], wanted: str) -> T:
        try:
            return msgspec.json.decode(body, type=kind)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            _garbled(wanted)

    def _redacted(self, text: str) -> str:
        return text.replace(self._key, "***")


def _garbled(wanted: str) -> NoReturn:
    raise ProviderUnavailableError(f"1inch answers with something else than {wanted}") from None


def _number(digits: str) -> int:
    number = int(digits)
    if number > WORD_MAX:
        raise ProviderUnavailableError("1inch answers with a number that no chain can hold")
    return number


def _status_error(answer: _Answer) -> ProviderUnavailableError:
    status = answer.status
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        text = f"1inch does not let us in (HTTP {status}): {WHERE}.key is wrong, used up or blocked"
    elif status == HTTPStatus.NOT_FOUND:
        text = (
            f"1inch knows no such path (HTTP 404): {WHERE}.base_url or {WHERE}.version is wrong, or the chain unknown"
        )
    elif HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        text = f"1inch sends us elsewhere (HTTP {status}), and we do not go: {WHERE}.base_url is wrong"
    else:
        text = f"1inch answers with status {status}"
    return ProviderUnavailableError(text, retry_after=answer.retry_after)


def _seconds(retry_after: str | None, now: Callable[[], datetime]) -> float:
    """Read a Retry-After header, which is a number of seconds or a date, within reason."""
    if retry_after is None:
        return 0.0
    if retry_after.isascii() and retry_after.isdigit():
        return min(float(retry_after[:9]), RETRY_AFTER_MAX_S)
    try:
        wait = (parsedate_to_datetime(retry_after) - now()).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(max(wait, 0.0), RETRY_AFTER_MAX_S)
