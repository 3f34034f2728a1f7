"""What is asked of Across's servers, whichever generation of their interface answers.

The contracts are what lasts: an adapter translates one generation into these values, and ``legacy`` is the first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, Literal

from msgspec import Struct

WHO: Final = "Across"


class Route(Struct, frozen=True, kw_only=True):
    """From which token of which chain to which token of another. Native coin goes as the token that wraps it.

    ``same_decimals`` is whether both tokens have as many decimals.
    """

    origin: int
    destination: int
    input_token: str
    output_token: str
    same_decimals: bool


class Side(Struct, frozen=True, kw_only=True):
    """A token as the server knows it."""

    chain: int
    contract: str
    decimals: int


class Offer(Struct, frozen=True, kw_only=True):
    """What a relayer would do, and what the deposit has to say for it. Nothing in it is believed yet.

    Times are seconds since 1970 UTC. ``exclusivity`` is what the contract is told: nothing, seconds, or a moment.
    ``fees`` are in units of the token that goes in, and may be below zero where Across pays.
    """

    units_out: int
    input_side: Side
    output_side: Side
    spoke_pool: str
    destination_spoke_pool: str | None
    quoted_at: int
    fill_deadline: int
    fill_s: int | None
    exclusive_relayer: str
    exclusivity: int
    fees: tuple[tuple[str, int], ...]


class Limits(Struct, frozen=True, kw_only=True):
    """The least and the most that a route takes now, in units of the token that goes in."""

    units_min: int
    units_max: int


class Tracked(Struct, frozen=True, kw_only=True):
    """What the server knows of a deposit, and the transaction on which it bases that."""

    state: Literal["pending", "filled", "expired", "refunded"]
    tx_id: str | None = None


class AcrossApi(ABC):
    """One generation of Across's interface. Raises ExchangeRefusedError, ProviderUnavailableError."""

    @abstractmethod
    async def offer(self, route: Route, units: int, recipient: str, *, wait_max_s: float) -> Offer:
        """Return what would be done with so many units now. The request waits for its turn for at most so long."""

    @abstractmethod
    async def limits(self, route: Route) -> Limits:
        """Return how much the route takes."""

    @abstractmethod
    async def track(self, origin: int, deposit_id: str) -> Tracked:
        """Return what became of a deposit that was made on this chain."""
