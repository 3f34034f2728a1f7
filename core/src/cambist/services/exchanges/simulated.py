"""Who exchanges between simulated chains: at the gateway's own prices, without asking anybody."""

from __future__ import annotations

from typing import Protocol

from cambist.domain.exchanges import BPS, Kind, Side, least_worth, share_of
from cambist.plugin import ChainToken, ExchangeRefusedError, ExchangeRequest, ProviderUnavailableError, Quote, Units
from cambist.ports import Clock
from cambist.services.pricing.prices import NotPricedError, RateBook, RateUnavailableError

NAME = "sandbox"
FILL_S = 2
DEADLINE_S = 3_600


class Quoting(Protocol):
    """What of a provider is needed to quote."""

    @property
    def name(self) -> str: ...
    def supports(self, sells: ChainToken, buys: ChainToken) -> bool: ...
    async def quote(self, request: ExchangeRequest) -> Quote: ...


class SimulatedProvider:
    """Quotes what the tokens are worth. Every pair is to be had, as long as both have a price."""

    name = NAME

    def __init__(self, kind: Kind, rates: RateBook, clock: Clock) -> None:
        self._kind = kind
        self._rates = rates
        self._clock = clock

    def supports(self, sells: ChainToken, buys: ChainToken) -> bool:
        return (sells.chain.id == buys.chain.id) is (self._kind is Kind.SWAP)

    async def quote(self, request: ExchangeRequest) -> Quote:
        sells, buys = request.sells.token, request.buys.token
        try:
            sold = Side(token=sells, units=request.units, usd=(await self._rates.rate(sells.symbol, "usd")).value)
            worth = least_worth(sold, buys, (await self._rates.rate(buys.symbol, "usd")).value, 0)
        except NotPricedError as error:
            raise ExchangeRefusedError(str(error), reason="unsupported") from error
        except RateUnavailableError as error:
            raise ProviderUnavailableError(str(error)) from error
        units = Units(worth - share_of(worth, request.fee_bps))
        units_min = Units(units * (BPS - request.slippage_bps) // BPS)
        if not units_min:
            raise ExchangeRefusedError("so little is not exchanged", reason="amount_too_low")
        deadline = None if self._kind is Kind.SWAP else int(self._clock.now().timestamp()) + DEADLINE_S
        return Quote(
            units=units, units_min=units_min, fill_deadline=deadline, fill_s=None if deadline is None else FILL_S
        )
