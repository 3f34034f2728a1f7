"""What exchanging needs, for the life of a process."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from cambist.domain.exchanges import Kind
from cambist.plugin import BridgeProvider, SwapProvider
from cambist.ports import Clock, Ids
from cambist.registry import Registry
from cambist.services.addresses.account_keys import AccountKeys
from cambist.services.chains.rules import TokenRules
from cambist.services.pricing.prices import RateBook

from .simulated import Quoting, SimulatedProvider

QUOTE_TIMEOUT_MS = 5_000


class ExchangeContext(Struct, frozen=True, kw_only=True):
    """What asking for exchanges needs. ``quote_timeout_ms`` is how long one provider may take for a quote."""

    registry: Registry
    keys: AccountKeys
    clock: Clock
    ids: Ids
    rates: RateBook
    token_rules: TokenRules = field(default_factory=TokenRules)
    swaps: Sequence[SwapProvider] = ()
    bridges: Sequence[BridgeProvider] = ()
    quote_timeout_ms: int = QUOTE_TIMEOUT_MS

    def quoting(self, kind: Kind, mode: str) -> Sequence[Quoting]:
        """Return who may be asked. A sandbox has one of its own, which asks nobody."""
        if mode == "sandbox":
            return [SimulatedProvider(kind, self.rates, self.clock)]
        return self.swaps if kind is Kind.SWAP else self.bridges
