"""One bounded GET, and one way to fail: PriceUnavailableError with nothing secret in it."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import TypeVar

import aiohttp
import msgspec

from cambist.plugin import PriceUnavailableError

T = TypeVar("T")

ANSWER_BYTES_MAX = 1_000_000


async def get_json(  # noqa: PLR0913 - they are one request
    session: aiohttp.ClientSession,
    url: str,
    kind: type[T],
    *,
    source: str,
    wanted: str,
    params: Mapping[str, str],
    headers: Mapping[str, str],
    timeout_ms: int,
) -> T:
    """Return a 200 answer as a kind of value, bounded in size and time; redirects are not followed."""
    timeout = aiohttp.ClientTimeout(total=timeout_ms / 1000)
    try:
        async with session.get(url, params=params, headers=headers, timeout=timeout, allow_redirects=False) as response:
            if response.status != HTTPStatus.OK:
                raise PriceUnavailableError(f"{source} answers with status {response.status}")
            body = bytearray()
            async for chunk in response.content.iter_chunked(65_536):
                body += chunk
                if len(body) > ANSWER_BYTES_MAX:
                    raise PriceUnavailableError(f"{source} answers with more than {ANSWER_BYTES_MAX} bytes")
            return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise PriceUnavailableError(f"{source} answers with something else than {wanted}") from error
    except TimeoutError as error:
        raise PriceUnavailableError(f"{source} did not answer within {timeout_ms} ms") from error
    except aiohttp.ClientError as error:
        # The error's text may hold the address with its query; its kind says enough.
        raise PriceUnavailableError(f"{source} cannot be reached: {type(error).__name__}") from error
