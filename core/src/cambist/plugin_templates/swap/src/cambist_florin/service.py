"""The service behind the provider: how it is asked, and what its refusals mean to the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct

from cambist.plugin import ExchangeRefusedError, RefusalReason, printable
from cambist_chainkit.providers import QUOTE_WAIT_MAX_S, ProviderClient

from .wire import Refusal

REFUSED = 422
"""The status with which the service says why it will not do something."""
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

    def __init__(self, client: ProviderClient) -> None:
        """Ask over this client, which keeps to the key's budget and bounds answers in size and time."""
        self._client = client

    async def ask(self, kind: type[T], method: str, asked: Struct, *, wait_max_s: float = QUOTE_WAIT_MAX_S) -> T:
        """Return the answer as a value of this kind. The request waits for its turn for at most so long."""
        answer = await self._client.post(f"/{method}", asked, wait_max_s=wait_max_s)
        if not answer.refused:
            return self._client.decode(answer, kind, f"the answer to {method}")
        refusal = self._client.decode(answer, Refusal, "a refusal")
        # Written by strangers, and shown to merchants.
        message = printable(self._client.redacted(refusal.message))[:MESSAGE_MAX]
        raise ExchangeRefusedError(message, reason=REASONS.get(refusal.code, "refused"))
