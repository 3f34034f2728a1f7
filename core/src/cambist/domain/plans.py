"""Plans: what a merchant may use, and what everybody has to whom the operator gave nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from .usage import CREDITS_MAX

WEBHOOKS_MAX = 10_000
ADDRESSES_MAX = 10_000_000
REQUESTS_MAX = 1_000_000

MaxWebhooks = Annotated[int, Meta(ge=0, le=WEBHOOKS_MAX)]
MaxAddresses = Annotated[int, Meta(ge=1, le=ADDRESSES_MAX)]
RequestsPerMinute = Annotated[int, Meta(ge=1, le=REQUESTS_MAX)]
CptPerMonth = Annotated[int, Meta(ge=1, le=CREDITS_MAX)]


class Plan(Struct, frozen=True, kw_only=True):
    """What a merchant may use.

    ``chains`` are those that trackers may watch; with None, every one. ``webhooks_max`` is how many active trackers a
    merchant may have in each mode, ``addresses_max`` how many addresses each of them may watch. Without
    ``requests_per_minute``, which is for each API key, the operator's own limit holds; without ``cpt_per_month`` a
    month includes no usage credits. ``price_usd`` is told, and nothing else is done with it.
    """

    plan_id: str
    name: str
    has_tracker: bool
    chains: Sequence[str] | None
    webhooks_max: int
    addresses_max: int
    requests_per_minute: int | None
    cpt_per_month: int | None
    price_usd: str | None

    def allows_chain(self, chain: str) -> bool:
        """Return whether trackers may watch this chain."""
        return self.chains is None or chain in self.chains


BUILT_IN = Plan(
    plan_id="pln_standard",
    name="Standard",
    has_tracker=True,
    chains=None,
    webhooks_max=10,
    addresses_max=1_000,
    requests_per_minute=None,
    cpt_per_month=None,
    price_usd=None,
)
"""The default plan as long as the operator has made no other one the default. It is no row of the database."""
