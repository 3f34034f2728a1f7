"""The service behind the provider: how it is asked, and what its refusals mean to the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct

from cambist.plugin import (
    ChainError,
    ExchangeRefusedError,
    ProviderUnavailableError,
    RateLimitedError,
    RefusalReason,
    printable,
)
from cambist_chainkit.http import HttpClient

from .wire import Refusal

REFUSED = 422
MESSAGE_MAX = 200
REASONS: Mapping[str, RefusalReason] = {
    "NO_SUCH_PAIR": "unsupported",
    "NO_LIQUIDITY": "no_liquidity",
    "PRICE_MOVED": "price_moved",
    "TOO_LITTLE": "amount_too_low",
    "TOO_MUCH": "amount_too_high",
}
"""What the service's codes are called in the contract. Any other is a refusal without more."""

T = TypeVar("T")


class Service:
    """One service. Raises ExchangeError and nothing else; its key and its address are in no message."""

    def __init__(self, client: HttpClient) -> None:
        """Ask over this client, which bounds answers in size and time."""
        self._client = client

    async def ask(self, kind: type[T], method: str, asked: Struct) -> T:
        """Return the answer as a value of this kind."""
        name = self._client.name
        try:
            answered = await self._client.post(msgspec.json.encode(asked), method, f"/{method}")
            if not answered.ok and answered.status != REFUSED:
                raise self._client.error(answered)
        except RateLimitedError as error:
            raise ProviderUnavailableError(str(error), retry_after=error.retry_after) from error
        except ChainError as error:
            # The client speaks of nodes, for which it was made. Nothing was learned here, either.
            raise ProviderUnavailableError(str(error)) from error
        try:
            if answered.ok:
                return msgspec.json.decode(answered.body, type=kind)
            refusal = msgspec.json.decode(answered.body, type=Refusal)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ProviderUnavailableError(f"{name} answered {method} with something else") from error
        # Written by strangers, and shown to merchants.
        message = printable(self._client.redacted(refusal.message))[:MESSAGE_MAX]
        raise ExchangeRefusedError(message, reason=REASONS.get(refusal.code, "refused"))
